// Tests what is read about other processes.
#include "tare/runtime/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/temp_dir.h"

namespace tare::runtime {
namespace {

using tare::testing::TempDir;
using ::testing::HasSubstr;

void write(const TempDir& root, const std::string& path, const std::string& text) {
  std::filesystem::create_directories((root / path).parent_path());
  std::ofstream(root / path, std::ios::binary) << text;
}

TEST(LargestProcesses, AreOrderedByTheirResidentSet) {
  const TempDir root;
  for (const auto& [path, text] : {std::pair{"proc/12/statm", "900 50 1"},
                                   {"proc/7/statm", "9 8 1"},
                                   {"proc/300/statm", "70 60 1"},
                                   {"proc/301/statm", "70 60 1"},
                                   {"proc/2/statm", "0 0 0"},
                                   {"proc/31/comm", "ended"},
                                   {"proc/12x/statm", "900 900 900"},
                                   {"proc/self/statm", "900 900 900"}})
    write(root, path, text);
  const auto all = largest_processes(100, root.path());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].id, 300);
  EXPECT_EQ(all[1].id, 301);
  EXPECT_EQ(all[2].id, 12);
  EXPECT_EQ(all[2].resident_bytes, 50 * ::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(all[3].id, 7);
  EXPECT_EQ(largest_processes(2, root.path()).size(), 2U);
  EXPECT_TRUE(largest_processes(2, root / "absent").empty());
}

TEST(LargestProcesses, HaveThisOneAmongThem) {
  const auto all = largest_processes(1'000'000);
  const auto found = std::ranges::find(all, ::getpid(), &ProcessMemory::id);
  ASSERT_NE(found, all.end());
  EXPECT_GT(found->resident_bytes, 1 << 20);
}

TEST(OwnerOf, ReadsUserAndCommand) {
  const TempDir root;
  const std::string status = "Name:\tx\nUid:\t4000111222\t0\t0\t0\n";
  write(root, "proc/5/status", status);
  write(root, "proc/5/cmdline", std::string("train\0--lr\0\033[31m\0", 16));
  const auto owner = owner_of(5, root.path());
  EXPECT_EQ(owner.user, "4000111222") << "a number without a name";
  EXPECT_EQ(owner.command, "train --lr \033[31m") << "as it is: for printable()";
  write(root, "proc/6/status", "Name:\tx\n");
  write(root, "proc/6/comm", "kworker\n");
  EXPECT_EQ(owner_of(6, root.path()).user, "?");
  EXPECT_EQ(owner_of(6, root.path()).command, "[kworker]");
  EXPECT_EQ(owner_of(7, root.path()).user, "");
}

TEST(OwnerOf, KnowsThisProcess) {
  const auto owner = owner_of(::getpid());
  EXPECT_THAT(owner.command, HasSubstr("runtime_test"));
  EXPECT_FALSE(owner.user.empty());
}

}  // namespace
}  // namespace tare::runtime
