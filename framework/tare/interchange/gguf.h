// Writes language models as GGUF files, which llama.cpp and its relatives read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tare/inference/bundle.h"

namespace tare::interchange {

/// Lists how the matrices of a GGUF file are stored; vectors are float32 in each.
enum class GgufType {
  f32,  ///< float32
  f16,  ///< float16
  q8_0  ///< blocks of 32 numbers of 8 bits, with a float16 scale each
};

/// Holds a value of a GGUF file's metadata.
using GgufValue =
    std::variant<uint32_t, float, std::string, std::vector<int32_t>, std::vector<std::string>>;

/// Is a tensor of a GGUF file.
struct GgufTensor {
  std::string name{};             ///< as llama.cpp expects it, "blk.0.attn_qkv.weight"
  at::Tensor tensor{};            ///< float32, on the host
  GgufType type = GgufType::f32;  ///< of the file; q8_0 needs a last size that 32 divides
};

/// Writes metadata and tensors atomically: on any error the old file stays. Dimensions are written
/// in reverse order, and data at multiples of 32 bytes. Throws ConfigError for a tensor that its
/// type cannot hold; IoError.
///
/// Format: docs/gguf.md of ggml, version 3.
void write_gguf(const std::filesystem::path& path,
                const std::vector<std::pair<std::string, GgufValue>>& metadata,
                const std::vector<GgufTensor>& tensors);

/// Throws ConfigError for another model than `gpt`.
void check_gpt(const BundleManifest& manifest);
/// Writes the model `gpt` of a bundle under the names of llama.cpp's architecture gpt2. Throws
/// ConfigError for another model, and as write_gguf().
void write_gpt_gguf(const std::filesystem::path& path, const BundleManifest& manifest,
                    const std::vector<NamedTensor>& tensors, GgufType type,
                    const std::string& manifest_text);

}  // namespace tare::interchange
