// The contract of a Learner's lifecycle, held on CUDA.
#include "contract/lifecycle_contract.h"
#include "contract/traits.h"

namespace tare::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, LifecycleContract, memory::CudaTraits);
}  // namespace tare::testing
