// Exports models by their manifests, as `tare export --format` does.
#include "tare/interchange/export_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "interchange/exported.h"
#include "interchange/modules.h"
#include "support/files.h"
#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/interchange/read_file.h"
#include "tare/model/stored.h"

namespace tare::interchange {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::outcome_of;
using testing::TempDir;

Exported pictures() {
  return Exported("resnet9", {.classes = 2, .sample_shape = {1, 28, 28}},
                  {.sample_shape = {1, 28, 28},
                   .input = "uint8",
                   .input_name = "picture",
                   .transforms = Transforms{Normalise{{0.1}, {0.3}}},
                   .labels = {"cat", "dog"},
                   .activation = "softmax"});
}

class ExportFile : public ::testing::TestWithParam<std::string> {};

TEST_P(ExportFile, HasTheManifestAndTheBytesOfTheFile) {
  const TempDir folder;
  const Exported net = pictures();
  const auto path = folder / ("net" + file_format(GetParam()).extension);
  const ExportedFile file = export_file(path, GetParam(), net.manifest, net.tensors);
  const std::string bytes = content_of(path);
  EXPECT_EQ(file.bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(file.difference, 0);
  EXPECT_EQ(file.largest_batch, GetParam() == "safetensors" ? 0 : 5);
  EXPECT_THAT(bytes, HasSubstr("tare.bundle"));
  EXPECT_THAT(bytes, HasSubstr("layer3"));
  // The graph normalises; whoever reads the weights alone has to do it.
  const auto read = read_parts(path);
  EXPECT_EQ(read.manifest->transforms.steps().size(), GetParam() == "safetensors" ? 1U : 0U);
  export_file(folder / "again", GetParam(), net.manifest, net.tensors);
  EXPECT_EQ(content_of(folder / "again"), bytes);
}

TEST_P(ExportFile, ReplacesOnlyAFileOfItsFormat) {
  const TempDir folder;
  const Exported net = pictures();
  const auto write = [&](const std::string& name) {
    return outcome_of([&] { export_file(folder / name, GetParam(), net.manifest, net.tensors); });
  };
  EXPECT_EQ(write("net"), "accepted");
  EXPECT_EQ(write("net"), "accepted");
  write_bundle(folder / "net.tare", net.manifest, net.tensors);
  std::ofstream(folder / "notes") << "\x08 my notes of tare.manifest and model/data/weights/";
  std::ofstream(folder / "foreign") << "GGUF" << std::string(64, 'x');
  for (const char* name : {"net.tare", "notes", "foreign"}) {
    const std::string before = content_of(folder / name);
    EXPECT_THAT(write(name), HasSubstr("would be replaced, and is no " + GetParam())) << name;
    EXPECT_EQ(content_of(folder / name), before);
  }
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THAT(write("folder"), HasSubstr("is no regular file"));
}

TEST_P(ExportFile, OfWeightsThatDoNotFitLeavesTheOldFile) {
  const TempDir folder;
  Exported net = pictures();
  export_file(folder / "net", GetParam(), net.manifest, net.tensors);
  const std::string old = content_of(folder / "net");
  net.tensors.front().tensor = torch::rand({3});
  if (GetParam() == "safetensors") return;  // tensors of any shape
  EXPECT_THAT(
      outcome_of([&] { export_file(folder / "net", GetParam(), net.manifest, net.tensors); }),
      HasSubstr(net.tensors.front().name));
  EXPECT_EQ(content_of(folder / "net"), old);
}

INSTANTIATE_TEST_SUITE_P(Formats, ExportFile, ::testing::Values("pt2", "onnx", "safetensors"),
                         [](const auto& one) { return one.param; });

TEST(ExportFile, TakesTokensAndSeveralInputs) {
  const TempDir folder;
  const Exported texts("lstm", {.classes = 2, .sample_shape = {32}, .width = 8},
                       {.sample_shape = {32},
                        .any_size = {0},
                        .input = "int64",
                        .more_inputs = {{.name = "lengths", .dtype = "int64"}}});
  for (const char* format : {"pt2", "onnx"})
    EXPECT_EQ(export_file(folder / format, format, texts.manifest, texts.tensors).difference, 0);
  const auto options = config::parse_text("{categories: [2, 3]}", "test");
  RowCoding columns;
  for (const char* name : {"a", "b", "c", "d"}) columns.columns.push_back({.name = name});
  const Exported rows("tabular", {.classes = 2, .sample_shape = {4}, .options = {options}},
                      {.sample_shape = {4}, .rows = columns});
  for (const char* format : {"pt2", "onnx"})
    EXPECT_LT(export_file(folder / format, format, rows.manifest, rows.tensors).difference, 1e-6);
  const Exported letters("gpt",
                         {.classes = 30, .sample_shape = {8}, .width = 8, .layers = 1, .heads = 2},
                         {.sample_shape = {8}, .input = "int64"});
  for (const char* format : {"pt2", "onnx"})
    EXPECT_EQ(export_file(folder / format, format, letters.manifest, letters.tensors).difference,
              0);
}

TEST(ExportFile, StoresTheMatricesOfAGptAsAsked) {
  const TempDir folder;
  const auto letters = [](int64_t width) {
    return Exported("gpt",
                    {.classes = 30, .sample_shape = {8}, .width = width, .layers = 1, .heads = 2},
                    {.sample_shape = {8}, .input = "int64"});
  };
  const Exported net = letters(32);
  const auto bytes = [&](const std::string& weights) {
    return export_file(folder / "x", "gguf", net.manifest, net.tensors, {.weights = weights}).bytes;
  };
  EXPECT_EQ(bytes(""), bytes("fp32"));
  EXPECT_LT(bytes("fp16"), bytes("fp32"));
  EXPECT_LT(bytes("q8_0"), bytes("fp16"));
  const Exported narrow = letters(16);
  EXPECT_THAT(outcome_of([&] {
                export_file(folder / "x", "gguf", narrow.manifest, narrow.tensors,
                            {.weights = "q8_0"});
              }),
              HasSubstr("has rows whose length 32 does not divide, for q8_0: choose fp16"));
}

TEST(ExportFile, RefusesWhatItDoesNotKnow) {
  const TempDir folder;
  Exported net = pictures();
  const auto refusal = [&](const std::string& format) {
    return outcome_of([&] { export_file(folder / "x", format, net.manifest, net.tensors); });
  };
  EXPECT_THAT(refusal("nope"), HasSubstr("got nope; allowed: tare, gguf, onnx, pt2, safetensors"));
  EXPECT_THAT(refusal("gguf"), HasSubstr("the model is resnet9: GGUF is for the model gpt"));
  EXPECT_THAT(outcome_of([&] {
                export_file(folder / "x", "onnx", net.manifest, net.tensors, {.weights = "fp8"});
              }),
              HasSubstr("--weights is no storage of onnx, got fp8; allowed: fp32"));
  net.manifest.model = {};
  EXPECT_THAT(refusal("pt2"), HasSubstr("is not in the registry"));
  EXPECT_EQ(refusal("safetensors"), "accepted");
  EXPECT_EQ(checkpoint::SafeTensors::open(folder / "x").all().size(), net.tensors.size());
}

}  // namespace
}  // namespace tare::interchange
