// The contract of a device's backend, held by the host.
#include "contract/backend_contract.h"
#include "contract/traits.h"

namespace tare::memory {
INSTANTIATE_TYPED_TEST_SUITE_P(Host, BackendContract, HostTraits);
}  // namespace tare::memory
