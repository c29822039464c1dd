// `tare serve` as clients see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <thread>
#include <vector>

#include "support/program.h"
#include "tare/inference/bundle.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace tare::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kSample = "[[[0,1,2,3],[4,5,6,7],[8,9,10,11],[12,13,14,255]]]";

/// A running server of a small model of pictures, or with `width` of a slow one.
class Server {
 public:
  explicit Server(std::vector<std::string> options = {}, int64_t width = 8) {
    const Model model = models::make(
        "mlp", {.classes = 3, .sample_shape = {1, 4, 4}, .weights = "", .hidden = {width, width}});
    write_bundle(folder_ / "net.tare",
                 {.model = *model.spec(),
                  .sample_shape = {1, 4, 4},
                  .labels = {"zero", "one", "two"},
                  .activation = "softmax"},
                 stored_state(model));
    ::signal(SIGPIPE, SIG_IGN);  // a client writes while the server closes
    options.insert(options.begin(), {"serve", "net.tare", "--port", "0"});
    program_.emplace("tare", options, folder_.path());
    static const std::regex line("http://127.0.0.1:([0-9]+)");
    for (int i = 0; i < 3000 && port_ == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::smatch found;
      const std::string out = program_->read("out");
      if (std::regex_search(out, found, line)) port_ = std::stoi(found[1]);
    }
    EXPECT_GT(port_, 0) << program_->read("err");
  }
  ~Server() {
    if (program_) stop();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  ProgramResult stop(int signal = SIGTERM) {
    ::kill(program_->pid(), signal);
    ProgramResult result = program_->wait();
    program_.reset();
    return result;
  }
  [[nodiscard]] httplib::Client client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_tcp_nodelay(true);
    return client;
  }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int pid() const { return program_->pid(); }
  [[nodiscard]] std::filesystem::path folder() const { return folder_.path(); }

 private:
  TempDir folder_;
  std::optional<Program> program_;
  int port_ = 0;
};

std::string request(int samples) {
  std::string all;
  for (int i = 0; i < samples; ++i) all += (i > 0 ? "," : "") + kSample;
  return R"({"samples":[)" + all + R"(],"top":3})";
}

TEST(Serve, AnswersAsThePredictionsOfTheProgram) {
  const Server server;
  auto client = server.client();
  const auto answer = client.Post("/predict", request(1), "application/json");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 200) << answer->body;
  const json predictions = json::parse(answer->body)["samples"][0]["predictions"];
  ASSERT_EQ(predictions.size(), 3U);
  double sum = 0;
  for (const auto& one : predictions) sum += one["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(json::parse(client.Get("/info")->body)["labels"], json({"zero", "one", "two"}));
  EXPECT_EQ(client.Get("/health")->status, 200);
  EXPECT_THAT(client.Get("/metrics")->body, HasSubstr("tare_samples_total 1\n"));
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Put("/predict", "x", "text/plain")->status, 405);
}

