// NCCL for the program: exchanges tensors between cards. Internal.
#pragma once

#include <memory>

#include "tare/memory/collectives.h"

namespace tare::cuda {

/// Makes the collectives of CUDA devices, by LibTorch's ProcessGroupNCCL.
[[nodiscard]] std::unique_ptr<memory::Collectives> make_nccl_collectives();

}  // namespace tare::cuda
