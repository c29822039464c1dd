// Runs that are forked from a prepared process.
#include "tare/launch/fork_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <thread>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

using launch::Child;
using launch::ChildStart;
using launch::ForkServer;

int inherited = 0;

/// "exit N", "say TEXT", "variable NAME", "signal N", "sleep", "inherited", "session".
int act(const std::vector<std::string>& words) {
  const std::string& what = words.at(0);
  if (what == "exit") return std::stoi(words.at(1));
  if (what == "say") std::cout << words.at(1), std::cerr << "wrong";
  if (what == "variable") std::cout << std::getenv(words.at(1).c_str());
  if (what == "signal") raise(std::stoi(words.at(1)));
  if (what == "inherited") return inherited;
  if (what == "session") return getsid(0) == getpid() && getpgrp() == getpid() ? 0 : 1;
  while (what == "sleep") pause();
  return 0;
}

/// The processes that are children of this one and have not ended, the oldest first.
std::vector<pid_t> living_children() {
  std::istringstream text(
      io::read_text("/proc/self/task/" + std::to_string(gettid()) + "/children"));
  std::vector<pid_t> all;
  for (pid_t pid = 0; text >> pid;)
    if (is_alive(launch::process_id_of(pid))) all.push_back(pid);
  return all;
}

/// Waits, behind a server, until the process that waited for its next run has ended too.
struct AwaitsChildren {
  ~AwaitsChildren() {
    while (!living_children().empty()) std::this_thread::yield();
  }
};

class ForkServerTest : public ::testing::Test {
 protected:
  [[nodiscard]] ChildStart start(std::vector<std::string> command) const {
    return {.command = std::move(command),
            .out = folder_ / "out",
            .err = folder_ / "err",
            .environment = {{"TARE_TEST_WORD", "word"}}};
  }
  [[nodiscard]] int exit_code(std::vector<std::string> command) {
    return server_.start(start(std::move(command))).wait().exit_code;
  }
  [[nodiscard]] std::string out() const { return io::read_text(folder_ / "out"); }

  TempDir folder_;
  AwaitsChildren awaits_children_;
  ForkServer server_{[] { inherited = 7; }, act};
};

TEST_F(ForkServerTest, ARunIsAChildWithItsOwnSessionAndFiles) {
  EXPECT_EQ(exit_code({"exit", "3"}), 3);
  EXPECT_EQ(exit_code({"session"}), 0);
  EXPECT_EQ(exit_code({"say", "this"}), 0);
  EXPECT_EQ(out(), "this");
  EXPECT_EQ(io::read_text(folder_ / "err"), "wrong");
  EXPECT_EQ(exit_code({"variable", "TARE_TEST_WORD"}), 0);
  EXPECT_EQ(out(), "thisword") << "appended";
  EXPECT_EQ(std::getenv("TARE_TEST_WORD"), nullptr);
}

TEST_F(ForkServerTest, ARunHasWhatTheServerPrepared) {
  EXPECT_EQ(exit_code({"inherited"}), 7);
  EXPECT_EQ(inherited, 0) << "not in this process";
}

TEST_F(ForkServerTest, EndsAreThoseOfChildren) {
  EXPECT_EQ(server_.start(start({"signal", "9"})).wait().signal, SIGKILL);
  Child child = server_.start(start({"sleep"}));
  EXPECT_TRUE(is_alive(child.id()));
  pollfd end{child.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 0), 0);
  child.send(SIGTERM);
  EXPECT_EQ(poll(&end, 1, 10'000), 1);
  EXPECT_EQ(child.wait().signal, SIGTERM);
}

TEST_F(ForkServerTest, ManyRunAtATime) {
  std::vector<Child> all;
  for (int i = 0; i < 64; ++i) all.push_back(server_.start(start({"sleep"})));
  std::vector<Child> more;
  for (int i = 0; i < 64; ++i) more.push_back(server_.start(start({"exit", std::to_string(i)})));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(more[static_cast<size_t>(i)].wait().exit_code, i);
  const auto mark = all.front().id();
  all.clear();
  EXPECT_FALSE(is_alive(mark));
}

TEST_F(ForkServerTest, LongCommandsAreExecuted) {
  const ChildStart long_one = start({"/bin/sh", "-c", "exit 4", std::string(100'000, 'x')});
  EXPECT_EQ(server_.start(long_one).wait().exit_code, 4);
}

TEST_F(ForkServerTest, AFileThatCannotBeMadeIsAnError) {
  ChildStart wrong = start({"exit", "0"});
  wrong.out = folder_ / "absent" / "out";
  EXPECT_THROW((void)server_.start(wrong), IoError);
  EXPECT_EQ(exit_code({"exit", "5"}), 5) << "and the server continues";
}

TEST_F(ForkServerTest, TheProcessThatWaitsForARunMayBeKilled) {
  EXPECT_EQ(exit_code({"exit", "1"}), 1);
  std::vector<pid_t> children;
  while ((children = living_children()).size() < 2) std::this_thread::yield();
  const pid_t waiting = children.back();  // behind the server
  kill(waiting, SIGKILL);
  waitpid(waiting, nullptr, 0);
  EXPECT_EQ(exit_code({"exit", "6"}), 6);
}

// The command is executed then, as the test's own words are by a shell.
TEST_F(ForkServerTest, OneThatIsKilledIsReplacedByExecution) {
  EXPECT_EQ(exit_code({"exit", "1"}), 1);
  std::vector<pid_t> both;  // the server, and the process that waits behind it
  while ((both = living_children()).size() < 2) std::this_thread::yield();
  for (const pid_t pid : both) {
    kill(pid, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(exit_code({"/bin/sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(exit_code({"/bin/sh", "-c", "test $TARE_TEST_WORD = word && echo said"}), 0);
  EXPECT_THAT(out(), ::testing::EndsWith("said\n"));
}

TEST(ForkServer, IsRefusedBesideOtherThreads) {
  const std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  EXPECT_THROW(ForkServer([] {}, act), StateError);
}

TEST(ForkServer, RunsEndWithThisProcess) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer begins a thread in each process, and a server needs one of one";
#endif
  const TempDir folder;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t coordinator = fork();
  if (coordinator == 0) {
    try {
      ForkServer server([] {}, act);
      const Child child =
          server.start({.command = {"sleep"}, .out = folder / "out", .err = folder / "err"});
      const auto mark = child.id();
      const int64_t id[2]{mark.pid, mark.started_ticks};
      if (write(ends[1], id, sizeof id) != sizeof id) _exit(1);
      pause();
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(1);
  }
  close(ends[1]);
  int64_t id[2]{};
  ASSERT_EQ(read(ends[0], id, sizeof id), static_cast<ssize_t>(sizeof id));
  auto mark = launch::process_id_of(id[0]);
  ASSERT_EQ(mark.started_ticks, id[1]);
  ASSERT_TRUE(is_alive(mark));
  kill(coordinator, SIGKILL);
  waitpid(coordinator, nullptr, 0);
  while (is_alive(mark)) std::this_thread::yield();  // the test's own limit of time ends it
  close(ends[0]);
}

}  // namespace
}  // namespace tare::testing
