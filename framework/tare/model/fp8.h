// Weights as E4M3: eight bits a value, and a scale for each row.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tare/memory/named_tensor.h"

namespace tare {

/// Holds a matrix, convolution or embedding as E4M3 (Micikevicius et al. 2022, "FP8 Formats for
/// Deep Learning"): value = values * scale, with one scale for each index of dimension 0. Nothing
/// is computed with E4M3 itself: the product with the scale is taken in float32 first. A value.
struct Fp8Weight {
  at::Tensor values{};  ///< float8_e4m3fn [rows, ...]
  at::Tensor scale{};   ///< float32 [rows]
};

inline constexpr float kLargestFp8 = 448;  ///< of E4M3

/// Whether a parameter can be held so: float32, bfloat16 or float16, of two dimensions or more, and
/// not empty.
[[nodiscard]] bool fits_fp8(const at::Tensor& weight);
/// Returns `tensor` as float32 if it is bfloat16 or float16; else itself.
[[nodiscard]] at::Tensor in_float32(const at::Tensor& tensor);
/// Returns the name, in files, of the scale that belongs to a weight: "fc.weight" has
/// "fc.weight_scale".
[[nodiscard]] std::string scale_name(const std::string& weight);

/// Rounds a weight that fits_fp8() to the nearest, ties to even, on its device. The scale of a row
/// is the smallest power of two, and not below 2^-117, with which its largest magnitude is rounded
/// to at most 448; that of a row of zeros is 1. So a value of at least scale * 2^-6 is off by at
/// most 1/16 of itself, a smaller one by at most scale * 2^-10; the product is exact in float32 and
/// in bfloat16; and rounding again changes nothing. Throws ConfigError, naming the weight, for a
/// value that is NaN, infinite or larger than 2^127. Waits for the device.
[[nodiscard]] Fp8Weight quantise(const at::Tensor& weight, const std::string& name);
/// Quantises into `held`, which has the weight's shape. On an exception `held` is unchanged.
void quantise_into(const Fp8Weight& held, const at::Tensor& weight, const std::string& name);
/// Returns the values as float32, bfloat16 or float16, strided as they are. Allocates the result
/// only, but on a device for a 16-bit type also a float32 one.
[[nodiscard]] at::Tensor dequantise(const Fp8Weight& weight, c10::ScalarType type);
/// Dequantises into a tensor of the weight's shape, on any device.
void dequantise_into(const at::Tensor& target, const Fp8Weight& weight);

/// Returns the scales that belong to the E4M3 tensors of a file, by the weight's name. Throws
/// FormatError, naming the tensor, for a weight without a scale, with one of another shape or
/// dtype, or with one that is not finite, not above 0 or too large for a product in float32, and
/// for a weight with a NaN. `stored`: on the host.
[[nodiscard]] std::map<std::string, at::Tensor> scales_in(const std::vector<NamedTensor>& stored,
                                                          std::string_view operation,
                                                          const std::filesystem::path& path);

/// Returns the tensors of a file as a model computes with them: without scales, and with E4M3
/// dequantised to float32. Throws what scales_in() throws.
[[nodiscard]] std::vector<NamedTensor> dequantised(const std::vector<NamedTensor>& stored,
                                                   std::string_view operation,
                                                   const std::filesystem::path& path);
/// Returns dequantised() without values: an E4M3 weight becomes a tensor on the meta device.
[[nodiscard]] std::vector<NamedTensor> outlined(const std::vector<NamedTensor>& stored,
                                                const std::map<std::string, at::Tensor>& scales);
/// Returns tensors for a file that holds its weights as E4M3: those of `parameters` that fit are
/// quantised, each followed by its scale; E4M3 ones stay with their scales. Other 16-bit tensors
/// become float32, as nothing computes with two types. Throws ConfigError, for a weight as
/// quantise(), and where a tensor has the name of a scale.
[[nodiscard]] std::vector<NamedTensor> as_fp8(const std::vector<NamedTensor>& stored,
                                              const std::vector<std::string>& parameters);

}  // namespace tare
