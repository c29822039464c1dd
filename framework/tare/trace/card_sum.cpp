// Computes the buffers of long sums on a card.
#include "tare/trace/card_sum.h"

#include <ATen/ceil_div.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace tare::plan {
namespace {

constexpr int64_t kVector = 4;  // outputs that a thread computes at once
constexpr int64_t kWarp = 32;   // threads
constexpr int64_t kMost = 512;  // threads of a block

int64_t last_power(int64_t value) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, value))));
}

/// The dimensions as LibTorch walks them: those that are added up first, the fastest of each first,
/// and neighbours joined where they are one stretch of memory.
std::vector<SummedDim> in_order(std::vector<SummedDim> dims) {
  std::erase_if(dims, [](const SummedDim& dim) { return dim.size == 1; });
  std::ranges::reverse(dims);
  std::ranges::stable_sort(dims, {}, [](const SummedDim& dim) {
    // The dimensions of the result stay in the order of its memory.
    return dim.is_gone ? dim.stride : std::numeric_limits<int64_t>::max();
  });
  std::vector<SummedDim> joined;
  for (const SummedDim& dim : dims) {
    SummedDim* const last = joined.empty() ? nullptr : &joined.back();
    if (last && last->is_gone == dim.is_gone && dim.stride == last->size * last->stride)
      last->size *= dim.size;
    else
      joined.push_back(dim);
  }
  return joined;
}

/// How many outputs a thread computes at once.
int64_t outputs_at_once(const std::vector<SummedDim>& dims, size_t first_kept) {
  int64_t vector = kVector;
  const auto fit = [&](int64_t number) {
    while (number % vector != 0) vector /= 2;
  };
  fit(dims[first_kept].size);
  for (size_t i = 0; i < dims.size(); ++i)
    if (i != first_kept) fit(dims[i].stride);
  return vector;
}

}  // namespace

CardSum card_sum(std::vector<SummedDim> dims, const ReductionForm& form) {
  CardSum sum{.outputs = 1, .inputs = 1, .width = 1, .height = 1, .part_bytes = form.part_bytes};
  for (const SummedDim& dim : dims) (dim.is_gone ? sum.inputs : sum.outputs) *= dim.size;
  dims = in_order(std::move(dims));
  const auto kept = std::ranges::find(dims, false, &SummedDim::is_gone);
  const auto first_kept = static_cast<size_t>(kept - dims.begin());
  const bool has_kept = kept != dims.end(), has_gone = first_kept > 0;
  sum.along_inputs = !has_kept || (has_gone && dims.front().stride < kept->stride);
  if (dims.empty()) return sum;
  const int64_t fastest = sum.along_inputs ? dims.front().stride : kept->stride;
  sum.width = sum.along_inputs ? sum.inputs : sum.outputs;
  sum.height = sum.along_inputs ? sum.outputs : sum.inputs;
  if (fastest != 1) return sum;
  if (!sum.along_inputs) {
    sum.vector = outputs_at_once(dims, first_kept);
    sum.width /= sum.vector;
  } else if (sum.width >= 128 && first_kept == 1) {
    sum.width /= form.vector;
  }
  return sum;
}

SumBuffers buffers_of(const CardSum& sum, const memory::Multiprocessors& card) {
  if (card.count == 0) return {};
  const int64_t most = kMost / sum.vector;
  const auto bounded = [&](int64_t size) { return size < most ? last_power(size) : most; };
  const int64_t wide = bounded(sum.width), high = bounded(sum.height);
  int64_t width = std::min(wide, kWarp);
  const int64_t height = std::min(high, most / width);
  width = std::min(wide, most / height);

  int64_t inputs_at_once = sum.along_inputs ? width : 1;
  int64_t outputs_at_once = sum.along_inputs ? 1 : width;
  const auto values = [&] { return at::ceil_div(sum.inputs, inputs_at_once); };
  constexpr int64_t kFewest = 16, kMostValues = 256;  // of a thread
  const bool over_warps = values() >= std::min(height * kFewest, kMostValues);
  (over_warps ? inputs_at_once : outputs_at_once) *= height;
  const int64_t blocks = card.count * (card.threads / (width * height));
  const int64_t grid = at::ceil_div(sum.outputs / sum.vector, outputs_at_once);
  if (!over_warps || values() < kMostValues || grid > blocks) return {};
  const int64_t split =
      std::max(std::min(at::ceil_div(blocks, grid), at::ceil_div(values(), kFewest)),
               at::ceil_div(values(), kMostValues));
  if (split <= 1) return {};
  const int64_t of_a_part = sum.part_bytes * (sum.along_inputs ? 1 : width * sum.vector);
  return {.parts = sum.outputs * split * of_a_part, .semaphores = grid * 4};
}

}  // namespace tare::plan
