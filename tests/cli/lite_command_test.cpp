// `tare predict` without LibTorch: that it prints what LibTorch's program prints, and who predicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/tare_folder.h"

namespace tare::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Trains a small network of digits, and keeps pictures.
class LiteCommand : public ::testing::Test, protected TareFolder {
 protected:
  void SetUp() override {
    write("own.yaml",
          "name: own\ndevice: cpu\nmodel: {name: resnet9, width: 2}\n"
          "data: {name: generated_digits, count: 120}\nphases: [{epochs: 1}]\n"
          "export: m.tare\n");
    const auto run = tare({"run", "own.yaml"});
    ASSERT_EQ(run.status, 0) << run.err;
    const auto made =
        tare({"data", "make", "generated_digits", "--count", "3", "--png", "--out", "pictures"});
    ASSERT_EQ(made.status, 0) << made.err;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "pictures"))
      if (entry.path().extension() == ".png")
        pictures_.push_back(std::filesystem::relative(entry.path(), folder_.path()).string());
    std::ranges::sort(pictures_);
    ASSERT_EQ(pictures_.size(), 3U);
  }

  [[nodiscard]] ProgramResult predict(std::vector<std::string> words,
                                      const std::vector<std::string>& more = {}) const {
    words.insert(words.begin(), "predict");
    words.insert(words.end(), more.begin(), more.end());
    return tare(words);
  }
  [[nodiscard]] std::vector<std::string> all(const std::string& bundle) const {
    std::vector<std::string> words{bundle};
    words.insert(words.end(), pictures_.begin(), pictures_.end());
    return words;
  }

  std::vector<std::string> pictures_;
};

/// Whether two trees are equal but for the last digits of numbers.
void expect_near(const json& a, const json& b) {
  ASSERT_EQ(a.type(), b.type());
  if (a.is_number_float()) {
    EXPECT_NEAR(a.get<double>(), b.get<double>(), 1e-6);
  } else if (!a.is_structured()) {
    EXPECT_EQ(a, b);
  } else {
    ASSERT_EQ(a.size(), b.size());
    for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) expect_near(*i, *j);
  }
}

TEST_F(LiteCommand, PrintsWhatLibTorchPrints) {
  for (const char* bundle : {"runs/own/m.tare", "runs/own"})
    for (const std::vector<std::string>& options : {std::vector<std::string>{},
                                                    {"--top", "3"},
                                                    {"--csv"},
                                                    {"--json", "--top", "10"},
                                                    {"--json-lines"}}) {
      std::vector<std::string> lite = options, libtorch = options;
      lite.insert(lite.end(), {"--engine", "lite"});
      libtorch.insert(libtorch.end(), {"--engine", "libtorch"});
      const auto by_lite = predict(all(bundle), lite), by_libtorch = predict(all(bundle), libtorch);
      ASSERT_EQ(by_lite.status, 0) << by_lite.err;
      ASSERT_EQ(by_libtorch.status, 0) << by_libtorch.err;
      EXPECT_THAT(by_lite.err, IsEmpty());
      if (!options.empty() && options[0] == "--json")
        expect_near(json::parse(by_lite.out), json::parse(by_libtorch.out));
      else if (options.empty() || options[0] == "--top")
        EXPECT_EQ(by_lite.out, by_libtorch.out);
      else
        EXPECT_EQ(std::ranges::count(by_lite.out, '\n'), std::ranges::count(by_libtorch.out, '\n'));
    }
}

TEST_F(LiteCommand, SaysWhichEnginePredictsAndWhy) {
  EXPECT_THAT(predict(all("runs/own/m.tare"), {"-v"}).err,
              HasSubstr("predicts without LibTorch, by the kernels"));
  EXPECT_THAT(
      predict({"runs/own/m.tare", "pictures"}, {"-v"}).err,
      AllOf(HasSubstr("takes files of pictures"), HasSubstr("predicts with LibTorch on cpu")));
  const auto many = predict({"runs/own/m.tare", pictures_[0], "--engine", "lite", "--score"});
  EXPECT_EQ(many.status, 2);
  EXPECT_THAT(many.err, HasSubstr("does not know --score"));
  const auto unknown = predict({"runs/own/m.tare", pictures_[0], "--engine", "lit"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"lite\""));
  const auto direct =
      run_program("tare-predict", {"m.tare", "x.png", "--engine", "lite"}, folder_.path());
  EXPECT_EQ(direct.status, 2);
  EXPECT_THAT(direct.err, HasSubstr("call `tare predict`"));
}

TEST_F(LiteCommand, LeavesEveryFailureToLibTorchsProgram) {
  write("broken.png", "no picture");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"runs/own/m.tare", pictures_[0], "broken.png"},
        {"runs/own/m.tare", "none.png"},
        {"own.yaml", pictures_[0]},
        {"runs/own/m.tare", pictures_[0], "--top", "0"},
        {"runs/own/m.tare", pictures_[0], "--batch", "0"},
        {"runs/own/m.tare", pictures_[0], "--json", "--csv"}}) {
    const auto automatic = predict(words), libtorch = predict(words, {"--engine", "libtorch"});
    EXPECT_NE(automatic.status, 0);
    EXPECT_EQ(automatic.status, libtorch.status);
    EXPECT_EQ(automatic.out, libtorch.out);
    EXPECT_EQ(automatic.err, libtorch.err);
  }
}

/// Returns what a command of a shell prints.
std::string printed(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  for (int c = 0; pipe && (c = std::fgetc(pipe.get())) != EOF;) text += static_cast<char>(c);
  return text;
}

TEST(LiteLibraries, NeedNoLibTorch) {
  for (const std::string& file : {program_path("tare"), program_path("../lib/libtare_lite.so")}) {
    const std::string libraries = printed("ldd '" + file + "'");
    EXPECT_THAT(libraries,
                AllOf(HasSubstr("libc.so"), Not(HasSubstr("libtorch")), Not(HasSubstr("libc10"))))
        << file;
  }
  EXPECT_THAT(printed("ldd '" + program_path("tare-train") + "'"), HasSubstr("libtorch_cpu"));
}

TEST(LiteLibraries, TakeTwoMegabytesAtMost) {
  const TempDir folder;
  const std::string copy = (folder / "stripped").string();
  (void)printed("strip -o '" + copy + "' '" + program_path("../lib/libtare_lite.so") + "'");
  EXPECT_LE(std::filesystem::file_size(copy), 2U << 20);
}

}  // namespace
}  // namespace tare::testing
