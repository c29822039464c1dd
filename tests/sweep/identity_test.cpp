// The names and the identities of runs.
#include "tare/sweep/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/support.h"
#include "tare/sweep/run_name.h"

namespace tare::testing {
namespace {

using search::Cell;

TEST(RunName, HasTheSettingsOfTheRun) {
  const auto name = [](const std::vector<std::pair<std::string, std::string>>& values) {
    Cell cell;
    for (const auto& [key, value] : values)
      cell.values.emplace_back(key, *config::parse_text("v: " + value, "t").find("v"));
    sweep::SweepOptions sweep;
    sweep.name = "digits";
    return sweep::run_name(sweep, 7, cell);
  };
  EXPECT_EQ(name({{"learning_rate", "1e-5"}, {"batch_size", "32"}}), "digits7_lr1e-05_bs32");
  EXPECT_EQ(name({{"optimizer.weight_decay", "0.1"}}), "digits7_owd0-1");
  EXPECT_EQ(name({{"x", "../a b\\n\xC3\xA9"}}), "digits7_x---a-b-n--");
  EXPECT_EQ(name({{"x", std::string(500, 'q')}}).size(), 128U);
  EXPECT_EQ(name({}), "digits7");
}

TEST(Identity, IsThatOfTheWholeConfiguration) {
  const SweepFiles files;
  const auto of = [&](const std::string& text) {
    const auto sweep = files.read(text);
    return sweep::Identity(sweep).of(search::grid(sweep).front());
  };
  const std::string one = of("parameters: {a: [7], b.c: [3]}\n");
  EXPECT_EQ(one.size(), 64U);
  EXPECT_EQ(one, of("parameters: {b.c: [3], a: [7]}\n")) << "in any order";
  EXPECT_EQ(one, of("set: {a: 7}\nparameters: {b.c: [3]}\n")) << "wherever it stands";
  EXPECT_EQ(of(""), of("parameters: {a: [1]}\n")) << "what the recipe says already";
  EXPECT_EQ(of("parameters: {a: [1e-2]}\n"), of("parameters: {a: [0.01]}\n"));
  EXPECT_EQ(of("parameters: {a: [x]}\n"), of("parameters: {a: ['x']}\n"));
  EXPECT_NE(of("parameters: {a: [1]}\n"), of("parameters: {a: ['1']}\n"));
  EXPECT_EQ(of("parameters: {workers: [1]}\n"), of("parameters: {workers: [2]}\n"));
  EXPECT_NE(one, of("parameters: {a: [8], b.c: [3]}\n"));
}

}  // namespace
}  // namespace tare::testing
