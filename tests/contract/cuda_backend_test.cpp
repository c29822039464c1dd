// The contract of a device's backend, held by CUDA.
#include "contract/backend_contract.h"
#include "contract/traits.h"

namespace tare::memory {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, BackendContract, CudaTraits);
}  // namespace tare::memory
