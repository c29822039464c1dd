// Edits of a sweep's file while it runs.
#include "tare/sweep/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/support.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

class SweepFileTest : public ::testing::Test {
 protected:
  SweepFileTest() {
    io::write_atomically(folder_ / "recipe.yaml", "name: r\na: 1\n");
    write("parameters: {a: [1, 2]}\n");
  }
  void write(const std::string& text) const {
    io::write_atomically(path(), "name: s\nrecipe: recipe.yaml\n" + text);
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "sweep.yaml"; }

  TempDir folder_;
};

TEST_F(SweepFileTest, SaysEachEditOnce) {
  sweep::SweepFile file(path(), {"trials=3"});
  EXPECT_EQ(file.options().trials, 3);
  EXPECT_FALSE(file.changed());
  write("parameters: {a: [1, 2, 5]}\n");
  const auto edited = file.changed();
  ASSERT_TRUE(edited);
  EXPECT_EQ(edited->parameters.parameters[0].values.size(), 3U);
  EXPECT_EQ(edited->trials, 3) << "with the same overrides";
  EXPECT_FALSE(file.changed());
  write("parameters: {a: [1, 2, 5]}\n");
  EXPECT_FALSE(file.changed()) << "written again, with the same text";
}

TEST_F(SweepFileTest, AMistakeIsReportedOnceAndChangesNothing) {
  sweep::SweepFile file(path(), {});
  write("parameters: {a: [1, 2\n");
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(file.changed());
  EXPECT_FALSE(file.changed());
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr("sweep.yaml:"));
  EXPECT_THAT(output, HasSubstr("; the sweep continues as before\n"));
  EXPECT_EQ(std::ranges::count(output, '\n'), 1) << output;
  EXPECT_EQ(file.options().parameters.parameters[0].values.size(), 2U);
  write("parameters: {a: [7]}\n");
  EXPECT_TRUE(file.changed()) << "the next one counts again";
}

TEST_F(SweepFileTest, AFileThatIsGoneForAWhileChangesNothing) {
  sweep::SweepFile file(path(), {});
  std::filesystem::remove(path());
  EXPECT_FALSE(file.changed());
  write("parameters: {a: [1]}\n");
  EXPECT_TRUE(file.changed());
  EXPECT_THROW(sweep::SweepFile(folder_ / "absent", {}), IoError);
}

}  // namespace
}  // namespace tare::testing
