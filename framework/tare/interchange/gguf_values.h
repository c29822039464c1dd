// Numbers of the GGUF format. Internal.
//
// Format: docs/gguf.md of ggml, version 3.
#pragma once

#include <array>
#include <cstdint>

namespace tare::interchange::gguf {

inline constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
inline constexpr uint32_t kVersion = 3;
inline constexpr uint64_t kAlignment = 32;
inline constexpr int64_t kBlock = 32;  // numbers of a q8_0 block

// Types of values of the metadata.
inline constexpr uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kString = 8, kArray = 9;
/// Lists the bytes of a value of each type; 0: they depend on the value.
inline constexpr std::array<uint64_t, 13> kSizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

}  // namespace tare::interchange::gguf
