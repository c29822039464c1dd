// XXH3 of bytes in memory; checkpoints hash by it too.
#include "tare/base/content_hash.h"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // picks AVX2 or AVX-512 at run time
#endif

namespace tare {

std::string content_hash(std::span<const std::byte> bytes) {
  return hash_text(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string hash_text(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace tare
