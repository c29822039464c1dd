// Tests the figures and the texts of the Learner's results.
#include "tare/train/options.h"

#include <gtest/gtest.h>

namespace tare::testing {
namespace {

TEST(FitResult, CountsSamplesOverTheTimeOfAllEpochs) {
  const FitResult result{.epochs = {{.seconds = 2, .samples = 100}, {.seconds = 1, .samples = 50}}};
  EXPECT_EQ(result.samples_per_s(), 50);
  EXPECT_EQ(FitResult{}.samples_per_s(), 0) << "no epoch, no rate";
}

TEST(Split, HasAName) {
  EXPECT_STREQ(to_string(Split::train), "train");
  EXPECT_STREQ(to_string(Split::valid), "valid");
  EXPECT_STREQ(to_string(Split::test), "test");
}

TEST(FreezeReport, SaysWhatWasFreedAndKept) {
  EXPECT_EQ((FreezeReport{.trainable = 1234, .frozen = 56}).str(),
            "1,234 parameters train, 56 are frozen");
  EXPECT_EQ((FreezeReport{.trainable = 2,
                          .frozen = 1,
                          .state_kept = 3,
                          .gradient_bytes = 2048,
                          .state_bytes = 4096})
                .str(),
            "2 parameters train, 1 are frozen; freed gradients 2 KiB; freed optimizer state "
            "4 KiB; kept the state of 3 tensors");
}

TEST(LoadReport, ListsWhatDidNotFit) {
  EXPECT_EQ(LoadReport{}.str(), "loaded weights");
  EXPECT_EQ((LoadReport{.fresh = {"head.weight", "head.bias"},
                        .ignored = {"old"},
                        .optimizer_loaded = true,
                        .optimizer_fresh = {"head.weight"},
                        .resumable = true})
                .str(),
            "loaded weights and optimizer; fresh: head.weight head.bias; ignored: old; optimizer "
            "state fresh: head.weight; resume() continues inside its fit");
}

}  // namespace
}  // namespace tare::testing
