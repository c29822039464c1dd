// Weights in eight bits a value, as E4M3 or as int8, with a scale for each row; and in sixteen.
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
/// Deep Learning") or as int8: value = values * scale, with one scale for each index of dimension
/// 0. Nothing is computed with the codes: the product with the scale is taken in float32 first. A
/// value.
struct CodedWeight {
  at::Tensor values{};  ///< float8_e4m3fn or int8 [rows, ...]
  at::Tensor scale{};   ///< float32 [rows]
};

inline constexpr float kLargestFp8 = 448;  ///< of E4M3

/// Whether a parameter can be held so: float32, bfloat16 or float16, of two dimensions or more, and
/// not empty.
[[nodiscard]] bool fits_codes(const at::Tensor& weight);
/// Returns `tensor` as float32 if it is bfloat16 or float16; else itself.
[[nodiscard]] at::Tensor in_float32(const at::Tensor& tensor);
/// Returns the name, in files, of the scale that belongs to a weight: "fc.weight" has
/// "fc.weight_scale".
[[nodiscard]] std::string scale_name(const std::string& weight);

/// Rounds a weight that fits_codes() to the nearest, ties to even, on its device. The scale of a
/// row is the smallest power of two, and not below 2^-117, with which its largest magnitude is
/// rounded to at most 448; that of a row of zeros is 1. So a value of at least scale * 2^-6 is off
/// by at most 1/16 of itself, a smaller one by at most scale * 2^-10; the product is exact in
/// float32 and in bfloat16; and rounding again changes nothing. Throws ConfigError, naming the
/// weight, for a value that is NaN, infinite or larger than 2^127. Waits for the device.
[[nodiscard]] CodedWeight quantise(const at::Tensor& weight, const std::string& name);
/// Rounds a weight that fits_codes() to int8, ties to even, on its device. The scale of a row is
/// its largest magnitude divided by 127, and not below 2^-117; that of a row of zeros is 1. So a
/// value is off by at most half a scale. Throws and waits as quantise().
[[nodiscard]] CodedWeight quantise_int8(const at::Tensor& weight, const std::string& name);
/// Quantises into `held`, E4M3 of the weight's shape. On an exception `held` is unchanged.
void quantise_into(const CodedWeight& held, const at::Tensor& weight, const std::string& name);
/// Returns the values as float32, bfloat16 or float16, strided as they are. Allocates the result
/// only, but on a device for a 16-bit type also a float32 one.
[[nodiscard]] at::Tensor dequantise(const CodedWeight& weight, c10::ScalarType type);
/// Dequantises into a tensor of the weight's shape, on any device.
void dequantise_into(const at::Tensor& target, const CodedWeight& weight);

/// Returns the scales that belong to the E4M3 tensors of a file, and to the int8 ones beside which
/// a tensor has the name of their scale, by the weight's name. Throws FormatError, naming the
/// tensor, for an E4M3 weight without a scale, for a scale of another shape or dtype, or one that
/// is not finite, not above 0 or too large for a product in float32, and for a weight with a NaN.
/// `stored`: on the host.
[[nodiscard]] std::map<std::string, at::Tensor> scales_in(const std::vector<NamedTensor>& stored,
                                                          std::string_view operation,
                                                          const std::filesystem::path& path);

/// Returns the tensors of a file as a model computes with them: without scales, and with coded
/// weights dequantised to float32. Throws what scales_in() throws.
[[nodiscard]] std::vector<NamedTensor> dequantised(const std::vector<NamedTensor>& stored,
                                                   std::string_view operation,
                                                   const std::filesystem::path& path);
/// Returns dequantised() without values: a coded weight becomes a tensor on the meta device.
[[nodiscard]] std::vector<NamedTensor> outlined(const std::vector<NamedTensor>& stored,
                                                const std::map<std::string, at::Tensor>& scales);
/// Returns tensors for a file that holds its weights as E4M3: those of `parameters` that fit are
/// quantised, each followed by its scale; coded ones stay with their scales. Other 16-bit tensors
/// become float32, as nothing computes with two types. Throws ConfigError, for a weight as
/// quantise(), and where a tensor has the name of a scale.
[[nodiscard]] std::vector<NamedTensor> as_fp8(const std::vector<NamedTensor>& stored,
                                              const std::vector<std::string>& parameters);
/// Returns tensors for a file that holds its weights as int8, as as_fp8().
[[nodiscard]] std::vector<NamedTensor> as_int8(const std::vector<NamedTensor>& stored,
                                               const std::vector<std::string>& parameters);
/// Returns tensors for a file that holds its weights in 16 bits: those of `parameters` that fit are
/// rounded to `type`, bfloat16 or float16; other 16-bit tensors become float32. `stored`: without
/// codes. Throws ConfigError, naming the weight, for a finite value that float16 cannot hold.
[[nodiscard]] std::vector<NamedTensor> as_16_bits(const std::vector<NamedTensor>& stored,
                                                  const std::vector<std::string>& parameters,
                                                  c10::ScalarType type);
/// Returns how the matrices of a file are coded: "fp8", "int8", or "" for neither.
[[nodiscard]] std::string coding_of(const std::vector<NamedTensor>& stored);

}  // namespace tare
