// How many processors a process may use.
#include "tare/runtime/threads.h"

#include <gtest/gtest.h>

#include <string>

#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::runtime {
namespace {

using tare::testing::TempDir;

void write_file(const TempDir& root, const std::string& name, std::string_view text) {
  const auto path = root.path() / name;
  io::make_directories(path.parent_path());
  io::write_atomically(path, text);
}

TEST(UsableProcessors, AreAtLeastOne) {
  const TempDir root;
  EXPECT_GE(usable_processors(), 1);
  EXPECT_GE(usable_processors(root.path()), 1);
}

TEST(UsableProcessors, AreBoundedByTheGroupsQuota) {
  const TempDir root;
  write_file(root, "proc/self/cgroup", "0::/job\n");
  write_file(root, "sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_processors(root.path()), 1);
}

}  // namespace
}  // namespace tare::runtime
