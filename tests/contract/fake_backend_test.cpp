// The contract of a device's backend, held by an accelerator that the framework does not know.
#include "contract/backend_contract.h"
#include "contract/fake_accelerator.h"
#include "tare/model/generators.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/init.h"
#include "tare/trace/target.h"

namespace tare::memory {
namespace {

using tare::testing::FakeTraits;

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, BackendContract, FakeTraits);

TEST(AnotherAccelerator, IsFoundByTheNameOfItsType) {
  (void)FakeTraits::prepare();
  for (const char* name : {"fake", "fake:0", "auto"})
    EXPECT_EQ(runtime::parse_device(name), FakeTraits::device()) << name;
  EXPECT_THROW((void)runtime::parse_device("fake:1"), DeviceError);
  try {
    runtime::check_device_name("fakes");
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("auto, cpu, cuda, fake or fake:N"));
  }
}

TEST(AnotherAccelerator, WithoutAPlannerTargetIsNotPlannedFor) {
  (void)FakeTraits::prepare();
  try {
    (void)plan::parse_target("fake:0");
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("says no planner target"));
  }
}

TEST(AnotherAccelerator, KeepsItsGeneratorInSnapshots) {
  (void)FakeTraits::prepare();
  GeneratorState& state = tare::testing::generator_of_fake_accelerator();
  state = {.seed = 7, .offset = 11};
  {
    const GeneratorScope scope(FakeTraits::device());
    state = {.seed = 8, .offset = 400};
  }
  EXPECT_EQ(state.seed, 7U);
  EXPECT_EQ(state.offset, 11U);
}

}  // namespace
}  // namespace tare::memory
