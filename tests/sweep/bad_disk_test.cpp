// Sweeps on disks that are full, or may not be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "support/fault_file_system.h"
#include "support/small_disk.h"
#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/error.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using sweep::SweepReport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kFour = "parameters: {a: {min: 1, max: 4}}\nresources: {jobs: 1}\n";

class BadDiskTest : public ShellSweepTest {
 protected:
  /// The sweep on a disk of its own.
  [[nodiscard]] sweep::SweepOptions on(const SmallDisk& disk) const {
    auto sweep = read(kFour);
    sweep.log_dir = disk.path();
    return sweep;
  }
  static std::vector<fs::path> leftovers(const fs::path& folder) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".partial") found.push_back(entry.path());
    return found;
  }
  /// With space again, the same sweep runs what has not, and nothing is damaged.
  void expect_goes_on(const sweep::SweepOptions& sweep) {
    const auto store = sweep.log_dir / "s.sqlite";
    EXPECT_THAT(rows(store, "PRAGMA integrity_check"), ElementsAre("ok"));
    EXPECT_THAT(leftovers(sweep.log_dir), IsEmpty());
    const SweepReport report = sweep::run_sweep(sweep, host_of(sweep, "pause=0; train 0.1 0.2"));
    EXPECT_EQ(report.complete, 4);
    EXPECT_EQ(report.failed, 0) << "a full disk is not a run's fault";
    EXPECT_THAT(rows(store, "PRAGMA integrity_check"), ElementsAre("ok"));
    const std::string table = io::read_text(sweep.log_dir / "run_data.csv");
    EXPECT_EQ(std::ranges::count(table, '\n'), 5) << table;
    for (const auto& trial : sweep::read_store(store, "s").trials)
      for (const char* name : {"history.json", "run_data.json", "acc.svg", "acc.png"})
        EXPECT_GT(fs::file_size(sweep.log_dir / trial.run_name / name), 0U) << trial.run_name;
  }
};

TEST_F(BadDiskTest, ADiskThatFillsUpEndsTheSweepWhichContinuesLater) {
  const SmallDisk disk(int64_t{8} << 20);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  const auto sweep = on(disk);
  // Unlike a shell's, a run's own files are never half written.
  const auto host = host_of(sweep,
                            "if test $a = 3; then cat /dev/zero > $folder/../ballast; exit 4; fi; "
                            "pause=0; train 0.1 0.2");
  try {
    (void)sweep::run_sweep(sweep, host);
    ADD_FAILURE() << "there was no space";
  } catch (const IoError& error) {
    EXPECT_EQ(error.path().find(disk.path().string()), 0U) << error.what();
  }
  fs::remove(disk.path() / "ballast");
  expect_goes_on(sweep);
}

// Fills the disk at twelve of the coordinator's own file calls; it stays full from there on.
TEST_F(BadDiskTest, NothingIsLostWhereverTheDiskIsFull) {
  int64_t calls = 0;
  const auto sweep = read(kFour);
  const auto host = host_of(sweep, "pause=0; train 0.1 0.2");
  {
    const FaultFileSystem counting;
    (void)sweep::run_sweep(sweep, host);
    calls = counting.count();
  }
  constexpr int64_t kPlaces = 12;
  for (int64_t place = 0; place < kPlaces; ++place) {
    SCOPED_TRACE(place);
    io::remove_all(sweep.log_dir);
    try {
      const FaultFileSystem full(
          {.at = 1 + place * calls / kPlaces, .error_number = ENOSPC, .sticky = true});
      (void)sweep::run_sweep(sweep, host);
    } catch (const IoError& error) {
      EXPECT_EQ(error.error_number(), ENOSPC) << error.what();
    }
    if (!fs::exists(store())) continue;
    for (const auto& left : leftovers(sweep.log_dir)) io::remove_all(left);  // no call removed it
    expect_goes_on(sweep);
  }
}

TEST_F(BadDiskTest, AFolderThatMayNotBeWrittenIsRefusedBeforeAnythingStarts) {
  const SmallDisk disk(int64_t{8} << 20);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  const auto sweep = on(disk);
  auto host = host_of(sweep, "finish 1 1");
  const auto refused = [&](const sweep::SweepOptions& options) {
    try {
      (void)sweep::run_sweep(options, host);
      ADD_FAILURE() << "it cannot be written";
    } catch (const IoError& error) {
      EXPECT_EQ(error.error_number(), EROFS) << error.what();
      EXPECT_EQ(error.path(), options.log_dir.string());
    }
  };
  host.command = [](const auto&, const auto&, int64_t) -> std::vector<std::string> {
    ADD_FAILURE() << "a run was started";
    return {"false"};
  };
  ASSERT_TRUE(disk.set_read_only(true));
  refused(sweep);
  auto inside = sweep;
  inside.log_dir = disk.path() / "logs";
  refused(inside);
  EXPECT_EQ(out_.str(), "");
  ASSERT_TRUE(disk.set_read_only(false));
  EXPECT_EQ(sweep::run_sweep(sweep, host_of(sweep, "finish 1 1")).complete, 4);
}

TEST_F(BadDiskTest, ANameThatNoFolderCanHaveIsRefusedBeforeAnythingStarts) {
  auto sweep = read(kFour);
  sweep.log_dir = files_.log_dir() / std::string(256, 'n');
  auto host = host_of(sweep, "finish 1 1");
  try {
    (void)sweep::run_sweep(sweep, host);
    ADD_FAILURE() << "no file system takes such a name";
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), ENAMETOOLONG) << error.what();
  }
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace tare::testing
