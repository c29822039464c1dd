// Tests the output of `inspect` for good and damaged files.
#include "tare/inference/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "inference/support.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/checkpoint.h"

namespace tare {
namespace {

using tare::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

void flip_last_bit(const std::filesystem::path& path) {
  std::string content = io::read_text(path);
  content.back() = static_cast<char>(content.back() ^ 1);
  overwrite(path, content);
}

TEST(Inspect, DescribesABundle) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  EXPECT_FALSE(inspect(dir / "m.tare").is_damaged);
  const std::string text = inspect(dir / "m.tare").text;
  EXPECT_THAT(text, HasSubstr("bundle"));
  EXPECT_THAT(text, HasSubstr(", verified\n"));
  EXPECT_THAT(text, HasSubstr("mlp"));
  EXPECT_THAT(text, HasSubstr("[1, 4, 4]"));
  EXPECT_THAT(text, HasSubstr("normalise"));
  EXPECT_THAT(text, HasSubstr("3: zero, one, two"));
  EXPECT_THAT(text, HasSubstr("accuracy 0.75"));
  EXPECT_THAT(text, HasSubstr(model.state()[0].name));
  EXPECT_THAT(text, HasSubstr("float32 [8, 16]"));
}

TEST(Inspect, BeginsWithASummary) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  const std::string text = inspect(dir / "m.tare").text;
  const std::string summary = text.substr(0, text.find("\n\n"));
  EXPECT_THAT(summary, HasSubstr("model         mlp, 163 weights (parameters and buffers)\n"));
  EXPECT_THAT(summary, HasSubstr("input         images of 1 x 4 x 4\n"));
  EXPECT_THAT(summary, HasSubstr("classes       3 (zero, one, two)\n"));
  EXPECT_THAT(summary, ::testing::EndsWith("metrics       accuracy 0.75"));
}

TEST(Inspect, SaysWhichSizesMayBeAny) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest{.model = *model.spec(), .sample_shape = {40, 6}, .any_size = {0}};
  manifest.more_inputs = {{.name = "mask", .dtype = "bool", .sample_shape = {40}, .any_size = {0}}};
  write_bundle(dir / "m.tare", manifest, model.state());
  const std::string text = inspect(dir / "m.tare").text;
  EXPECT_THAT(text, HasSubstr("input         numbers, any x 6\n"));
  EXPECT_THAT(text, HasSubstr("input mask    bool any\n"));
  const auto json = nlohmann::json::parse(inspect_json(dir / "m.tare").text);
  EXPECT_EQ(json["input"]["any_size"], nlohmann::json::array({0}));
  EXPECT_EQ(json["more_inputs"][0]["any_size"], nlohmann::json::array({0}));
}

TEST(Inspect, CallsTheValuesOfARegressionNoClasses) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", {.model = *model.spec(), .sample_shape = {1, 4, 4}}, model.state());
  const std::string text = inspect(dir / "m.tare").text;
  EXPECT_THAT(text, HasSubstr("outputs       3\n"));
  EXPECT_THAT(text, Not(HasSubstr("classes       ")));
  const auto json = nlohmann::json::parse(inspect_json(dir / "m.tare").text);
  EXPECT_EQ(json["outputs"], 3);
  EXPECT_TRUE(json["classes"].is_null());
}

TEST(Inspect, CountsTheOutputsOfTheModelAndNotTheLabels) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  manifest.labels = {"zero", "one"};
  write_bundle(dir / "m.tare", manifest, model.state());
  const auto json = nlohmann::json::parse(inspect_json(dir / "m.tare").text);
  EXPECT_EQ(json["outputs"], 3);
  EXPECT_EQ(json["labels"].size(), 2U);
}

