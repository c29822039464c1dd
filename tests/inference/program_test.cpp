// The program tare-predict, from outside: what it prints, its exit codes, what it links.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "inference/support.h"
#include "support/temp_dir.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using tare::testing::TempDir;
using ::testing::HasSubstr;

struct Outcome {
  int code = -1;
  std::string output;  ///< standard output and error
};

Outcome run(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome;
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    outcome.output.append(buffer, n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

std::string program() {
  const char* folder = std::getenv("TARE_BIN_DIR");
  return std::string(folder ? folder : ".") + "/tare-predict";
}

class PredictProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const Model model = small_model();
    write_bundle(dir_ / "m.tare", small_manifest(model), model.state());
    write_png(dir_ / "a.png", at::full({1, 4, 4}, 100, at::kByte));
    write_png(dir_ / "b.png", at::full({1, 4, 4}, 250, at::kByte));
  }
  Outcome predict(const std::string& arguments) const {
    return run("cd '" + dir_.path().string() + "' && '" + program() + "' " + arguments);
  }
  TempDir dir_;
};

TEST_F(PredictProgram, PrintsPathClassAndProbability) {
  const Outcome outcome = predict("m.tare a.png b.png");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, ::testing::MatchesRegex(
                                  "a.png: [a-z]+ [01]\\.[0-9]+\nb.png: [a-z]+ [01]\\.[0-9]+\n"));
}

TEST_F(PredictProgram, PrintsTheMostProbableClassesAsJson) {
  const Outcome outcome = predict("m.tare --json --top=2 a.png b.png");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto json = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1]["path"], "b.png");
  ASSERT_EQ(json[1]["predictions"].size(), 2U);
  EXPECT_GE(json[1]["predictions"][0]["probability"], json[1]["predictions"][1]["probability"]);
}

TEST_F(PredictProgram, BadInputIsOneLineAndExitCode2) {
  overwrite(dir_ / "broken.tare", "no bundle at all, but long enough");
  overwrite(dir_ / "broken.png", "no image");
  for (const char* arguments :
       {"", "m.tare", "m.tare a.png --top 0", "m.tare a.png --top", "m.tare a.png --tpo 3",
        "m.tare a.png --device tpu", "broken.tare a.png", "m.tare broken.png"}) {
    const Outcome outcome = predict(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << ": " << outcome.output;
    EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1) << arguments << ": " << outcome.output;
  }
  EXPECT_EQ(predict("m.tare a.png --top " + std::string(5000, '1')).code, 2);
}

TEST_F(PredictProgram, FilesThatAreNotThereAreExitCode2) {
  EXPECT_EQ(predict("none.tare a.png").code, 2);
  EXPECT_EQ(predict("m.tare none.png").code, 2);
}

TEST_F(PredictProgram, GoesOnBehindAnImageThatFails) {
  const Outcome outcome = predict("m.tare none.png b.png");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("b.png: "));
}

TEST_F(PredictProgram, HelpsWithAnExample) {
  const Outcome outcome = predict("--help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("Example:\n  tare predict"));
}

TEST(PredictProgramLinks, NeitherCudaNorTraining) {
  const Outcome needed = run("readelf -d '" + program() + "' | grep NEEDED");
  ASSERT_EQ(needed.code, 0) << needed.output;
  EXPECT_THAT(needed.output, HasSubstr("libtorch_cpu.so"));
  EXPECT_THAT(needed.output, ::testing::Not(HasSubstr("cuda")));
  const Outcome symbols = run("nm -C '" + program() + "'");
  ASSERT_EQ(symbols.code, 0);
  EXPECT_THAT(symbols.output, HasSubstr("tare::Predictor::classify"));
  for (const char* name : {"tare::Learner", "tare::Optimizer", "tare::make_optimizer",
                           "tare::Dataset", "tare::Loader", "tare::Callback"}) {
    EXPECT_EQ(symbols.output.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tare
