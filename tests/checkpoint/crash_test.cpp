// Every call of a save fails, or ends the process: what is left is always a whole checkpoint, the
// old or the new one.
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/support.h"
#include "support/fault_file_system.h"
#include "support/power_loss.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/checkpoint.h"

namespace tare::checkpoint {
namespace {

using tare::testing::Fault;
using tare::testing::FaultFileSystem;
using tare::testing::PowerLossFileSystem;
using tare::testing::TempDir;

Contents version(int64_t number) {
  return {.model = {{"w", counting({8}).add(number)}},
          .optimizer = {{"m/w", counting({8})}},
          .extra = {},
          .state = "{\"version\":" + std::to_string(number) + "}"};
}

int64_t calls_of_a_save(const std::filesystem::path& path, bool without_exchange) {
  FaultFileSystem counter;
  counter.without_exchange = without_exchange;
  save(path, version(2));
  return counter.count();
}

// Old or new, and whole: the weights are those of the state.
int64_t version_found(const std::filesystem::path& path) {
  const Loaded loaded = load(path);
  const int64_t number = loaded.state == R"({"version":1})" ? 1 : 2;
  EXPECT_TRUE(same(loaded.model.at(0).tensor, version(number).model[0].tensor));
  return number;
}

class CrashingSave : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Rename, CrashingSave, ::testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "InTwoSteps" : "Exchange");
});

TEST_P(CrashingSave, LeavesTheOldOrTheNewCheckpointWhole) {
  const TempDir dir;
  save(dir / "count", version(1));
  const int64_t calls = calls_of_a_save(dir / "count", GetParam());
  ASSERT_GT(calls, 15);
  int64_t old_ones = 0, new_ones = 0;
  for (int64_t k = 1; k <= calls; ++k) {
    const auto path = dir / ("c" + std::to_string(k));
    save(path, version(1));
    const pid_t child = ::fork();
    if (child == 0) {
      FaultFileSystem faulty({.at = k, .kind = Fault::Kind::exit});
      faulty.without_exchange = GetParam();
      save(path, version(2));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == FaultFileSystem::kExitCode)
        << "call " << k;
    (version_found(path) == 1 ? old_ones : new_ones)++;
    save(path, version(2));  // what the killed one left is in nobody's way
    EXPECT_EQ(version_found(path), 2);
  }
  EXPECT_GT(old_ones, 0);
  EXPECT_GT(new_ones, 0);
}

class PowerLoss : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Disk, PowerLoss, ::testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "WritesNamesFirst" : "DropsUnflushedNames");
});

TEST_P(PowerLoss, KeepsTheOldOrTheNewCheckpointWhole) {
  int64_t old_ones = 0, new_ones = 0;
  for (int64_t k = 1, done = 0; done == 0; ++k) {
    const TempDir dir, after;
    save(dir / "c", version(1));
    {
      PowerLossFileSystem disk(dir.path(), k, GetParam());
      try {
        save(dir / "c", version(2));
        done = 1;
      } catch (const IoError&) {
      }
      disk.restore_into(after.path());
    }
    const int64_t found = version_found(after / "c");
    (found == 1 ? old_ones : new_ones)++;
    EXPECT_TRUE(done == 0 || found == 2) << "what save() returned from is safe";
    save(after / "c", version(2));
    EXPECT_EQ(version_found(after / "c"), 2);
  }
  EXPECT_GT(old_ones, 0);
  EXPECT_GT(new_ones, 0);
}

TEST(FailingSave, EveryErrorIsAnIoErrorAndLeavesTheOldCheckpoint) {
  const TempDir dir;
  save(dir / "c", version(1));
  save(dir / "count", version(1));
  const int64_t calls = calls_of_a_save(dir / "count", false);
  for (const int error : {ENOSPC, EIO, EROFS}) {
    for (int64_t k = 1; k <= calls; ++k) {
      bool failed = false;
      {
        const FaultFileSystem faulty({.at = k, .error_number = error});
        try {
          save(dir / "c", version(2));
        } catch (const IoError&) {
          failed = true;
        }
      }
      const int64_t found = version_found(dir / "c");
      EXPECT_TRUE(failed || found == 2) << "call " << k << " failed silently";
      save(dir / "c", version(1));
    }
  }
}

TEST(FailingSave, InterruptedAndShortWritesAreCompleted) {
  const TempDir dir;
  save(dir / "count", version(1));
  const int64_t calls = calls_of_a_save(dir / "count", false);
  for (int64_t k = 1; k <= calls; ++k) {
    {
      const FaultFileSystem faulty({.at = k, .kind = Fault::Kind::short_write});
      save(dir / "c", version(2));
    }
    EXPECT_EQ(version_found(dir / "c"), 2);
    io::remove_all(dir / "c");
  }
}

}  // namespace
}  // namespace tare::checkpoint
