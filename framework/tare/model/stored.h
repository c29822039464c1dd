// A model's tensors as files have them, where some are held as E4M3.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tare/checkpoint/match.h"
#include "tare/model/model.h"

namespace tare {

/// Returns the scales of the held weights, then Model::state(), without a copy. A checkpoint stores
/// these tensors: exactly those with which the model computes.
[[nodiscard]] std::vector<NamedTensor> stored_state(const Model& model);
/// Returns Model::state() with held weights dequantised to their own type.
[[nodiscard]] std::vector<NamedTensor> computed_state(const Model& model);

/// Returns the storages in which weights can be exported: as_is | fp32 | bf16 | fp16 | fp8 | int8.
[[nodiscard]] std::vector<std::string> weight_storages();
/// Whether a storage has other values than the model: not as_is and fp32.
[[nodiscard]] bool rounds_weights(const std::string& weights);
/// Throws ConfigError, naming `where`, for another name.
void check_weight_storage(const std::string& weights, const std::string& where);
/// Returns the model's tensors for a bundle. as_is: computed_state(); fp32: 16-bit types as float32
/// too; fp8, int8, bf16, fp16: parameters that fit (fits_codes()) as as_fp8(), as_int8() and
/// as_16_bits() have them, held ones of fp8 as they are, and the rest in float32. Throws
/// ConfigError as those do.
[[nodiscard]] std::vector<NamedTensor> state_for(const Model& model, const std::string& weights);
/// Converts the tensors of a file in this way; as_is leaves them as they are.
/// `parameters`: names of those that are no buffers. Throws FormatError as scales_in().
[[nodiscard]] std::vector<NamedTensor> stored_for(const std::vector<NamedTensor>& stored,
                                                  const std::vector<std::string>& parameters,
                                                  const std::string& weights,
                                                  std::string_view operation,
                                                  const std::filesystem::path& path);
/// Returns the names of the model's parameters, without buffers, in the model's order.
[[nodiscard]] std::vector<std::string> parameter_names(const Model& model);

/// Returns checkpoint::compare() of the model with the tensors of a file, either of which may have
/// E4M3. Throws FormatError as scales_in().
[[nodiscard]] checkpoint::Match compare_stored(const Model& model,
                                               const std::vector<NamedTensor>& stored,
                                               std::string_view operation,
                                               const std::filesystem::path& path);
/// Copies the tensors of a file into the model, as checkpoint::copy_into() does. Held weights stay
/// held: what comes as E4M3 is taken as it is, other values are rounded. Throws FormatError also
/// for a value that cannot be held; then nothing has changed. Into weights on the host nothing is
/// allocated but for values to be rounded.
checkpoint::CopyReport load_stored(Model& model, const std::vector<NamedTensor>& stored,
                                   bool strict, std::string_view operation,
                                   const std::filesystem::path& path);

}  // namespace tare
