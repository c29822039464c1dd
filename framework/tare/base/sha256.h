// SHA-256 of bytes that arrive in pieces, by libmd.
#pragma once

#include <sha2.h>

#include <span>
#include <string>
#include <string_view>

namespace tare {

/// Computes the hash of bytes that arrive in pieces. A value; not thread-safe.
class Sha256 {
 public:
  Sha256() { SHA256Init(&state_); }

  void add(std::span<const char> bytes);  ///< appends to what is hashed
  /// Returns the digest as 64 lower-case hexadecimal digits. The object must not be used
  /// afterwards.
  [[nodiscard]] std::string hex();

 private:
  SHA2_CTX state_{};
};

/// Returns the hash of `text` as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace tare
