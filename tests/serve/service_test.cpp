// The answers of a server of predictions, without a network.
#include "tare/serve/service.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/serve/refusal.h"
#include "tare/transform/image.h"

namespace tare::serve {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TempDir;

std::filesystem::path pictures_bundle(const TempDir& folder) {
  const Model model =
      models::make("mlp", {.classes = 3, .sample_shape = {1, 4, 4}, .weights = "", .hidden = {8}});
  write_bundle(folder / "net.tare",
               {.model = *model.spec(),
                .sample_shape = {1, 4, 4},
                .labels = {"zero", "one", "two"},
                .activation = "softmax"},
               stored_state(model));
  return folder / "net.tare";
}

/// A predictor whose forwards wait until they are let through.
class Gate {
 public:
  explicit Gate(const TempDir& folder)
      : predictor(pictures_bundle(folder), {.forward = [this](Model& model, const Batch& batch) {
                    ++forwards;
                    std::unique_lock lock(mutex_);
                    changed_.wait(lock, [&] { return open_; });
                    sizes.push_back(batch.size());
                    return model.forward(batch);
                  }}) {}
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for_forwards(int count) const {
    while (forwards < count) std::this_thread::yield();
  }
  std::atomic<int> forwards = 0;
  std::vector<int64_t> sizes;  // of the batches, in their order
  Predictor predictor;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

std::vector<Batch> samples(int count) {
  std::vector<Batch> all;
  for (int i = 0; i < count; ++i) all.emplace_back(at::rand({1, 1, 4, 4}));
  return all;
}

TEST(Batcher, PredictsTogetherWhatWaitsAtTheSameTime) {
  const TempDir folder;
  Gate gate(folder);
  Batcher batcher(gate.predictor, {.batch = 4});
  std::vector<std::vector<Batch>> inputs;
  std::vector<std::vector<Outputs>> outputs(6);
  for (int i = 0; i < 6; ++i) inputs.push_back(samples(1));
  std::vector<std::thread> callers;
  callers.emplace_back([&] { outputs[0] = batcher.predict(inputs[0]); });
  gate.wait_for_forwards(1);
  for (size_t i = 1; i < 6; ++i)
    callers.emplace_back([&, i] { outputs[i] = batcher.predict(inputs[i]); });
  while (batcher.figures().waiting < 5) std::this_thread::yield();
  gate.open();
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(gate.sizes, ::testing::ElementsAre(1, 4, 1));
  EXPECT_EQ(batcher.figures().batches, 3);
  EXPECT_EQ(batcher.figures().samples, 6);
  EXPECT_EQ(batcher.figures().waiting, 0);
  Predictor alone(folder / "net.tare");
  for (size_t i = 0; i < 6; ++i)
    EXPECT_TRUE(
        at::allclose(outputs[i].at(0).front(), alone.predict(inputs[i][0]).front(), 1e-5, 1e-6))
        << i;
}

TEST(Batcher, RefusesWhatDoesNotFitIntoTheQueue) {
  const TempDir folder;
  Gate gate(folder);
  Batcher batcher(gate.predictor, {.batch = 1, .queue = 2});
  std::vector<std::thread> callers;
  callers.emplace_back([&] { (void)batcher.predict(samples(1)); });
  gate.wait_for_forwards(1);
  callers.emplace_back([&] { (void)batcher.predict(samples(2)); });
  while (batcher.figures().waiting < 2) std::this_thread::yield();
  try {
    (void)batcher.predict(samples(1));
    ADD_FAILURE() << "accepted";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.status(), 503);
    EXPECT_THAT(refusal.what(), HasSubstr("2; ask again"));
  }
  gate.open();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(batcher.predict(samples(5)).size(), 5U) << "nothing else waits";
}

TEST(Batcher, EndsAfterTheTimeout) {
  const TempDir folder;
  Gate gate(folder);
  Batcher batcher(gate.predictor, {.timeout = std::chrono::milliseconds(30)});
  std::thread first([&] { EXPECT_THROW((void)batcher.predict(samples(1)), Refusal); });
  gate.wait_for_forwards(1);
  EXPECT_THROW((void)batcher.predict(samples(1)), Refusal);
  first.join();
  gate.open();
  EXPECT_EQ(batcher.predict(samples(1)).size(), 1U);
  EXPECT_LE(gate.forwards, 3) << "the sample whose caller has gone may be left out";
}

TEST(Batcher, AnErrorIsThatOfItsOwnSamples) {
  const TempDir folder;
  Gate gate(folder);
  Batcher batcher(gate.predictor, {});
  std::thread first([&] { EXPECT_EQ(batcher.predict(samples(1)).size(), 1U); });
  gate.wait_for_forwards(1);
  std::thread good([&] { EXPECT_EQ(batcher.predict(samples(2)).size(), 2U); });
  std::thread bad([&] {
    EXPECT_THROW((void)batcher.predict({Batch(at::rand({1, 2, 4, 4}))}), ShapeError);
  });
  while (batcher.figures().waiting < 3) std::this_thread::yield();
  gate.open();
  first.join();
  good.join();
  bad.join();
}

TEST(Batcher, StoppedPredictsWhatWaitsAndRefusesMore) {
  const TempDir folder;
  Gate gate(folder);
  Batcher batcher(gate.predictor, {});
  std::thread first([&] { EXPECT_EQ(batcher.predict(samples(1)).size(), 1U); });
  gate.wait_for_forwards(1);
  std::thread waits([&] { EXPECT_EQ(batcher.predict(samples(1)).size(), 1U); });
  while (batcher.figures().waiting < 1) std::this_thread::yield();
  batcher.stop();
  EXPECT_THROW((void)batcher.predict(samples(1)), Refusal);
  gate.open();
  first.join();
  waits.join();
  EXPECT_THROW(Batcher(gate.predictor, {.batch = 0}), ConfigError);
  EXPECT_THROW(Batcher(gate.predictor, {.queue = 0}), ConfigError);
}

class ServiceOfPictures : public ::testing::Test {
 protected:
  Response post(const std::string& body, const std::string& type = "application/json",
                const std::string& top = "") {
    return service_.answer(
        {.method = "POST", .path = "/predict", .top = top, .content_type = type, .body = body});
  }
  Response get(const std::string& path) { return service_.answer({.method = "GET", .path = path}); }
  static std::string error(const Response& response) {
    return json::parse(response.body).at("error").get<std::string>();
  }
  TempDir folder_;
  Predictor predictor_{pictures_bundle(folder_)};
  Service service_{predictor_, R"({"labels":[]})", {.most_samples = 3}};
};

TEST_F(ServiceOfPictures, PredictsJsonAndTheBytesOfPictures) {
  const std::string one = "[[[0,1,2,3],[4,5,6,7],[8,9,10,11],[12,13,14,255]]]";
  const Response response = post(R"({"samples": [)" + one + "," + one + R"(], "top": 2})");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.type, "application/json");
  const json both = json::parse(response.body)["samples"];
  EXPECT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0]["predictions"].size(), 2U);
  const std::string png = encode_png(at::randint(256, {1, 9, 7}, at::kByte));
  const Response picture = post(png, "image/png", "3");
  ASSERT_EQ(picture.status, 200) << picture.body;
  EXPECT_EQ(json::parse(picture.body)["samples"][0]["predictions"].size(), 3U);
  const auto expected = predictor_.classes(
      predictor_.predict_picture(decode_image(std::as_bytes(std::span(png)), "p", 1)), 1);
  EXPECT_EQ(json::parse(picture.body)["samples"][0]["predictions"][0]["label"],
            expected.front().label);
}

