// content_hash(): a hash that shows whether two pieces of memory hold the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tare {

/// Returns XXH3-64 of the bytes, as 16 hexadecimal digits: several GB/s. It finds accidental
/// changes; it is no protection against somebody who wants two contents to have one hash.
[[nodiscard]] std::string content_hash(std::span<const std::byte> bytes);
/// Returns a value of XXH3-64, which may have been computed in pieces, as content_hash() writes it.
[[nodiscard]] std::string hash_text(uint64_t value);

}  // namespace tare