TEST(Inspect, GivesJson) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  const auto bundle = nlohmann::json::parse(inspect_json(dir / "m.tare").text);
  EXPECT_EQ(bundle["kind"], "bundle");
  EXPECT_EQ(bundle["verified"], true);
  EXPECT_EQ(bundle["model"]["name"], "mlp");
  EXPECT_EQ(bundle["model"]["options"]["hidden"], nlohmann::json({8}));
  EXPECT_EQ(bundle["input"], nlohmann::json({{"name", ""},
                                             {"kind", "image"},
                                             {"dtype", "float32"},
                                             {"shape", {1, 4, 4}},
                                             {"any_size", nlohmann::json::array()},
                                             {"levels", nullptr}}));
  EXPECT_EQ(bundle["classes"], 3);
  EXPECT_EQ(bundle["outputs"], 3);
  EXPECT_EQ(bundle["labels"], nlohmann::json({"zero", "one", "two"}));
  EXPECT_EQ(bundle["transforms"][0]["normalise"]["mean"], nlohmann::json({0.5}));
  EXPECT_EQ(bundle["metrics"][0]["value"], 0.75);
  EXPECT_EQ(bundle["tensors"].size(), model.state().size());
  EXPECT_EQ(bundle["tensors"][0]["dtype"], "float32");
  flip_last_bit(dir / "m.tare");
  const auto damaged = nlohmann::json::parse(inspect_json(dir / "m.tare").text);
  EXPECT_EQ(damaged["verified"], false);
  EXPECT_THAT(damaged["problem"].get<std::string>(), HasSubstr("another hash"));

  checkpoint::save(dir / "c", {.model = model.state(),
                               .optimizer = {{"exp_avg/w", at::rand({2, 3})}},
                               .extra = {},
                               .state = R"({"epochs_done":7,"history":[{"valid_loss":0.5}]})"});
  const auto saved = nlohmann::json::parse(inspect_json(dir / "c").text);
  EXPECT_EQ(saved["kind"], "checkpoint");
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c"))
    bytes += entry.file_size();
  EXPECT_EQ(saved["bytes"], bytes);
  EXPECT_EQ(saved["state"]["epochs_done"], 7);
  EXPECT_EQ(saved["optimizer"][0]["shape"], nlohmann::json({2, 3}));
  EXPECT_THAT(inspect(dir / "c").text, HasSubstr("trained       7 whole epochs\n"));
  EXPECT_THAT(inspect(dir / "c").text, HasSubstr("metrics       valid_loss 0.5\n"));

  checkpoint::write(dir / "w", {{"weight", at::rand({2, 3})}}, {{"note", "\x1b"}});
  const auto plain = nlohmann::json::parse(inspect_json(dir / "w").text);
  EXPECT_EQ(plain["kind"], "safetensors");
  EXPECT_TRUE(plain["verified"].is_null());
  EXPECT_EQ(plain["metadata"]["note"], "\x1b");
  EXPECT_THROW((void)inspect_json(dir / "none"), IoError);
}

// A transform of another program, which this one does not add to the registry.
class Negative final : public ImageTransform {
 public:
  [[nodiscard]] at::Tensor apply(at::Tensor images, std::span<const uint64_t>) const override {
    return images.neg_();
  }
};

TEST(Inspect, NamesTransformsThatThisProgramDoesNotHave) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  const Added negative{std::make_shared<Negative>(), {.name = "negative"}};
  const Normalise normalise{.mean = {0.5}, .std = {0.25}};
  manifest.transforms = Transforms{negative, normalise};
  write_bundle(dir / "m.tare", manifest, model.state());
  const std::string text = inspect(dir / "m.tare").text;
  EXPECT_THAT(text, HasSubstr(", verified\n"));
  EXPECT_THAT(text, HasSubstr("mlp, 163 weights"));
  EXPECT_THAT(text, HasSubstr("negative"));
  EXPECT_THAT(text, HasSubstr("normalise"));
  EXPECT_THAT(text, HasSubstr("unknown       this program has no transform 'negative'"));
  const auto bundle = nlohmann::json::parse(inspect_json(dir / "m.tare").text);
  EXPECT_EQ(bundle["verified"], true);
  EXPECT_EQ(bundle["unknown_transforms"], nlohmann::json({"negative"}));
  EXPECT_EQ(bundle["transforms"].size(), 2U);
  try {
    (void)open_bundle(dir / "m.tare");
    FAIL() << "the transform would be left out";
  } catch (const FormatError& error) {
    EXPECT_EQ(error.part(), "transforms");
    EXPECT_THAT(error.what(),
                HasSubstr("this program has no transform 'negative': call the program that "));
  }
  EXPECT_THROW((void)open_to_describe(dir / "m.tare")
                   .manifest()
                   .transforms.apply(at::rand({1, 1, 4, 4}), {}, false),
               StateError);
  flip_last_bit(dir / "m.tare");
  EXPECT_THAT(inspect(dir / "m.tare").text, HasSubstr(", damaged\n"));
  EXPECT_TRUE(inspect(dir / "m.tare").is_damaged);
  EXPECT_TRUE(inspect_json(dir / "m.tare").is_damaged);
}

TEST(Inspect, SaysWhatIsWrongWithADamagedBundle) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  flip_last_bit(dir / "m.tare");
  const std::string text = inspect(dir / "m.tare").text;
  EXPECT_THAT(text, HasSubstr(", damaged\n"));
  EXPECT_THAT(text, HasSubstr("another hash"));
  EXPECT_THAT(text, Not(HasSubstr("verified")));
}

