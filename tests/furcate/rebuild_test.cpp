// Stores that are made from the tables of furcate itself.
#include "tare/sweep/rebuild.h"

#include <gtest/gtest.h>

#include "sweep/shell_sweep.h"
#include "tare/furcate/configuration.h"
#include "tare/search/grid.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

using FurcateRebuildTest = ShellSweepTest;

TEST_F(FurcateRebuildTest, RowsThatFurcateItselfHasWrittenAreComplete) {
  io::make_directories(files_.log_dir());
  io::write_atomically(
      files_.log_dir() / "run_data.csv",
      "log_dir,learning_rate,batch_size,optimizer_name,meta,run_total_time,run_val_loss\n"
      "logs/e0_foo_bs32_onSGD,0.001,32,SGD,\"{'note': 'two\nlines'}\",12.5,0.25\n"
      "logs/e1_foo_bs64_onSGD,0.001,64,SGD,{},13.5,\n");
  io::write_atomically(files_.log_dir().parent_path() / "config.json",
                       R"({"data_name": "e", "data_dir": "foo", "epochs": 2, "batch_size": [32, 64],
                           "optimizer_name": ["SGD"], "log_dir": ")" +
                           files_.log_dir().string() + "\"}");
  const auto sweep = furcate::read_any_sweep(files_.log_dir().parent_path() / "config.json", {});
  EXPECT_TRUE(sweep.origin.is_program);
  const sweep::RebuildReport rebuilt =
      sweep::rebuild_store(sweep, [](const std::filesystem::path&, const launch::ChildEnd&) {
        return sweep::Outcome{.reason = "nothing there"};
      });
  EXPECT_EQ(rebuilt.complete, 1) << "one without a loss has not ended well";
  const auto trials = sweep::read_store(files_.log_dir() / "e.sqlite", "e").trials;
  ASSERT_EQ(trials.size(), 1U);
  EXPECT_EQ(trials[0].value, 0.25);
  EXPECT_EQ(trials[0].seconds, 12.5);
  EXPECT_EQ(trials[0].identity, sweep::Identity(sweep).of(search::grid(sweep).at(0)));
}

}  // namespace
}  // namespace tare::testing
