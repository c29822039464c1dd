// Digest: the hashes of a safetensors file, which a manifest lists.
#pragma once

#include <map>
#include <string>

namespace tare::checkpoint {

/// Holds hashes of a file's content, by which any accidental change is detected.
struct Digest {
  std::string layout;  ///< of names, dtypes, shapes, offsets and metadata (but for key "tare")
  /// XXH3-64 of each tensor's bytes, as 16 hexadecimal digits.
  std::map<std::string, std::string> tensors;

  bool operator==(const Digest&) const = default;
};

}  // namespace tare::checkpoint
