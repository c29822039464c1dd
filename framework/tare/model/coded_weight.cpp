// Rounds weights to eight bits with a scale for each row, and back.
#include "tare/model/coded_weight.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
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

constexpr float kLargestInt8 = 127;
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

/// Rounds to E4M3.
struct ToFp8 {
  using Code = Float8_e4m3fn;
  static constexpr auto kType = c10::kFloat8_e4m3fn;
  static float scale(float largest) { return scale_for(largest); }
  static Code code(float value, float scale) { return Code(value / scale); }  // exact before
};

/// Rounds to int8, in which -128 is not used.
struct ToInt8 {
  using Code = int8_t;
  static constexpr auto kType = c10::kChar;
  static float scale(float largest) {
    return largest == 0 ? 1 : std::max(largest / kLargestInt8, kSmallestScale);
  }
  static Code code(float value, float scale) {
    return static_cast<Code>(
        std::clamp(std::nearbyint(value / scale), -kLargestInt8, kLargestInt8));
  }
};

template <class To, class T>
void find_scales(const at::Tensor& source, const T* data, float* scale, const std::string& name) {
  const int64_t rows = source.size(0), n = source.numel() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const auto largest = largest_of(data + row * n, n);
    if (!largest) refuse(name);
    scale[row] = To::scale(*largest);
  }
}

template <class To, class T>
void round_rows(const at::Tensor& source, const T* data, const float* scale,
                typename To::Code* to) {
  for_rows(source, [&](int64_t row, int64_t n) {
    for (int64_t i = row * n; i < (row + 1) * n; ++i)
      to[i] = To::code(static_cast<float>(data[i]), scale[row]);
  });
}

/// Quantises rows; all tensors are on the host, and the source is contiguous by rows.
template <class To>
CodedWeight quantise_rows(const at::Tensor& source, const std::string& name) {
  CodedWeight result{
      at::empty_strided(source.sizes(), source.strides(), source.options().dtype(To::kType)),
      at::empty({source.size(0)}, source.options().dtype(c10::kFloat))};
  if (source.is_meta()) return result;
  with_elements(source, [&](const auto* data) {
    auto* scale = result.scale.mutable_data_ptr<float>();
    find_scales<To>(source, data, scale, name);
    round_rows<To>(source, data, scale, result.values.mutable_data_ptr<typename To::Code>());
  });
  return result;
}

template <class To>
CodedWeight quantise_as(const at::Tensor& weight, const std::string& name) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor source = rows_of(weight);
  if (source.is_cpu() || source.is_meta()) return quantise_rows<To>(source, name);
  const CodedWeight host = quantise_rows<To>(source.cpu(), name);
  return {host.values.to(weight.device()), host.scale.to(weight.device())};
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

float value_of(Float8_e4m3fn code) { return table()[code.x]; }
float value_of(int8_t code) { return code; }

template <class Code>
void scale_codes(const at::Tensor& target, const CodedWeight& weight) {
  const auto* codes = weight.values.const_data_ptr<Code>();
  const auto* scale = weight.scale.const_data_ptr<float>();
  with_elements(target, [&](auto* to) {
    for_rows(target, [&](int64_t row, int64_t n) {
      for (int64_t i = row * n; i < (row + 1) * n; ++i) to[i] = value_of(codes[i]) * scale[row];
    });
  });
}

bool is_int8(const at::Tensor& tensor) { return tensor.scalar_type() == c10::kChar; }

/// Multiplies each row by its scale; both tensors are on the host, with equal strides.
void scale_rows(const at::Tensor& target, const CodedWeight& weight) {
  is_int8(weight.values) ? scale_codes<int8_t>(target, weight)
                         : scale_codes<Float8_e4m3fn>(target, weight);
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

/// Whether the products of codes up to `largest` with the scales are numbers.
bool usable(const at::Tensor& scale, float largest) {
  const auto* data = scale.const_data_ptr<float>();
  const float most = std::numeric_limits<float>::max() / largest;
  return std::all_of(data, data + scale.numel(), [&](float s) { return s > 0 && s <= most; });
}

bool is_fp8(const at::Tensor& tensor) { return tensor.scalar_type() == c10::kFloat8_e4m3fn; }

void check_free(const std::vector<NamedTensor>& stored, const std::string& scale) {
  if (std::ranges::find(stored, scale, &NamedTensor::name) == stored.end()) return;
  throw ConfigError("fp8", "tensor '" + printable(scale) +
                               "' has the name of the scale that its weight would get; rename it");
}

}  // namespace

