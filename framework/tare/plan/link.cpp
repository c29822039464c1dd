// Computes the time of exchanges; reads bandwidths, latencies and rates.
#include "tare/plan/link.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

#include "tare/base/bytes.h"
#include "tare/base/error.h"

namespace tare::plan {
namespace {

constexpr const char* kWhere = "tare plan";

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kBandwidths{
    Unit{"kbit/s", 1e3 / 8}, Unit{"Mbit/s", 1e6 / 8}, Unit{"Gbit/s", 1e9 / 8},
    Unit{"kB/s", 1e3},       Unit{"MB/s", 1e6},       Unit{"GB/s", 1e9},
    Unit{"KiB/s", 1 << 10},  Unit{"MiB/s", 1 << 20},  Unit{"GiB/s", 1 << 30},
};
constexpr std::array kTimes{Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
constexpr std::array kRates{Unit{"MFLOP/s", 1e6}, Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12},
                            Unit{"PFLOP/s", 1e15}};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Reads a finite number >= 0 and one of the units behind it.
template <class Units>
std::optional<double> read(std::string_view text, const Units& units) {
  text = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view name = trimmed(text.substr(static_cast<size_t>(end - text.data())));
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  return number * unit->factor;
}

template <class Units>
double read_above_zero(const std::string& text, const Units& units, const std::string& option,
                       const char* what, const char* example) {
  const auto value = read(text, units);
  if (!value || *value <= 0)
    throw ConfigError(kWhere, option, std::string("must be ") + what, example, printable(text));
  return *value;
}

}  // namespace

std::string Link::str() const {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g GB/s, ", bytes_per_s / 1e9);
  return text.data() + format_seconds(latency_s);
}

Link Cluster::of(int64_t ranks) const {
  if (ranks <= per_machine) return inside;
  if (per_machine == 1) return between;
  return {.bytes_per_s = std::min(inside.bytes_per_s, between.bytes_per_s),
          .latency_s = std::max(inside.latency_s, between.latency_s)};
}

double all_reduce_s(int64_t ranks, double bytes, const Link& link) {
  const auto count = static_cast<double>(ranks);
  return 2 * (count - 1) * link.seconds(bytes / count);
}

double reduce_s(int64_t ranks, double bytes, const Link& link) {
  if (ranks == 1) return 0;
  const auto count = static_cast<double>(ranks);
  return (count - 1) * link.seconds(bytes / count) + link.seconds(bytes * (count - 1) / count);
}

double broadcast_s(int64_t ranks, double bytes, const Link& link) {
  const auto rounds = static_cast<double>(std::bit_width(static_cast<uint64_t>(ranks - 1)));
  return rounds * link.seconds(bytes);
}

double agree_s(int64_t ranks, const Link& link) {
  return static_cast<double>(ranks - 1) * link.latency_s;
}

Link parse_link(const std::string& text, const std::string& option) {
  const std::string_view all = text;
  const auto comma = all.find(',');
  const auto bandwidth = read(all.substr(0, comma), kBandwidths);
  const auto latency =
      comma == std::string_view::npos ? std::nullopt : read(all.substr(comma + 1), kTimes);
  if (!bandwidth || !latency || *bandwidth <= 0)
    throw ConfigError(kWhere, option, "must be a bandwidth above 0 and a latency",
                      "such as 25GB/s,5us or 100Mbit/s,10ms", printable(text));
  return {.bytes_per_s = *bandwidth, .latency_s = *latency};
}

double parse_seconds(const std::string& text, const std::string& option) {
  return read_above_zero(text, kTimes, option, "a time above 0", "such as 250ms or 1.5s");
}

double parse_rate(const std::string& text, const std::string& option) {
  return read_above_zero(text, kRates, option, "operations by the second, above 0",
                         "such as 120TFLOP/s or 80GFLOP/s");
}

}  // namespace tare::plan
