// Lists the operators whose kernels on a card add up in any order.
#include "tare/trace/deterministic.h"

#include <ATen/Context.h>
#include <ATen/core/Reduction.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "tare/base/error.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

/// Lists the operators that call Context::alertNotDeterministic() in ATen/native/cuda. The tests
/// compare the list with what LibTorch refuses.
constexpr std::array<std::string_view, 20> kWithout{"aten::_adaptive_avg_pool2d_backward",
                                                    "aten::_adaptive_avg_pool3d_backward",
                                                    "aten::_upsample_bicubic2d_aa_backward",
                                                    "aten::_upsample_bilinear2d_aa_backward",
                                                    "aten::adaptive_max_pool2d_backward",
                                                    "aten::avg_pool3d_backward",
                                                    "aten::fractional_max_pool2d_backward",
                                                    "aten::fractional_max_pool3d_backward",
                                                    "aten::max_pool3d_with_indices_backward",
                                                    "aten::max_unpool2d",
                                                    "aten::max_unpool3d",
                                                    "aten::reflection_pad1d_backward",
                                                    "aten::reflection_pad3d_backward",
                                                    "aten::replication_pad1d_backward",
                                                    "aten::replication_pad2d_backward",
                                                    "aten::replication_pad3d_backward",
                                                    "aten::upsample_bicubic2d_backward",
                                                    "aten::upsample_bilinear2d_backward",
                                                    "aten::upsample_linear1d_backward",
                                                    "aten::upsample_trilinear3d_backward"};

/// Whether the losses of labels, several of which a sample has, are added up.
bool adds_up_losses(std::string_view name, const torch::jit::Stack& arguments) {
  constexpr size_t kReduction = 3, kArguments = 5;
  return name == "aten::nll_loss2d_forward" &&
         torch::jit::peek(arguments, kReduction, kArguments).toInt() != at::Reduction::None;
}

}  // namespace

bool repeats_bits() {
  const at::Context& context = at::globalContext();
  return context.deterministicAlgorithms() && !context.deterministicAlgorithmsWarnOnly();
}

void require_deterministic(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  if (!repeats_bits()) return;
  const std::string& name = op.operator_name().name;
  if (!for_card()) return;
  if (std::ranges::find(kWithout, name) == kWithout.end() && !adds_up_losses(name, arguments))
    return;
  throw ConfigError("kernels.deterministic",
                    "is true, and a card has no kernel of " + name +
                        " that repeats its bits; set it to false, or replace the operator");
}

}  // namespace tare::plan
