// Byte counts, times and numbers as text, and literals such as 10_MiB. Counts are int64_t, so that
// a difference may be negative.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tare {

inline namespace literals {
/// Returns a number of bytes: `4_KiB` is 4 times 1024.
constexpr int64_t operator""_KiB(unsigned long long n) { return static_cast<int64_t>(n) << 10; }
/// Returns a number of bytes: `4_MiB` is 4 times 1024^2.
constexpr int64_t operator""_MiB(unsigned long long n) { return static_cast<int64_t>(n) << 20; }
/// Returns a number of bytes: `4_GiB` is 4 times 1024^3.
constexpr int64_t operator""_GiB(unsigned long long n) { return static_cast<int64_t>(n) << 30; }
}  // namespace literals

/// Bounds the compression ratio of deflate (gzip, PNG), from zlib's technical notes: a header that
/// claims more is wrong.
inline constexpr int64_t kMaxDeflateRatio = 1032;

/// Returns "0 B", "512 B", "44.7 MiB", "-1.5 GiB": IEC units, at most one decimal.
[[nodiscard]] std::string format_bytes(int64_t bytes);

/// Reads "8GiB", "8 GB", "512m", "1.5e9", "123": IEC units (1024) for KiB..TiB and single letters,
/// decimal for kB..TB. Unset for any other text, a negative number or an overflow.
[[nodiscard]] std::optional<int64_t> parse_bytes(std::string_view text);

/// Returns "0 us", "0.25 ms", "12.3 s", "2 min 05 s", "3 h 07 min": three digits below a minute;
/// "unknown" for NaN and infinity.
[[nodiscard]] std::string format_seconds(double seconds);

/// Returns "1,234,567".
[[nodiscard]] std::string format_count(int64_t count);

}  // namespace tare
