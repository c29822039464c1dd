// Records the operators that a forward calls, before LibTorch takes them apart. Internal.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <functional>
#include <vector>

namespace tare::interchange {

/// Is one call of an operator.
struct Call {
  c10::OperatorName op;
  std::vector<c10::IValue> arguments{};
  std::vector<c10::IValue> results{};
  /// The sizes of the tensors of `results`, lists taken apart, at the end of the call.
  std::vector<std::vector<int64_t>> sizes{};
};

/// Calls `body` and returns the operators that it calls on this thread; an operator that another
/// one calls is not listed. Their tensors stay alive as long as the calls do. Throws what `body`
/// throws.
[[nodiscard]] std::vector<Call> record_calls(const std::function<void()>& body);

}  // namespace tare::interchange
