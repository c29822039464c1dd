// Tests the list of backends, and what is read about the machine and its control groups.
#include "tare/memory/backend.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/memory/cgroup.h"
#include "tare/memory/machine.h"

namespace tare::memory {
namespace {

using tare::testing::TempDir;

TEST(Backend, ListsTheHostFirst) {
  ASSERT_FALSE(devices().empty());
  EXPECT_EQ(devices().front(), c10::Device(c10::kCPU));
  EXPECT_EQ(backend(c10::kCPU).device(), c10::Device(c10::kCPU));
}

TEST(Backend, NamesTheDevicesThatAreThere) {
  try {
    static_cast<void>(backend(c10::Device(c10::kCUDA, 99)));
    FAIL() << "a device that is not there was given";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:99"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("cpu"), std::string::npos);
  }
}

TEST(OpenPeaks, ClosingAScopeThatIsNotOpenChangesNothing) {
  OpenPeaks peaks;
  PeakRecord open, other;
  peaks.open(open, 10);
  peaks.close(other);
  peaks.fold(50);
  EXPECT_EQ(open.peak_bytes, 50);
}

TEST(Process, ResidentBytesGrowWithTouchedPages) {
  const int64_t before = resident_bytes();
  const auto tensor = at::empty({64_MiB}, at::kByte).fill_(1);
  EXPECT_GE(resident_bytes() - before, 60_MiB);
}

TEST(Process, ReadsTheMachine) {
  const auto memory = machine_memory();
  EXPECT_GT(memory.available_bytes, 0);
  EXPECT_GE(memory.total_bytes, memory.available_bytes);
  EXPECT_FALSE(processor_name().empty());
}

void write_file(const TempDir& root, const std::string& name, std::string_view text) {
  const auto path = root.path() / name;
  io::make_directories(path.parent_path());
  io::write_atomically(path, text);
}

TEST(Cgroup, IsUnboundedWithoutFiles) {
  const TempDir root;
  EXPECT_EQ(cgroup_processors(root.path()), std::nullopt);
  EXPECT_FALSE(cgroup_memory(root.path()));
}

TEST(Cgroup, TakesTheTightestQuotaOfTheGroupAndItsParents) {
  const TempDir root;
  write_file(root, "proc/self/cgroup", "0::/job/task\n");
  write_file(root, "sys/fs/cgroup/job/task/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_processors(root.path()), std::nullopt);
  write_file(root, "sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_processors(root.path()), 0.5);
  write_file(root, "sys/fs/cgroup/cpu.max", "25000 100000\n");
  EXPECT_EQ(cgroup_processors(root.path()), 0.25);
}

TEST(Cgroup, ReadsVersionOne) {
  const TempDir root;
  write_file(root, "proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n");
  write_file(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  write_file(root, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_processors(root.path()), std::nullopt);
  write_file(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(cgroup_processors(root.path()), 1.5);
  write_file(root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  write_file(root, "sys/fs/cgroup/memory/a/memory.usage_in_bytes", "700\n");
  write_file(root, "sys/fs/cgroup/memory/a/memory.stat", "cache 9\ntotal_inactive_file 100\n");
  EXPECT_EQ(cgroup_memory(root.path())->limit_bytes, 1000);
  EXPECT_EQ(cgroup_memory(root.path())->used_bytes, 600);
}

TEST(Cgroup, NeverUsesLessThanNothing) {
  const TempDir root;
  write_file(root, "proc/self/cgroup", "5:memory:/\n");
  write_file(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write_file(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n");
  write_file(root, "sys/fs/cgroup/memory/memory.stat", "total_inactive_file 800\n");
  EXPECT_EQ(cgroup_memory(root.path())->used_bytes, 0);
}

TEST(Cgroup, CountsAllAsUsedWhereNoFileSaysWhatIsCache) {
  const TempDir root;
  write_file(root, "proc/self/cgroup", "0::/\n");
  write_file(root, "sys/fs/cgroup/memory.max", "1000\n");
  write_file(root, "sys/fs/cgroup/memory.current", "700\n");
  EXPECT_EQ(cgroup_memory(root.path())->used_bytes, 700);
}

TEST(Cgroup, BoundsTheMachinesMemory) {
  const TempDir root;
  write_file(root, "proc/meminfo", "MemTotal:  8 kB\nMemFree: 1 kB\nMemAvailable:  4 kB\n");
  EXPECT_EQ(machine_memory(root.path()).total_bytes, 8192);
  EXPECT_EQ(machine_memory(root.path()).available_bytes, 4096);
  write_file(root, "proc/self/cgroup", "0::/\n");
  write_file(root, "sys/fs/cgroup/memory.max", "3000\n");
  write_file(root, "sys/fs/cgroup/memory.current", "2500\n");
  write_file(root, "sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 500\n");
  EXPECT_EQ(machine_memory(root.path()).total_bytes, 3000);
  EXPECT_EQ(machine_memory(root.path()).available_bytes, 1000);
  write_file(root, "sys/fs/cgroup/memory.current", "9000\n");
  EXPECT_EQ(machine_memory(root.path()).available_bytes, 0);
}

TEST(Cgroup, SurvivesFilesOfAnotherForm) {
  const TempDir root;
  write_file(root, "proc/self/cgroup", "nonsense\n\n:::\n0::/x\n");
  write_file(root, "sys/fs/cgroup/x/cpu.max", "many few\n");
  write_file(root, "sys/fs/cgroup/x/memory.max", "");
  EXPECT_EQ(cgroup_processors(root.path()), std::nullopt);
  EXPECT_FALSE(cgroup_memory(root.path()));
}

}  // namespace
}  // namespace tare::memory
