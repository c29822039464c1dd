// The floating-point operations of operators, by the sizes of their operands. Internal.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string_view>

#include "tare/callback/flops.h"

namespace tare {

/// Says how the operations of an operator are counted, see FlopCount.
struct FlopFormula {
  std::string_view name{};                                       ///< of the operator
  int64_t (*flops)(c10::ArrayRef<const c10::IValue>) = nullptr;  ///< by the operands
  size_t operand = 0;  ///< index of the operand in whose type the operator computes
  /// A card computes it by cuDNN, whose setting says whether float32 is computed in TF32.
  bool by_cudnn = false;
};

/// Returns the formula of an operator, such as "aten::addmm_"; static; null: it has none.
[[nodiscard]] const FlopFormula* flop_formula_of(std::string_view name);
/// Returns the type in which the operator computes with this operand.
[[nodiscard]] int64_t Flops::*flop_type_of(const FlopFormula& formula, const at::Tensor& operand);

}  // namespace tare