bool fits_codes(const at::Tensor& weight) {
  const auto type = weight.scalar_type();
  return weight.dim() >= 2 && weight.numel() > 0 && weight.layout() == c10::kStrided &&
         (type == c10::kFloat || has_16_bits(type));
}

at::Tensor in_float32(const at::Tensor& tensor) {
  return has_16_bits(tensor.scalar_type()) ? tensor.to(c10::kFloat) : tensor;
}

std::string scale_name(const std::string& weight) { return weight + "_scale"; }

CodedWeight quantise(const at::Tensor& weight, const std::string& name) {
  return quantise_as<ToFp8>(weight, name);
}

CodedWeight quantise_int8(const at::Tensor& weight, const std::string& name) {
  return quantise_as<ToInt8>(weight, name);
}

void quantise_into(const CodedWeight& held, const at::Tensor& weight, const std::string& name) {
  const CodedWeight fresh = quantise(weight.cpu(), name);
  const c10::AutoGradMode no_grad(false);
  held.values.copy_(fresh.values);
  held.scale.copy_(fresh.scale);
}

at::Tensor dequantise(const CodedWeight& weight, c10::ScalarType type) {
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

void dequantise_into(const at::Tensor& target, const CodedWeight& weight) {
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
    const auto found = by_name.find(scale_name(name));
    if (!is_fp8(values) && !(is_int8(values) && found != by_name.end())) continue;
    if (values.dim() < 2 || values.numel() == 0) refuse(name, "is of codes and no matrix");
    if (found == by_name.end()) refuse(name, "is float8 without the scale of its rows");
    const at::Tensor& scale = *found->second;
    if (scale.scalar_type() != c10::kFloat || scale.dim() != 1 || scale.size(0) != values.size(0))
      refuse(found->first, "is not the scale of its weight's rows: float32, one for each");
    if (!usable(scale, is_fp8(values) ? kLargestFp8 : kLargestInt8 + 1))
      refuse(found->first,
             "has a scale that is not above 0, or too large for a product in float32");
    if (is_fp8(values) && has_nan(values)) refuse(name, "has a NaN");
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

namespace {

/// Returns tensors of which those of `parameters` that fit are what `quantised` returns.
std::vector<NamedTensor> coded(const std::vector<NamedTensor>& stored,
                               const std::vector<std::string>& parameters,
                               CodedWeight (*quantised)(const at::Tensor&, const std::string&)) {
  const c10::AutoGradMode no_grad(false);
  const std::unordered_set<std::string> chosen(parameters.begin(), parameters.end());
  std::vector<NamedTensor> result;
  for (const auto& [name, tensor] : stored) {
    if (chosen.contains(name) && fits_codes(tensor)) {
      check_free(stored, scale_name(name));
      auto [values, scale] = quantised(tensor, name);
      result.push_back({name, std::move(values)});
      result.push_back({scale_name(name), std::move(scale)});
    } else {
      result.push_back({name, in_float32(tensor)});
    }
  }
  return result;
}

}  // namespace

std::vector<NamedTensor> as_fp8(const std::vector<NamedTensor>& stored,
                                const std::vector<std::string>& parameters) {
  return coded(stored, parameters, quantise);
}

std::vector<NamedTensor> as_int8(const std::vector<NamedTensor>& stored,
                                 const std::vector<std::string>& parameters) {
  return coded(stored, parameters, quantise_int8);
}

std::vector<NamedTensor> as_16_bits(const std::vector<NamedTensor>& stored,
                                    const std::vector<std::string>& parameters,
                                    c10::ScalarType type) {
  const c10::AutoGradMode no_grad(false);
  const std::unordered_set<std::string> chosen(parameters.begin(), parameters.end());
  std::vector<NamedTensor> result;
  for (const auto& [name, tensor] : stored) {
    const bool fits = chosen.contains(name) && fits_codes(tensor);
    at::Tensor rounded = fits ? tensor.to(type) : in_float32(tensor);
    if (fits && !at::equal(at::isfinite(rounded), at::isfinite(tensor)))
      throw ConfigError("export", "'" + printable(name) + "' has a value that " +
                                      c10::toString(type) +
                                      " cannot hold: export it as fp32 or bf16");
    result.push_back({name, std::move(rounded)});
  }
  return result;
}

std::string coding_of(const std::vector<NamedTensor>& stored) {
  bool is_coded = false;
  for (const auto& [name, tensor] : stored) {
    if (!tensor.defined()) continue;
    if (is_fp8(tensor)) return "fp8";
    is_coded = is_coded ||
               (is_int8(tensor) &&
                std::ranges::find(stored, scale_name(name), &NamedTensor::name) != stored.end());
  }
  return is_coded ? "int8" : "";
}

}  // namespace tare
