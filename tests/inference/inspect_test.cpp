#include "tare/inference/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const std::string text = inspect(dir / "m.tare");
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

TEST(Inspect, SaysWhatIsWrongWithADamagedBundle) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  flip_last_bit(dir / "m.tare");
  const std::string text = inspect(dir / "m.tare");
  EXPECT_THAT(text, HasSubstr(", damaged\n"));
  EXPECT_THAT(text, HasSubstr("another hash"));
  EXPECT_THAT(text, Not(HasSubstr("verified")));
}

TEST(Inspect, DescribesACheckpointAndItsDamage) {
  const TempDir dir;
  checkpoint::save(dir / "c", {.model = small_model().state(),
                               .optimizer = {{"exp_avg/w", at::rand({2, 3})}},
                               .extra = {},
                               .state = R"({"epoch":7})"});
  const std::string text = inspect(dir / "c");
  EXPECT_THAT(text, HasSubstr("checkpoint, verified"));
  EXPECT_THAT(text, HasSubstr(R"({"epoch":7})"));
  EXPECT_THAT(text, HasSubstr("exp_avg/w"));
  flip_last_bit(dir / "c/model.safetensors");
  EXPECT_THAT(inspect(dir / "c"), HasSubstr("checkpoint, damaged"));
}

TEST(Inspect, DescribesAPlainFileAndEscapesItsText) {
  const TempDir dir;
  checkpoint::write(dir / "w", {{"weight", at::rand({2, 3})}}, {{"note", "line\n\x1b[31mred"}});
  const std::string text = inspect(dir / "w");
  EXPECT_THAT(text, HasSubstr("safetensors file"));
  EXPECT_THAT(text, HasSubstr("weight"));
  EXPECT_THAT(text, HasSubstr("1 tensors, 6 elements, 24 B"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Inspect, OtherFilesAreErrors) {
  const TempDir dir;
  EXPECT_THROW((void)inspect(dir / "none"), IoError);
  overwrite(dir / "text", "this is a text file, and a long one");
  EXPECT_THROW((void)inspect(dir / "text"), FormatError);
  io::make_directories(dir / "folder");
  EXPECT_THROW((void)inspect(dir / "folder"), FormatError);
}

}  // namespace
}  // namespace tare
