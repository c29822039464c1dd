// Rounds weights to E4M3 with a scale for each row, and back.
#include "tare/model/fp8.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>

#include "tare/base/error.h"

namespace tare {
namespace {

using c10::Float8_e4m3fn;

/// LibTorch's "reduced" types are these and those of eight bits.
bool has_16_bits(c10::ScalarType type) { return type == c10::kBFloat16 || type == c10::kHalf; }

constexpr float kLargest = 0x1p127F;         // a larger value could be rounded to infinity
constexpr float kSmallestScale = 0x1p-117F;  // so that no product is subnormal, in bfloat16 neither
constexpr int64_t kGrain = 1 << 15;          // elements that are worth a thread

/// Whether the elements of each row lie together, row after row; their order inside does not
/// matter.
bool by_row(const at::Tensor& t) {
  const int64_t rows = t.size(0);
  return t.is_non_overlapping_and_dense() && (rows == 1 || t.stride(0) == t.numel() / rows);
}

at::Tensor rows_of(const at::Tensor& weight) {
  return by_row(weight) ? weight.detach() : weight.detach().contiguous();
}

/// Returns the smallest power of two s with which `largest` is rounded to at most 448 * s. Up to
/// 464 * s it is, since the next number would be 480. A bound of 448 * s would halve the scale of a
/// row whose largest value was rounded down from above half of it, when it is rounded again.
float scale_for(float largest) {
  if (largest == 0) return 1;
  int exponent = 0;
  const float mantissa = std::frexp(largest, &exponent);  // in [0.5, 1), 464 is 0.90625 * 2^9
  return std::max(std::ldexp(1.0F, exponent - (mantissa <= 0.90625F ? 9 : 8)), kSmallestScale);
}

/// Returns the largest magnitude; unset where a value is not finite or too large.
template <class T>
std::optional<float> largest_of(const T* row, int64_t n) {
  float largest = 0;
  bool fits = true;
  for (int64_t i = 0; i < n; ++i) {
    const float value = std::abs(static_cast<float>(row[i]));
    fits = fits && value <= kLargest;  // not of a NaN
    largest = std::max(largest, value);
  }
  if (!fits) return std::nullopt;
  return largest;
}

template <class Work>
void for_rows(const at::Tensor& t, const Work& work) {
  const int64_t rows = t.size(0), n = t.numel() / rows;
  at::parallel_for(0, rows, std::max<int64_t>(1, kGrain / n), [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) work(row, n);
  });
}

/// Calls work with a pointer to the tensor's elements.
template <class Work>
void with_elements(const at::Tensor& t, const Work& work) {
  if (t.scalar_type() == c10::kFloat) return work(static_cast<float*>(t.data_ptr()));
  if (t.scalar_type() == c10::kBFloat16) return work(static_cast<c10::BFloat16*>(t.data_ptr()));
  work(static_cast<c10::Half*>(t.data_ptr()));
}

[[noreturn]] void refuse(const std::string& name) {
  throw ConfigError("fp8", "'" + printable(name) +
                               "' has a value that is NaN, infinite or larger than 2^127, which "
                               "E4M3 with a scale does not hold");
}

template <class T>
void find_scales(const at::Tensor& source, const T* data, float* scale, const std::string& name) {
  const int64_t rows = source.size(0), n = source.numel() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const auto largest = largest_of(data + row * n, n);
    if (!largest) refuse(name);
    scale[row] = scale_for(*largest);
  }
}

template <class T>
void round_rows(const at::Tensor& source, const T* data, const float* scale, Float8_e4m3fn* to) {
  for_rows(source, [&](int64_t row, int64_t n) {
    const float factor = 1 / scale[row];  // exact: a power of two
    for (int64_t i = row * n; i < (row + 1) * n; ++i)
      to[i] = Float8_e4m3fn(static_cast<float>(data[i]) * factor);
  });
}

