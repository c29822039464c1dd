// Choosing and placing elements, and memory that is resized.
#include <ATen/ExpandUtils.h>
#include <ATen/ceil_div.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>

#include <algorithm>
#include <bit>

#include "tare/memory/compute_capability.h"
#include "tare/memory/libtorch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/gradient_sum.h"
#include "tare/trace/not_plannable.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::Tensor;
using torch::jit::Stack;

Tensor& where_out(const Tensor&, const Tensor&, const Tensor&, Tensor& out) { return out; }

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  auto sizes = self.sizes().vec();
  if (!sizes.empty())
    sizes.at(static_cast<size_t>(at::maybe_wrap_dim(dim, self.dim()))) = index.numel();
  Tensor result = fresh(sizes, self);
  hold_contiguous(index).clear();
  return result;
}

// Operands of another dtype than the result's are copied first.
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  const auto dtype = at::result_type(self, other);
  const c10::DataPtr first = hold_converted(self, dtype), second = hold_converted(other, dtype);
  const auto sizes = at::infer_size(condition.sizes(), at::infer_size(self.sizes(), other.sizes()));
  const auto options = self.options().dtype(dtype).device(c10::kMeta);
  for (const Tensor& operand : {self, other, condition})
    if (operand.is_meta() && operand.sizes() == sizes && operand.is_non_overlapping_and_dense())
      return at::empty_like(operand, options);
  return at::empty(sizes, options);
}

int64_t rounded(int64_t bytes) { return at::round_up<int64_t>(bytes, 256); }

/// Holds how many values CUB sorts, and makes unique, in a tile.
struct Tiles {
  int64_t sorted = 0, unique = 0;
};

int64_t unique_in_tile(int64_t capability) {
  if (capability < memory::kHopper && capability != memory::kAmpere) return 320;
  if (libtorch::kUniqueInNewTiles) return capability == memory::kAmpere ? 1344 : 4928;
  if (capability >= memory::kBlackwell) return 3840;
  return capability == memory::kAmpere ? 1792 : 4480;
}

Tiles tiles() {
  const int64_t capability = recorded_machine().capability;
  const int64_t before_hopper = capability < memory::kAmpere ? 2816 : 3840;
  return {.sorted = capability < memory::kHopper ? before_hopper : 4608,
          .unique = unique_in_tile(capability)};
}

/// Returns the bytes that CUB takes to sort `count` pairs of int64, of which the first is below
/// `end`. A single pass needs no second place.
int64_t sorting_bytes(int64_t count, int64_t end) {
  constexpr int64_t kDigits = 1024, kBins = 2048, kCounters = 256, kSlack = 255;
  constexpr int64_t kBits = 8;  // of a pass
  const int64_t tile = tiles().sorted;
  const auto bits = std::bit_width(static_cast<uint64_t>(end));
  const int64_t passes = libtorch::kSortsByUsedBits ? at::ceil_div<int64_t>(bits, kBits) : kBits;
  return (passes > 1 ? 2 * rounded(count * 8) : 0) + kDigits * at::ceil_div(count, tile) +
         passes * kBins + kCounters + kSlack;
}

/// Returns the bytes that CUB takes to scan values in tiles of that many.
int64_t scanning_bytes(int64_t count, int64_t tile) {
  constexpr int64_t kWarp = 32, kState = 16, kHead = 256, kSlack = 255;
  return rounded((at::ceil_div(count, tile) + kWarp) * kState) + kHead + kSlack;
}