TEST(Serve, ManyClientsGetTheirOwnAnswers) {
  const Server server({"--batch", "8"});
  const json expected =
      json::parse(server.client().Post("/predict", request(1), "application/json")->body);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      auto client = server.client();
      client.set_keep_alive(true);
      for (int i = 1; i <= 10; ++i) {
        const auto answer = client.Post("/predict", request(i % 3 + 1), "application/json");
        EXPECT_TRUE(answer) << httplib::to_string(answer.error());
        if (!answer) continue;
        EXPECT_EQ(answer->status, 200) << answer->body;
        const json samples = json::parse(answer->body)["samples"];
        const double difference =
            samples.back()["predictions"][0]["probability"].get<double>() -
            expected["samples"][0]["predictions"][0]["probability"].get<double>();
        if (samples.size() == static_cast<size_t>(i % 3 + 1) && std::abs(difference) < 1e-5)
          ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
}

TEST(Serve, RefusesBodiesBeyondItsBoundHoweverTheyCome) {
  const Server server({"--max-body", "1KiB"});
  auto client = server.client();
  const auto healthy = [&] {
    const auto answer = client.Get("/health");
    return answer && answer->status == 200;
  };
  const auto large = client.Post("/predict", std::string(2000, ' '), "application/json");
  ASSERT_TRUE(large);
  EXPECT_EQ(large->status, 413);
  const auto chunks = client.Post(
      "/predict",
      [](size_t offset, httplib::DataSink& sink) {
        const std::string part(500, ' ');
        if (offset < 50'000) return sink.write(part.data(), part.size());
        sink.done();
        return true;
      },
      "application/json");
  if (chunks) {  // else the connection was closed before the answer was read
    EXPECT_EQ(chunks->status, 413);
  }
  EXPECT_TRUE(healthy());
  httplib::MultipartFormDataItems form{{"file", "content", "a.png", "image/png"}};
  const auto answer = client.Post("/predict", form);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 415);
  const auto broken = client.Post("/predict", "{\"samples\": [", "application/json");
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->status, 400);
  EXPECT_TRUE(healthy());
}

TEST(Serve, AnswersWhatHasComeBeforeItEnds) {
  // A forward of this model takes long enough to be under way at the signal.
  Server server({"--threads", "1"}, 6000);
  std::vector<int> statuses(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < statuses.size(); ++t)
    threads.emplace_back([&, t] {
      auto client = server.client();
      client.set_read_timeout(60);
      const auto answer = client.Post("/predict", request(100), "application/json");
      statuses[t] = answer ? answer->status : 0;
    });
  auto client = server.client();
  while (client.Get("/metrics")->body.find("tare_samples_waiting 0") != std::string::npos &&
         statuses[0] == 0)
    std::this_thread::yield();
  const ProgramResult ended = server.stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended.status, 0) << ended.err;
  int answered = 0;
  for (const int status : statuses) answered += status == 200 ? 1 : 0;
  EXPECT_GE(answered, 1);
  for (const int status : statuses) EXPECT_TRUE(status == 200 || status == 503 || status == 0);
}

TEST(Serve, ASecondServerOnThePortIsRefused) {
  const Server server;
  const auto second = run_program(
      "tare", {"serve", "net.tare", "--port", std::to_string(server.port())}, server.folder());
  EXPECT_EQ(second.status, 4) << second.err;
  EXPECT_THAT(second.err, HasSubstr(":" + std::to_string(server.port())));
}

TEST(Serve, RefusesWhatIsNoOption) {
  const TempDir folder;
  const auto refused = [&](std::vector<std::string> words, const char* why) {
    words.insert(words.begin(), "serve");
    const auto result = run_program("tare", words, folder.path());
    EXPECT_EQ(result.status, 2) << why;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused({"none.tare"}, "none.tare");
  refused({"none.tare", "--port", "65536"}, "--port");
  refused({"none.tare", "--batch", "0"}, "--batch");
  refused({"none.tare", "--max-body", "much"}, "--max-body");
  refused({"none.tare", "--device", "gpu"}, "gpu");
  refused({}, "BUNDLE");
}

TEST(Serve, StaysSmallUnderManyAndDamagedRequests) {
  const Server server;
  const auto resident = [&] {
    std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
    return 0LL;
  };
  auto client = server.client();
  client.set_keep_alive(true);
  const auto work = [&](int times) {
    for (int i = 0; i < times; ++i) {
      std::string body = request(1);
      if (i % 2 == 1) body[static_cast<size_t>(i * 31) % body.size()] = static_cast<char>(i);
      const auto answer = client.Post("/predict", body, "application/json");
      ASSERT_TRUE(answer);
      EXPECT_TRUE(answer->status == 200 || answer->status == 400) << body;
    }
  };
  work(200);
  const long long before = resident();
  work(2000);
  EXPECT_LE(resident() - before, 4096);
}

}  // namespace
}  // namespace tare::testing