/// Quantises rows; all tensors are on the host, and the source is contiguous by rows.
Fp8Weight quantise_rows(const at::Tensor& source, const std::string& name) {
  Fp8Weight result{at::empty_strided(source.sizes(), source.strides(),
                                     source.options().dtype(c10::kFloat8_e4m3fn)),
                   at::empty({source.size(0)}, source.options().dtype(c10::kFloat))};
  if (source.is_meta()) return result;
  with_elements(source, [&](const auto* data) {
    auto* scale = result.scale.mutable_data_ptr<float>();
    find_scales(source, data, scale, name);
    round_rows(source, data, scale, result.values.mutable_data_ptr<Float8_e4m3fn>());
  });
  return result;
}

const std::array<float, 256>& table() {
  static const auto values = [] {
    std::array<float, 256> all{};
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = Float8_e4m3fn(static_cast<uint8_t>(i), Float8_e4m3fn::from_bits());
    return all;
  }();
  return values;
}

/// Multiplies each row by its scale; both tensors are on the host, with equal strides.
void scale_rows(const at::Tensor& target, const Fp8Weight& weight) {
  const auto* values = weight.values.const_data_ptr<Float8_e4m3fn>();
  const auto* scale = weight.scale.const_data_ptr<float>();
  with_elements(target, [&](auto* to) {
    for_rows(target, [&](int64_t row, int64_t n) {
      for (int64_t i = row * n; i < (row + 1) * n; ++i) to[i] = table()[values[i].x] * scale[row];
    });
  });
}

bool same_layout(const at::Tensor& target, const at::Tensor& values) {
  return target.is_cpu() && values.is_cpu() && target.strides() == values.strides() &&
         by_row(values) &&
         (target.scalar_type() == c10::kFloat || has_16_bits(target.scalar_type()));
}

std::vector<int64_t> column(const at::Tensor& values) {
  std::vector<int64_t> shape(static_cast<size_t>(values.dim()), 1);
  shape.front() = values.size(0);
  return shape;
}

bool has_nan(const at::Tensor& values) {
  const at::Tensor all = rows_of(values);
  const auto* data = all.const_data_ptr<Float8_e4m3fn>();
  return std::any_of(data, data + all.numel(), [](Float8_e4m3fn v) { return v.isnan(); });
}

bool usable(const at::Tensor& scale) {
  const auto* data = scale.const_data_ptr<float>();
  constexpr float kMost = std::numeric_limits<float>::max() / kLargestFp8;
  return std::all_of(data, data + scale.numel(), [](float s) { return s > 0 && s <= kMost; });
}

bool is_fp8(const at::Tensor& tensor) { return tensor.scalar_type() == c10::kFloat8_e4m3fn; }

void check_free(const std::vector<NamedTensor>& stored, const std::string& scale) {
  if (std::ranges::find(stored, scale, &NamedTensor::name) == stored.end()) return;
  throw ConfigError("fp8", "tensor '" + printable(scale) +
                               "' has the name of the scale that its weight would get; rename it");
}

}  // namespace

bool fits_fp8(const at::Tensor& weight) {
  const auto type = weight.scalar_type();
  return weight.dim() >= 2 && weight.numel() > 0 && weight.layout() == c10::kStrided &&
         (type == c10::kFloat || has_16_bits(type));
}

at::Tensor in_float32(const at::Tensor& tensor) {
  return has_16_bits(tensor.scalar_type()) ? tensor.to(c10::kFloat) : tensor;
}

std::string scale_name(const std::string& weight) { return weight + "_scale"; }

Fp8Weight quantise(const at::Tensor& weight, const std::string& name) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor source = rows_of(weight);
  if (source.is_cpu() || source.is_meta()) return quantise_rows(source, name);
  const Fp8Weight host = quantise_rows(source.cpu(), name);
  return {host.values.to(weight.device()), host.scale.to(weight.device())};
}

void quantise_into(const Fp8Weight& held, const at::Tensor& weight, const std::string& name) {
  const Fp8Weight fresh = quantise(weight.cpu(), name);
  const c10::AutoGradMode no_grad(false);
  held.values.copy_(fresh.values);
  held.scale.copy_(fresh.scale);
}

