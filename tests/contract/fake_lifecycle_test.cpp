// The contract of a Learner's lifecycle, held by an accelerator that the framework does not know.
#include <gmock/gmock.h>

#include "contract/fake_accelerator.h"
#include "contract/lifecycle_contract.h"

namespace tare::testing {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, LifecycleContract, FakeTraits);

TEST(AnotherAccelerator, WithoutAutocastRefusesPrecisionsThatNeedIt) {
  (void)FakeTraits::prepare();
  const TempDir folder;
  const auto made = [&](const char* precision) -> std::string {
    try {
      const Learner learner(
          models::make("mlp", {.sample_shape = {4}}), {},
          {.device = "fake", .precision = precision, .folder = folder.path(), .progress = false});
      return "accepted";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(made("bf16"), ::testing::HasSubstr("needs autocast, which LibTorch does not have for "
                                                 "fake:0"));
  EXPECT_EQ(made("fp32"), "accepted");
}

}  // namespace
}  // namespace tare::testing
