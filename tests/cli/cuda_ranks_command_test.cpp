// `tare run` on several ranks, each on a card of its own or all of them on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/card_folder.h"
#include "support/files.h"
#include "support/free_port.h"
#include "support/program.h"

namespace tare::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr double kNear = 1e-6;  // ranks add in another order

#ifdef TARE_HAS_NCCL
constexpr bool kHasNccl = true;
#else
constexpr bool kHasNccl = false;
#endif

class CardRanksCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string doctor = run_program("tare", {"doctor"}).out;
    if (doctor.find("cuda:0") == std::string::npos) GTEST_SKIP() << "there is no card:\n" << doctor;
    has_two_cards_ = doctor.find("cuda:1") != std::string::npos;
  }
  [[nodiscard]] ProgramResult run(std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"run", "card.yaml", "--overwrite", "--json", "run.json", "optimizer.kind=sgd"});
    return folder_.tare(more);
  }
  [[nodiscard]] json report() const { return json::parse(content_of(folder_ / "run.json")); }
  /// Expects the losses of the run that was reported before.
  static void expect_same_losses(const json& got, const json& expected) {
    ASSERT_EQ(got["phases"].size(), expected["phases"].size());
    for (size_t phase = 0; phase < expected["phases"].size(); ++phase) {
      const json &epochs = got["phases"][phase]["epochs"],
                 &others = expected["phases"][phase]["epochs"];
      ASSERT_EQ(epochs.size(), others.size());
      for (size_t i = 0; i < others.size(); ++i)
        for (const char* figure : {"train_loss", "valid_loss"}) {
          const auto value = others[i][figure].get<double>();
          EXPECT_NEAR(epochs[i][figure].get<double>(), value,
                      kNear * std::max(1.0, std::abs(value)));
        }
    }
  }
  /// Expects peaks that are the planned ones but for a block.
  static void expect_peaks_as_planned(const json& report) {
    constexpr int64_t kBlock = 512;
    for (const json& phase : report["phases"])
      for (const json& rank : phase["ranks"])
        EXPECT_LE(std::abs(rank["peak_bytes"].get<int64_t>() -
                           phase["planned_peak_bytes"].get<int64_t>()),
                  kBlock)
            << phase["name"];
  }
  static void expect_nothing_left(const json& report) {
    for (const json& phase : report["phases"])
      for (const json& rank : phase["ranks"]) EXPECT_EQ(rank["residual_bytes"], 0);
    EXPECT_EQ(report["residual_bytes"], 0);
  }

  bool has_two_cards_ = false;
  CardFolder folder_{{.count = 100,
                      .model = "{name: mlp, hidden: [64]}",
                      .phases = "[{name: head, freeze_to: -1}, {name: all, epochs: 2}]"}};
};

TEST_F(CardRanksCommand, TakesACardForEachRankAndNccl) {
  if (!has_two_cards_) GTEST_SKIP() << "there is one card only";
  if (!kHasNccl) GTEST_SKIP() << "Tare was built without nccl.h";
  const ProgramResult alone = run({});
  ASSERT_EQ(alone.status, 0) << alone.err;
  const json expected = report();
  for (const char* backend : {"auto", "nccl", "gloo"}) {
    SCOPED_TRACE(backend);
    const ProgramResult both = run({"device=cuda", "--ranks", "2", "--backend", backend});
    ASSERT_EQ(both.status, 0) << both.err;
    const std::string name = backend == std::string("gloo") ? "gloo" : "nccl";
    EXPECT_THAT(both.err, HasSubstr("[ranks] tensors of cards are exchanged by " + name));
    const json got = report();
    if (kernels_compute()) expect_same_losses(got, expected);
    expect_nothing_left(got);
    expect_peaks_as_planned(got);
  }
}

// `srun --gpus-per-task=1` starts ranks that see one card each.
TEST_F(CardRanksCommand, TakesTheOnlyCardThatEachRankSees) {
  if (!has_two_cards_) GTEST_SKIP() << "there is one card only";
  if (!kHasNccl) GTEST_SKIP() << "Tare was built without nccl.h";
  const std::string tare = std::filesystem::absolute(program_path("tare")).string();
  const std::string port = std::to_string(free_port());
  const auto words = [&](const std::string& rank) {
    return std::vector<std::string>{"RANK=" + rank,
                                    "WORLD_SIZE=2",
                                    "LOCAL_RANK=" + rank,
                                    "LOCAL_WORLD_SIZE=2",
                                    "MASTER_ADDR=127.0.0.1",
                                    "MASTER_PORT=" + port,
                                    "CUDA_VISIBLE_DEVICES=" + rank,
                                    tare,
                                    "run",
                                    "card.yaml",
                                    "device=cuda"};
  };
  Program first("/usr/bin/env", words("0"), folder_.path());
  Program second("/usr/bin/env", words("1"), folder_.path());
  const ProgramResult result = first.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("[ranks] tensors of cards are exchanged by nccl"));
  EXPECT_EQ(second.wait().status, 0);
}

TEST_F(CardRanksCommand, ExchangesByGlooWhereRanksShareACard) {
  const ProgramResult alone = run({});
  ASSERT_EQ(alone.status, 0) << alone.err;
  const json expected = report();
  const ProgramResult both = run({"--ranks", "2"});
  ASSERT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(both.err, HasSubstr("by gloo, through the host, as "));
  if (kHasNccl) {
    EXPECT_THAT(both.err, HasSubstr("as ranks 0, 1 are on one card"));
  }
  if (kernels_compute()) expect_same_losses(report(), expected);
  expect_nothing_left(report());
}

TEST_F(CardRanksCommand, RefusesNcclOnOneCardOnce) {
  if (!kHasNccl) GTEST_SKIP() << "Tare was built without nccl.h";
  const ProgramResult both = run({"--ranks", "2", "--backend", "nccl"});
  EXPECT_EQ(both.status, 2) << both.err;
  const std::string text = "ranks 0, 1 are on one card";
  const size_t at = both.err.find(text);
  ASSERT_NE(at, std::string::npos) << both.err;
  EXPECT_EQ(both.err.find(text, at + 1), std::string::npos) << both.err;
  EXPECT_THAT(both.err, HasSubstr("nccl takes one rank per card; take --backend gloo"));
}

}  // namespace
}  // namespace tare::testing
