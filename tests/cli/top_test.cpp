// `tare top` without a GPU: the host as it is, NVIDIA's cards as tests/cuda/fake_nvml.cpp has them.
#include "tare/cli/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "support/program.h"

namespace tare::testing {
namespace {

using cli::Top;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kGiB = int64_t{1} << 30;

Top sample() {
  return {
      .driver = "580",
      .devices = {{.id = "host",
                   .name = "A processor",
                   .total_bytes = 16 * kGiB,
                   .used_bytes = 4 * kGiB,
                   .available_bytes = 12 * kGiB,
                   .limit_bytes = 16 * kGiB,
                   .processes = {{7, kGiB, "me\n", "\033[31mred\xff \xc2\x9b"}}},
                  {.id = "cuda:0", .name = "A card", .load = 0.5, .processes = {{8, {}, "", ""}}}}};
}

bool has_control_byte(const std::string& text) {
  return std::ranges::any_of(text,
                             [](unsigned char c) { return c != '\n' && (c < 32 || c == 127); });
}

TEST(Top, IsTwoTables) {
  const std::string text = cli::text(sample());
  EXPECT_THAT(text, ContainsRegex("host +A processor +- +4 GiB +12 GiB +16 GiB +25 %\n"));
  EXPECT_THAT(text, ContainsRegex("cuda:0 +A card +50 % +- +- +- +-\n"));
  EXPECT_THAT(text, ContainsRegex("host +7 +1 GiB"));
  EXPECT_THAT(text, ContainsRegex("cuda:0 +8 +hidden +- +not in /proc\n"));
  EXPECT_THAT(text, HasSubstr("host: limited to 16 GiB by the control group\nNVIDIA driver 580\n"));
  EXPECT_THAT(cli::text({.devices = {{.id = "host"}}}), HasSubstr("no NVIDIA driver\n"));
}

TEST(Top, FitsIntoTheTerminal) {
  Top top = sample();
  const std::string command(58, 'c');
  top.devices[0].processes[0].command = command;
  std::istringstream lines(cli::text(top, 72));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 72U) << line;
  EXPECT_THAT(cli::text(top, 72), HasSubstr("cc..\n"));
  EXPECT_THAT(cli::text(top), ContainsRegex(command + "\n"));
}

TEST(Top, LetsNoControlCharacterThrough) {
  const std::string text = cli::text(sample());
  EXPECT_FALSE(has_control_byte(text)) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("\\x1b[31mred"), Not(HasSubstr("\xc2\x9b"))));
  const std::string line = cli::json(sample());
  EXPECT_TRUE(std::ranges::all_of(line, [](unsigned char c) { return c >= 32 && c < 127; }))
      << line;
}

TEST(Top, IsOneLineOfJson) {
  const auto all = nlohmann::json::parse(cli::json(sample()));
  EXPECT_EQ(all.at("driver"), "580");
  const auto& host = all.at("devices").at(0);
  EXPECT_EQ(host.at("limit_bytes"), 16 * kGiB);
  EXPECT_TRUE(all.at("lost_cards").empty());
  EXPECT_TRUE(host.at("load").is_null());
  EXPECT_EQ(host.at("processes").at(0).at("bytes"), kGiB);
  const auto& card = all.at("devices").at(1);
  EXPECT_EQ(card.at("load"), 0.5);
  EXPECT_TRUE(card.at("processes").at(0).at("bytes").is_null());
}

ProgramResult top(std::vector<std::string> arguments, const std::string& libraries) {
  arguments.insert(arguments.begin(), {"LD_LIBRARY_PATH=" + libraries,
                                       "TARE_FAKE_PROCESS=" + std::to_string(::getpid()),
                                       program_path("tare"), "top"});
  return run_program("/usr/bin/env", arguments);
}

TEST(Top, ShowsTheHost) {
  const auto result = top({"--json"}, "");
  ASSERT_EQ(result.status, 0) << result.err;
  const auto host = nlohmann::json::parse(result.out).at("devices").at(0);
  EXPECT_EQ(host.at("id"), "host");
  EXPECT_EQ(host.at("used_bytes").get<int64_t>() + host.at("available_bytes").get<int64_t>(),
            host.at("total_bytes").get<int64_t>());
  EXPECT_GE(host.at("load").get<double>(), 0);
  const auto& processes = host.at("processes");
  ASSERT_FALSE(processes.empty());
  EXPECT_LE(processes.size(), 10U);
  for (size_t i = 1; i < processes.size(); ++i)
    EXPECT_GE(processes[i - 1].at("bytes").get<int64_t>(), processes[i].at("bytes").get<int64_t>());
}

TEST(Top, ShowsCardsAndTheirProcesses) {
  const auto result = top({"--json"}, TARE_FAKE_NVML_FOLDER);
  ASSERT_EQ(result.status, 0) << result.err;
  const auto all = nlohmann::json::parse(result.out);
  EXPECT_EQ(all.at("driver"), "580.65.06");
  ASSERT_EQ(all.at("devices").size(), 3U);
  const auto& card = all.at("devices").at(1);
  EXPECT_EQ(card.at("id"), "cuda:0");
  EXPECT_EQ(card.at("load"), 0.97);
  EXPECT_EQ(card.at("used_bytes"), 40 * kGiB);
  EXPECT_EQ(card.at("total_bytes"), 100 * kGiB);
  const auto& largest = card.at("processes").at(0);
  EXPECT_EQ(largest.at("id"), ::getpid());
  EXPECT_EQ(largest.at("bytes"), 2 << 20);
  EXPECT_THAT(largest.at("command").get<std::string>(), HasSubstr("top_test"));
  EXPECT_TRUE(card.at("processes").at(1).at("bytes").is_null());
  EXPECT_EQ(all.at("devices").at(2).at("processes").size(), 40U);

  const auto tables = top({}, TARE_FAKE_NVML_FOLDER);
  ASSERT_EQ(tables.status, 0) << tables.err;
  EXPECT_FALSE(has_control_byte(tables.out));
  EXPECT_THAT(tables.out, ContainsRegex("cuda:0 +NVIDIA .x1b.31mH200 +97 % +40 GiB +60 GiB"));
}

TEST(Top, RefusesABadInterval) {
  for (const char* interval : {"-1", "0", "soon", "nan", "inf", "1e9", "2s", ""}) {
    const auto result = run_program("tare", {"top", std::string("--watch=") + interval});
    EXPECT_EQ(result.status, 2) << interval << result.err;
    EXPECT_THAT(result.err, HasSubstr("--watch")) << interval;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(run_program("tare", {"top", "all"}).status, 2);
}

TEST(Top, WatchesUntilASignal) {
  Program program("tare", {"top", "--watch", "0.1", "--json"});
  while (std::ranges::count(program.read("out"), '\n') < 3) std::this_thread::yield();
  ::kill(program.pid(), SIGINT);
  const auto result = program.wait();
  EXPECT_EQ(result.status, 130) << result.err;
  EXPECT_TRUE(nlohmann::json::accept(result.out.substr(0, result.out.find('\n'))));
}

}  // namespace
}  // namespace tare::testing
