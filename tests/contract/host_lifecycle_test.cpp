// The contract of a Learner's lifecycle, held on the host.
#include "contract/lifecycle_contract.h"
#include "contract/traits.h"

namespace tare::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Host, LifecycleContract, memory::HostTraits);
}  // namespace tare::testing