at::Tensor dequantise(const Fp8Weight& weight, c10::ScalarType type) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor& values = weight.values;
  // Each E4M3 value is one of the wider type, and a card multiplies by float32 before it rounds.
  if (!values.is_cpu() && !values.is_meta())
    return values.to(type).mul_(weight.scale.view(column(values)));
  const at::Tensor rows = rows_of(values);
  at::Tensor full = at::empty_strided(rows.sizes(), rows.strides(), rows.options().dtype(type));
  if (!full.is_meta()) scale_rows(full, {rows, weight.scale});
  return full;
}

void dequantise_into(const at::Tensor& target, const Fp8Weight& weight) {
  if (same_layout(target, weight.values)) return scale_rows(target, weight);
  const c10::AutoGradMode no_grad(false);
  target.copy_(dequantise(weight, c10::kFloat));
}

std::map<std::string, at::Tensor> scales_in(const std::vector<NamedTensor>& stored,
                                            std::string_view operation,
                                            const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& name, const char* problem) {
    throw FormatError(operation, path.string(), printable(name), problem);
  };
  std::map<std::string, const at::Tensor*> by_name;
  for (const auto& t : stored) by_name.emplace(t.name, &t.tensor);
  std::map<std::string, at::Tensor> scales;
  for (const auto& [name, values] : stored) {
    if (!is_fp8(values)) continue;
    const auto found = by_name.find(scale_name(name));
    if (values.dim() < 2 || values.numel() == 0) refuse(name, "is float8 and no matrix");
    if (found == by_name.end()) refuse(name, "is float8 without the scale of its rows");
    const at::Tensor& scale = *found->second;
    if (scale.scalar_type() != c10::kFloat || scale.dim() != 1 || scale.size(0) != values.size(0))
      refuse(found->first, "is not the scale of its weight's rows: float32, one for each");
    if (!usable(scale))
      refuse(found->first, "has a scale that is not above 0 and below 2^119, as those of E4M3 are");
    if (has_nan(values)) refuse(name, "has a NaN");
    scales.emplace(name, scale);
  }
  return scales;
}

namespace {

/// Returns `stored` without scales; `make` returns what an E4M3 weight becomes.
template <class Make>
std::vector<NamedTensor> without_scales(const std::vector<NamedTensor>& stored,
                                        const std::map<std::string, at::Tensor>& scales,
                                        const Make& make) {
  std::unordered_set<std::string> dropped;
  for (const auto& [name, scale] : scales) dropped.insert(scale_name(name));
  std::vector<NamedTensor> result;
  for (const auto& [name, tensor] : stored) {
    if (dropped.contains(name)) continue;
    const auto scale = scales.find(name);
    result.push_back({name, scale == scales.end() ? tensor : make(tensor, scale->second)});
  }
  return result;
}

}  // namespace

std::vector<NamedTensor> dequantised(const std::vector<NamedTensor>& stored,
                                     std::string_view operation,
                                     const std::filesystem::path& path) {
  return without_scales(stored, scales_in(stored, operation, path),
                        [](const at::Tensor& values, const at::Tensor& scale) {
                          return dequantise({values, scale}, c10::kFloat);
                        });
}

std::vector<NamedTensor> outlined(const std::vector<NamedTensor>& stored,
                                  const std::map<std::string, at::Tensor>& scales) {
  return without_scales(stored, scales, [](const at::Tensor& values, const at::Tensor&) {
    return at::empty(values.sizes(), at::TensorOptions(c10::kFloat).device(c10::kMeta));
  });
}

std::vector<NamedTensor> as_fp8(const std::vector<NamedTensor>& stored,
                                const std::vector<std::string>& parameters) {
  const c10::AutoGradMode no_grad(false);
  const std::unordered_set<std::string> chosen(parameters.begin(), parameters.end());
  std::vector<NamedTensor> result;
  for (const auto& [name, tensor] : stored) {
    if (chosen.contains(name) && fits_fp8(tensor)) {
      check_free(stored, scale_name(name));
      auto [values, scale] = quantise(tensor, name);
      result.push_back({name, std::move(values)});
      result.push_back({scale_name(name), std::move(scale)});
    } else {
      result.push_back({name, in_float32(tensor)});
    }
  }
  return result;
}

}  // namespace tare
