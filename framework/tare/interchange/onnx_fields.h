// Numbers of the fields of ModelProto, GraphProto and TensorProto. Internal.
//
// Format: onnx/onnx.proto of ONNX 1.13.
#pragma once

#include <cstdint>

namespace tare::interchange {

namespace model_field {
inline constexpr uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8, kMetadata = 14;
}
namespace graph_field {
inline constexpr uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace tensor_field {
inline constexpr uint32_t kDims = 1, kType = 2, kName = 8, kRaw = 9, kExternal = 13, kLocation = 14;
}

}  // namespace tare::interchange
