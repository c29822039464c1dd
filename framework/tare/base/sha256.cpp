// SHA-256 by libmd, which is a few kilobytes where a cryptographic library is megabytes.
#include "tare/base/sha256.h"

#include <array>
#include <cstdint>

namespace tare {

void Sha256::add(std::span<const char> bytes) {
  SHA256Update(&state_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Sha256::hex() {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256Final(digest.data(), &state_);
  std::string text;
  for (const uint8_t byte : digest)
    text.append({"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]});
  return text;
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.hex();
}

}  // namespace tare
