// Checkpoints that are saved, replaced, read back and refused.
#include "tare/checkpoint/checkpoint.h"

#include <nlohmann/json.hpp>

#include "checkpoint/support.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/manifest.h"

namespace tare::checkpoint {
namespace {

using nlohmann::json;
using tare::testing::TempDir;

Contents small() {
  return {.model = {{"fc.weight", counting({3, 4})}, {"fc.bias", counting({3})}},
          .optimizer = {{"exp_avg/fc.weight", counting({3, 4}).add(1)}},
          .extra = {{"rng/cpu", counting({16}, at::kByte)}},
          .state = R"({"epoch":3,"nested":{"lr":0.001}})"};
}

void expect_same(const std::vector<NamedTensor>& got, std::vector<NamedTensor> expected) {
  std::ranges::sort(expected, {}, &NamedTensor::name);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, expected[i].name);
    EXPECT_TRUE(same(got[i].tensor, expected[i].tensor)) << got[i].name;
  }
}

std::string refused_checkpoint(const std::filesystem::path& path) {
  return refused_part([&] { (void)load(path); });
}

TEST(Checkpoint, GivesBackWhatWasSaved) {
  const TempDir dir;
  save(dir / "runs/step-1", small());
  const Loaded loaded = load(dir / "runs/step-1");
  expect_same(loaded.model, small().model);
  expect_same(loaded.optimizer, small().optimizer);
  expect_same(loaded.extra, small().extra);
  EXPECT_EQ(json::parse(loaded.state), json::parse(small().state));
  EXPECT_TRUE(loaded.has_optimizer);
  EXPECT_EQ(loaded.tare_version, tare_version());
  EXPECT_EQ(loaded.libtorch_version, libtorch_version());
}

TEST(Checkpoint, LeavesOutFilesWithoutTensors) {
  const TempDir dir;
  save(dir / "c", {.model = small().model, .optimizer = {}, .extra = {}});
  EXPECT_FALSE(std::filesystem::exists(dir / "c/optimizer.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(dir / "c/extra.safetensors"));
  const Loaded loaded = load(dir / "c");
  EXPECT_FALSE(loaded.has_optimizer);
  EXPECT_EQ(loaded.state, "{}");
}

TEST(Checkpoint, WithoutOptimizerItsFileIsNotRead) {
  const TempDir dir;
  save(dir / "c", small());
  overwrite(dir / "c/optimizer.safetensors", "damaged");
  const Loaded loaded = load(dir / "c", {.with_optimizer = false});
  EXPECT_TRUE(loaded.optimizer.empty());
  EXPECT_TRUE(loaded.has_optimizer);
  EXPECT_EQ(refused_checkpoint(dir / "c"), "optimizer.safetensors");
}

TEST(Checkpoint, ReplacesAnOlderOneWhole) {
  const TempDir dir;
  save(dir / "c", small());
  const Loaded old = load(dir / "c");
  save(dir / "c", {.model = {{"other", counting({2})}}, .optimizer = {}, .extra = {}});
  expect_same(load(dir / "c").model, {{"other", counting({2})}});
  expect_same(old.model, small().model);  // mapped tensors live on
  EXPECT_FALSE(std::filesystem::exists(dir / "c.partial"));
  EXPECT_FALSE(std::filesystem::exists(dir / "c.old"));
}

TEST(Checkpoint, AFileOfAnotherCheckpointIsForeign) {
  const TempDir dir;
  Contents other = small();
  other.model[0].tensor = other.model[0].tensor.add(1);
  save(dir / "a", small());
  save(dir / "b", other);
  overwrite(dir / "a/model.safetensors", read_file(dir / "b/model.safetensors"));
  EXPECT_EQ(refused_checkpoint(dir / "a"), "fc.weight");
}

TEST(Checkpoint, WhatIsNoCheckpointIsRefused) {
  const TempDir dir;
  EXPECT_THROW((void)load(dir / "none"), IoError);
  EXPECT_FALSE(checkpoint::exists(dir / "none"));
  io::make_directories(dir / "empty");
  EXPECT_EQ(refused_checkpoint(dir / "empty"), "manifest.json");
  EXPECT_FALSE(checkpoint::exists(dir / "empty"));
  overwrite(dir / "file", "text");
  EXPECT_EQ(refused_checkpoint(dir / "file"), "");
  save(dir / "c", small());
  EXPECT_TRUE(checkpoint::exists(dir / "c"));
  io::remove_all(dir / "c/extra.safetensors");
  EXPECT_EQ(refused_checkpoint(dir / "c"), "extra.safetensors");
}

TEST(Checkpoint, APartialOneIsNeverBelieved) {
  const TempDir dir;
  save(dir / "c", small());
  std::filesystem::rename(dir / "c", dir / "c.partial");
  EXPECT_THROW((void)load(dir / "c"), IoError);
  EXPECT_EQ(refused_checkpoint(dir / "c.partial"), "");
}

TEST(Checkpoint, TheOldOneIsReadWhereAKilledSaveLeftOnlyThat) {
  const TempDir dir;
  save(dir / "c", small());
  std::filesystem::rename(dir / "c", dir / "c.old");
  EXPECT_TRUE(checkpoint::exists(dir / "c"));
  expect_same(load(dir / "c").model, small().model);
}

TEST(Checkpoint, ABadStateIsRefusedBeforeAnythingIsWritten) {
  const TempDir dir;
  Contents contents = small();
  for (const std::string& state :
       {std::string(""), std::string("[]"), std::string("{\"a\":1,\"a\":2}"),
        "{\"a\":" + std::string(31, '[') + std::string(31, ']') + "}"}) {
    contents.state = state;
    EXPECT_EQ(refused_part([&] { save(dir / "c", contents); }).empty(), false);
    EXPECT_FALSE(std::filesystem::exists(dir / "c")) << state;
    EXPECT_FALSE(std::filesystem::exists(dir / "c.partial")) << state;
  }
}

}  // namespace
}  // namespace tare::checkpoint
