#include "tare/base/content_hash.h"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // picks AVX2 or AVX-512 at run time
#endif

#include <array>
#include <cstdint>

namespace tare {

std::string content_hash(std::span<const std::byte> bytes) {
  constexpr std::array kDigits{'0', '1', '2', '3', '4', '5', '6', '7',
                               '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = kDigits[hash & 15];
  return text;
}

}  // namespace tare
