// Attention. The operator itself is composite and takes another path where a tensor is on the meta
// device; here it takes the path of the host or, for a card, of CUDA.
#include <ATen/Parallel.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "tare/trace/attention_operands.h"
#include "tare/trace/blocks.h"
#include "tare/trace/card_attention.h"
#include "tare/trace/composites.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;

/// The host works on blocks of queries and keys.
struct Blocks {
  int64_t queries = 0, keys = 0;
};

Blocks blocks_of(const Tensor& query, const Tensor& key) {
  const int64_t time = query.size(2);
  constexpr int64_t kLong = 768, kShort = 192;
  const int64_t queries = time >= kLong ? 256 : time >= kShort ? 64 : 32;
  return {.queries = std::min(queries, time), .keys = std::min<int64_t>(512, key.size(2))};
}

/// Holds the scratch of the host's threads; a card has none.
c10::DataPtr hold_per_thread(int64_t elements, const Tensor& like) {
  return hold_on_host(bytes_of(at::get_num_threads() * elements, like.scalar_type()));
}

/// Returns the result and, per query, the logarithm of the sum of exponentials.
std::tuple<Tensor, Tensor> flash(const Tensor& query, const Tensor& key, const Tensor& value,
                                 double, bool, const Mask&, std::optional<double>) {
  const int64_t batch = query.size(0), heads = query.size(1), time = query.size(2);
  const Tensor result = in_order_of(query, {batch, heads, time, value.size(3)});
  const Tensor sums = fresh({batch, time, heads}, query).transpose(1, 2);
  const auto [queries, keys] = blocks_of(query, key);
  hold_per_thread(queries * (keys + 2 + value.size(3)), query).clear();
  return {result, sums};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor&, const Tensor&, double, bool,
                                                  const Mask&, std::optional<double>) {
  const Tensor of_query = by_time(query, query.sizes()), of_key = by_time(query, key.sizes()),
               of_value = by_time(query, value.sizes());
  const bool copies = !grad.transpose(1, 2).is_contiguous();
  const auto copy = hold(copies ? bytes_of(grad.numel(), grad.scalar_type()) : 0);
  const auto [queries, keys] = blocks_of(query, key);
  const auto scores = hold_per_thread(2 * queries * keys, query),
             sums = hold_per_thread(queries, query);
  return {of_query, of_key, of_value};
}

/// Whether the host takes its flash attention rather than single products and a softmax.
bool flash_takes(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask,
                 double dropout, bool grouped) {
  return dropout == 0 && !grouped && can_be_fused(query, key, value, mask) &&
         query.size(3) == value.size(3);
}

Tensor boolean_causal(const Tensor& query, const Tensor& key) {
  return at::ones({query.size(2), key.size(2)}, query.options().dtype(at::kBool)).tril();
}

/// Computes attention by products and a softmax: like LibTorch's own, but for the mask, which the
/// host adds in place. The order of the locals is the one in which they die.
Tensor by_products(const Tensor& query, const Tensor& key, const Tensor& value, Mask mask,
                   double dropout, bool causal, std::optional<double> scale) {
  const double factor =
      std::sqrt(scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1)))));
  Tensor weights;
  Mask added = std::move(mask);
  const Tensor scaled = query.mul(factor);
  if (causal) {
    const Tensor before = boolean_causal(query, key);
    added = additive(before, query);
  }
  weights = at::matmul(scaled, key.transpose(-2, -1).mul(factor));
  weights.add_(*added);
  weights = at::_safe_softmax(weights, -1);
  if (dropout > 0) weights = at::dropout(weights, dropout, /*train=*/true);
  return at::matmul(weights, value);
}

}  // namespace

Tensor planned_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                         const Mask& mask, double dropout, bool causal, std::optional<double> scale,
                         bool grouped) {
  if (for_card()) {
    if (auto fused = card_attention(query, key, value, mask, dropout, causal, scale, grouped))
      return *std::move(fused);
  }
  const bool masked = mask || causal;
  const bool flash = !for_card() && flash_takes(query, key, value, mask, dropout, grouped);
  if (!flash && (!masked || grouped || scale.value_or(1) < 0))
    return at::native::scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale,
                                                    grouped);
  require_float("aten::scaled_dot_product_attention", query);
  const Mask added = additive(mask, query);
  if (!flash) return by_products(query, key, value, added, dropout, causal, scale);
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, value, dropout, causal, four_dimensional(added, query, key), scale));
}

void add_attention_kernels(Kernels& kernels) {
  kernels.add("aten::_scaled_dot_product_flash_attention_for_cpu", &flash);
  kernels.add("aten::_scaled_dot_product_flash_attention_for_cpu_backward", &flash_backward);
  add_card_attention_kernels(kernels);
}

}  // namespace tare::plan