TEST_F(ServiceOfPictures, SaysWhatIsWrong) {
  EXPECT_EQ(post("{").status, 400);
  EXPECT_THAT(error(post("{}")), HasSubstr("is not JSON of the form"));
  EXPECT_THAT(error(post(R"({"samples":[1,2,3,4]})")), HasSubstr("more than the 3"));
  EXPECT_THAT(error(post(R"({"samples":[[[[0.5]]]]})")), HasSubstr("sample 0"));
  EXPECT_THAT(error(post(R"({"samples":[[[[1]]]]})")), HasSubstr("[batch, 1, 4, 4]"));
  EXPECT_EQ(post("no picture", "image/png").status, 400);
  EXPECT_EQ(post("a,b", "text/csv").status, 415);
  EXPECT_EQ(post("x", "image/png", "0").status, 400);
  EXPECT_EQ(get("/predict").status, 405);
  EXPECT_EQ(get("/nothing").status, 404);
  EXPECT_EQ(service_.answer({.method = "POST", .path = "/health"}).status, 405);
}

TEST_F(ServiceOfPictures, IsHealthyUntilItStops) {
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/info").body, R"({"labels":[]})");
  service_.stop();
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_EQ(post(R"({"samples":[[[[0,1,2,3],[4,5,6,7],[8,9,10,11],[12,13,14,255]]]]})").status,
            503);
  EXPECT_EQ(get("/info").status, 200);
}

TEST_F(ServiceOfPictures, CountsForPrometheus) {
  const std::string one = "[[[0,1,2,3],[4,5,6,7],[8,9,10,11],[12,13,14,255]]]";
  (void)post(R"({"samples": [)" + one + "," + one + "]}");
  (void)post("{");
  (void)service_.refused(413, "too large");
  const Response response = get("/metrics");
  EXPECT_EQ(response.type, "text/plain; version=0.0.4");
  for (const char* line :
       {"tare_responses_total{status=\"200\"} 1\n", "tare_responses_total{status=\"400\"} 1\n",
        "tare_responses_total{status=\"413\"} 1\n", "tare_predict_seconds_count 2\n",
        "tare_predict_seconds_bucket{le=\"+Inf\"} 2\n", "# TYPE tare_predict_seconds histogram\n",
        "tare_samples_total 2\n", "tare_batches_total 1\n", "tare_samples_waiting 0\n"})
    EXPECT_THAT(response.body, HasSubstr(line));
}

}  // namespace
}  // namespace tare::serve
