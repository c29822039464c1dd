// Records work of a card as a CUDA graph.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "tare/memory/device_graph.h"

namespace tare::cuda {

/// Makes a graph of the card `index`; see DeviceBackend::make_graph().
[[nodiscard]] std::unique_ptr<memory::DeviceGraph> make_cuda_graph(
    c10::DeviceIndex index, const memory::DeviceGraph* other);

}  // namespace tare::cuda
