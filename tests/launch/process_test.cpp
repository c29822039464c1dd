// Processes of this machine.
#include "tare/launch/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/base/signals.h"

namespace tare::testing {
namespace {

using launch::Child;

// Executed programs inherit the signals that their parent ignores, unless the parent restores them.
TEST(Process, AProgramDoesNotInheritWhatThisOneIgnores) {
  ignore_closed_output_signal();
  ignore_file_limit_signal();
  const TempDir folder;
  Child child({.command = {"grep", "SigIgn", "/proc/self/status"},
               .out = folder / "out",
               .err = folder / "err"});
  EXPECT_EQ(child.wait().exit_code, 0);
  restore_write_signals();
  const std::string text = io::read_text(folder / "out");
  const uint64_t ignored = std::stoull(text.substr(text.find(':') + 1), nullptr, 16);
  for (const int signal : {SIGPIPE, SIGXFSZ}) EXPECT_EQ(ignored >> (signal - 1) & 1, 0U) << text;
}

TEST(Process, AnIdIsOfThisMachineOrOfAnExecutor) {
  EXPECT_EQ(launch::process_id_of(getpid()).executor(), "");
  EXPECT_TRUE(is_alive(launch::process_id_of(getpid())));
  const auto elsewhere = launch::ProcessId::of_executor("cluster");
  EXPECT_EQ(elsewhere.executor(), "cluster");
  EXPECT_FALSE(is_alive(elsewhere));
}

}  // namespace
}  // namespace tare::testing
