// Tests how a Learner checks an accelerator unknown to the framework before it moves its model
// there. The move itself is not tested: Module::to() of LibTorch 2.11 uses Tensor::set_data(),
// which refuses the type PrivateUse1 for a tensor of the host.
#include <gmock/gmock.h>

#include "contract/fake_accelerator.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/learner/learner.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

TEST(AnotherAccelerator, WithoutAutocastRefusesPrecisionsThatNeedIt) {
  (void)FakeTraits::prepare();
  const TempDir folder;
  for (const char* precision : {"bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    try {
      const Learner learner(
          models::make("mlp", {.sample_shape = {4}}), {},
          {.device = "fake", .precision = precision, .folder = folder.path(), .progress = false});
      ADD_FAILURE() << "accepted";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("needs autocast, which LibTorch does not have "
                                                     "for fake:0"));
    }
  }
}

}  // namespace
}  // namespace tare::testing
