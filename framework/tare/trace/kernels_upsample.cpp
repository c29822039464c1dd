// Interpolation. A card takes no temporary memory. The host either works on images whose channels
// come last, in copies where they do not, or tabulates for every dimension the index and the weight
// of each neighbour.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"

namespace tare::plan {
namespace {

using at::MemoryFormat;
using at::Tensor;
using torch::jit::Stack;

void hold_copies(const Tensor& input, const Tensor& output) {
  const auto first = hold_contiguous(input, MemoryFormat::ChannelsLast),
             second = hold_contiguous(output, MemoryFormat::ChannelsLast);
}

void hold_tables(const Tensor& output, int neighbours) {
  std::vector<c10::DataPtr> tables;
  for (int64_t dim = 2; dim < output.dim(); ++dim) {
    for (int i = 0; i < neighbours; ++i) {
      tables.push_back(hold(bytes_of(output.size(dim), at::kLong)));
      tables.push_back(hold(bytes_of(output.size(dim), output.scalar_type())));
    }
  }
  for (auto& table : tables) table.clear();
}

// The host's threshold between the two ways.
bool works_channels_last(const Tensor& input, const Tensor& output) {
  constexpr int64_t kFewChannels = 3, kSmallOutput = 128;
  return (input.is_contiguous(MemoryFormat::ChannelsLast) && input.size(1) > kFewChannels) ||
         output.size(2) + output.size(3) <= kSmallOutput;
}

/// Interpolates between `kNeighbours` in each dimension.
template <int kNeighbours>
void upsample(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto arguments = op.schema().arguments().size();
  const Tensor input = torch::jit::peek(*stack, 0, arguments).toTensor();
  op.redispatchBoxed(keys, stack);
  if (for_card()) return;
  const Tensor output = stack->back().toTensor();
  constexpr int kCubic = 4;
  if (input.dim() == 4 && kNeighbours != kCubic && works_channels_last(input, output))
    return hold_copies(input, output);
  if (input.dim() == 5 && input.is_contiguous(MemoryFormat::ChannelsLast3d)) return;
  hold_tables(output, kNeighbours);
}

}  // namespace

void add_upsample_kernels(Kernels& kernels) {
  for (const auto* name :
       {"aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d"})
    kernels.add_boxed<&upsample<1>>(name);
  for (const auto* name :
       {"aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d"})
    kernels.add_boxed<&upsample<2>>(name);
  kernels.add_boxed<&upsample<4>>("aten::upsample_bicubic2d");
}

}  // namespace tare::plan