/// Computes the gradient of an embedding of many indices as a card does: sorted, then each row from
/// partial sums (ATen/native/cuda/EmbeddingBackwardKernel.cu).
Tensor sorted_embedding_backward(const Tensor& grad, const Tensor& indices, int64_t rows) {
  constexpr int64_t kRowsOfPart = 10, kScanTile = 896;
  const int64_t count = indices.numel(), features = grad.size(-1);
  const int64_t segments = std::min(count, rows), parts = count / kRowsOfPart + segments;
  const int64_t bytes = bytes_of(count, at::kLong), word = bytes_of(1, at::kLong);
  const auto copy = hold_contiguous(grad);
  const auto sorted = hold(bytes), origin = hold(bytes);
  {
    const auto range = hold(bytes);
    hold(sorting_bytes(count, rows)).clear();
  }
  Tensor result = fresh({rows, features}, grad);
  const auto starts = hold(bytes), number = hold(word);
  {
    const auto unused = hold(bytes);
    hold(scanning_bytes(count, tiles().unique)).clear();
  }
  const auto each = hold(segments * word), offsets = hold(segments * word);
  hold(scanning_bytes(segments, kScanTile)).clear();
  const auto number_of_parts = hold(word), part_starts = hold(parts * word),
             sums = hold(bytes_of(parts * features, at::kFloat));
  return result;
}

// On the host, the indices come with the positions of one sample after the other.
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t,
                          bool by_frequency) {
  constexpr int64_t kFew = 3072;
  if (for_card() && indices.numel() > kFew && !by_frequency)
    return sorted_embedding_backward(grad, indices, rows);
  const auto copy = hold_contiguous(indices);
  // A card copies a gradient with gaps before the result is there, the host after that.
  const auto early = for_card() ? hold_contiguous(grad) : hold(0);
  Tensor result = fresh({rows, grad.size(-1)}, grad);
  const auto late = for_card() ? hold(0) : hold_contiguous(grad);
  return result;
}

// One dimension after the other.
Tensor roll(const Tensor& self, IntArrayRef, IntArrayRef dims) {
  const auto copy = hold(for_card() ? copied_bytes(self, at::MemoryFormat::Contiguous) : 0);
  Tensor result = fresh(self.sizes(), self);
  for (size_t i = 1; i < dims.size(); ++i) result = fresh(self.sizes(), self);
  return result;
}

/// Whether two tensors are equal: true for one tensor under two names, false for two shapes;
/// otherwise the values decide, which a meta tensor does not have.
bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  if (self.is_alias_of(other) && self.storage_offset() == other.storage_offset() &&
      self.strides() == other.strides())
    return true;
  throw NotPlannable("aten::equal", "compares the values of two tensors, and a plan has none",
                     "decide by shapes, or plan a part that reads no value");
}

/// Formulas of gradients overwrite a tensor of zeros on the host, where they make a new one on
/// meta.
template <size_t kHolders>
void overwriting_zeros(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const size_t arguments = op.schema().arguments().size();
  if (!is_own_of_formula(torch::jit::peek(*stack, 0, arguments).toTensor(), kHolders))
    return op.redispatchBoxed(keys, stack);
  torch::jit::drop(*stack, arguments - 1);
}

// LibTorch's resizes the storage of meta without a word to the allocator.
const Tensor& resize(const Tensor& self, IntArrayRef sizes,
                     std::optional<at::MemoryFormat> format) {
  auto* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
  const int64_t bytes = bytes_of(self.storage_offset() + self.numel(), self.scalar_type());
  c10::Storage storage = self.storage();
  if (static_cast<size_t>(bytes) <= storage.nbytes()) return self;
  const c10::DataPtr before = storage.set_data_ptr(hold(bytes));  // freed after the new is born
  storage.set_nbytes(static_cast<size_t>(bytes));
  return self;
}

}  // namespace

void add_index_kernels(Kernels& kernels) {
  kernels.add("aten::embedding_dense_backward", &embedding_backward);
  kernels.add("aten::equal", &equal);
  kernels.add("aten::index_select", &index_select);
  kernels.add("aten::resize_", &resize);
  kernels.add("aten::roll", &roll);
  kernels.add("aten::where.self", &where);
  kernels.add("aten::where.self_out", &where_out);
  for (const auto* name : {"aten::scatter.src", "aten::scatter_add", "aten::index_add"})
    kernels.add_boxed<&overwriting_zeros<2>>(name);
  kernels.add_boxed<&overwriting_zeros<3>>("aten::index_put");  // index_backward holds it too
}

}  // namespace tare::plan