TEST(Inspect, DescribesTruncatedFiles) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  checkpoint::write(dir / "w", {{"weight", at::rand({2, 3})}});
  for (const auto& [name, kind] : std::vector<std::pair<std::string, std::string>>{
           {"m.tare", "bundle"}, {"w", "safetensors"}}) {
    const auto path = dir / name;
    const std::string content = io::read_text(path);
    const size_t header = 8 + static_cast<unsigned char>(content[0]) +
                          (static_cast<size_t>(static_cast<unsigned char>(content[1])) << 8);
    for (const size_t size : {content.size() - 1, header - 2}) {
      overwrite(path, content.substr(0, size));
      EXPECT_THAT(inspect(path).text, HasSubstr(": " + kind));
      EXPECT_THAT(inspect(path).text, HasSubstr(", damaged\n  problem"));
      EXPECT_TRUE(inspect(path).is_damaged);
      const auto found = nlohmann::json::parse(inspect_json(path).text);
      EXPECT_EQ(found["kind"], kind);
      EXPECT_EQ(found["bytes"], size);
      EXPECT_EQ(found["verified"], false);
      EXPECT_FALSE(found["problem"].get<std::string>().empty());
      EXPECT_FALSE(found.contains("tensors"));
    }
  }
}

TEST(Inspect, DescribesACheckpointAndItsDamage) {
  const TempDir dir;
  checkpoint::save(dir / "c", {.model = small_model().state(),
                               .optimizer = {{"exp_avg/w", at::rand({2, 3})}},
                               .extra = {},
                               .state = R"({"epoch":7})"});
  const std::string text = inspect(dir / "c").text;
  EXPECT_THAT(text, HasSubstr("checkpoint, verified"));
  EXPECT_THAT(text, HasSubstr(R"({"epoch":7})"));
  EXPECT_THAT(text, HasSubstr("exp_avg/w"));
  flip_last_bit(dir / "c/model.safetensors");
  EXPECT_THAT(inspect(dir / "c").text, HasSubstr("checkpoint, damaged"));
}

TEST(Inspect, DescribesAPlainFileAndEscapesItsText) {
  const TempDir dir;
  checkpoint::write(dir / "w", {{"weight", at::rand({2, 3})}}, {{"note", "line\n\x1b[31mred"}});
  const std::string text = inspect(dir / "w").text;
  EXPECT_THAT(text, HasSubstr("safetensors file"));
  EXPECT_THAT(text, HasSubstr("weight"));
  EXPECT_THAT(text, HasSubstr("1 tensors, 6 elements, 24 B"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

std::filesystem::path golden(const std::string& name) {
  const char* source = std::getenv("TARE_SOURCE_DIR");
  return std::filesystem::path(source ? source : ".") / "tests/golden" / name;
}

TEST(Inspect, DescribesAStateDictOfPyTorch) {
  const Description found = inspect(golden("torch_nested.pt"));
  EXPECT_FALSE(found.is_damaged);
  EXPECT_THAT(found.text, HasSubstr("state dict of PyTorch, 2.6 KiB, well-formed"));
  EXPECT_THAT(found.text, HasSubstr("place         state_dict\n"));
  EXPECT_THAT(found.text, HasSubstr("not read      epoch, arch, best,"));
  EXPECT_THAT(found.text, HasSubstr("2 tensors, 8 elements, 32 B"));
  EXPECT_THAT(found.text, HasSubstr("module.weight  float32 [2, 3]"));
  const auto json = nlohmann::json::parse(inspect_json(golden("torch_nested.pt")).text);
  EXPECT_EQ(json["kind"], "pytorch");
  EXPECT_EQ(json["verified"], nullptr);
  EXPECT_EQ(json["place"], "state_dict");
  EXPECT_EQ(json["not_read"].size(), 8U);
  EXPECT_EQ(json["tensors"][1]["name"], "module.bias");
}

TEST(Inspect, SaysWhyAFileOfPyTorchIsNotRead) {
  const Description found = inspect(golden("torch_call.pt"));
  EXPECT_TRUE(found.is_damaged);
  EXPECT_THAT(found.text, HasSubstr("file of PyTorch, which cannot be read"));
  EXPECT_THAT(found.text, HasSubstr("calls posix.system, which is not read"));
  const Description json = inspect_json(golden("torch_old.pt"));
  EXPECT_TRUE(json.is_damaged);
  EXPECT_THAT(json.text, HasSubstr("as PyTorch wrote before version 1.6"));
}

TEST(Inspect, OtherFilesAreErrors) {
  const TempDir dir;
  EXPECT_THROW((void)inspect(dir / "none").text, IoError);
  overwrite(dir / "text", "this is a text file, and a long one");
  EXPECT_THROW((void)inspect(dir / "text").text, FormatError);
  io::make_directories(dir / "folder");
  EXPECT_THROW((void)inspect(dir / "folder").text, FormatError);
}

}  // namespace
}  // namespace tare
