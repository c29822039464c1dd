// Measures how fast a machine computes, copies and stores.
#include "tare/bench/machine_limits.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <sstream>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/io.h"
#include "tare/base/table.h"
#include "tare/memory/backend.h"
#include "tare/memory/pinned_copy.h"

namespace tare::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kEnough = 0.03;  // seconds of one repetition
constexpr int kRepetitions = 4;
constexpr int64_t kLarge = 128_MiB;  // more than caches of the host hold
constexpr int64_t kFile = 64_MiB;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns the seconds of one call: the least of some repetitions, each of which takes long enough
/// to be measured.
double seconds_of(const std::function<void()>& work, const std::function<void()>& wait) {
  auto start = Clock::now();
  work();
  wait();
  const double first = since(start);
  const auto count = static_cast<int64_t>(std::clamp(kEnough / first, 1.0, 1e5));
  if (first > 10 * kEnough) return first;  // a type for which there are no instructions
  double least = first;
  for (int i = 0; i < kRepetitions; ++i) {
    start = Clock::now();
    for (int64_t done = 0; done < count; ++done) work();
    wait();
    least = std::min(least, since(start) / static_cast<double>(count));
  }
  return least;
}

class Measurement {
 public:
  explicit Measurement(c10::Device device) : device_(device) {}

  /// Returns the rate of products of square matrices, in 1e12 operations by the second.
  [[nodiscard]] double products(c10::ScalarType type) const {
    const int64_t size = device_.is_cpu() ? 768 : 4096;
    const at::Tensor a = at::ones({size, size}, options(type)), b = at::ones_like(a);
    at::Tensor result = at::empty({size, size}, options(type));
    double least = seconds([&] { at::mm_out(result, a, b); });
    if (device_.is_cpu() && type == c10::kFloat)  // the other library of LibTorch for the host
      if (const auto by_onednn = onednn_linear())
        least = std::min(least, seconds([&] { (void)by_onednn(a, b); }));
    const auto wide = static_cast<double>(size);
    return 2 * wide * wide * wide / least / 1e12;
  }

  [[nodiscard]] std::vector<CopyRate> copies() const {
    std::vector<CopyRate> rates;
    for (int64_t bytes = 16_KiB; bytes <= 2 * kLarge; bytes *= 8) {
      const at::Tensor from = at::zeros({bytes / 2}, options(c10::kByte)),
                       to = at::zeros({bytes / 2}, options(c10::kByte));
      const double once = device_.is_cpu() && at::get_num_threads() == 1
                              ? seconds([&] {  // without an operator, which takes a microsecond
                                  std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(),
                                              static_cast<size_t>(bytes / 2));
                                })
                              : seconds([&] { to.copy_(from); });
      rates.push_back({bytes, static_cast<double>(bytes) / once});
    }
    return rates;
  }

  [[nodiscard]] double reading() const {
    const at::Tensor numbers = at::ones({kLarge / 4}, options(c10::kFloat));
    return static_cast<double>(kLarge) / seconds([&] { (void)numbers.sum(); });
  }

  /// Returns the rates to and from the device.
  [[nodiscard]] std::pair<double, double> transfers() const {
    const auto on_host = at::TensorOptions(c10::kByte).pinned_memory(true);
    const at::Tensor host = at::zeros({kLarge}, on_host),
                     there = at::zeros({kLarge}, options(c10::kByte));
    const auto bytes = static_cast<double>(kLarge);
    return {bytes / seconds([&] { there.copy_(host, /*non_blocking=*/true); }),
            bytes / seconds([&] { host.copy_(there, /*non_blocking=*/true); })};
  }

 private:
  using Linear = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

  /// Returns oneDNN's linear layer; empty: this LibTorch has none.
  static Linear onednn_linear() {
    using Numbers = c10::List<std::optional<at::Scalar>>;
    const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!found) return {};
    const auto op = found->typed<at::Tensor(const at::Tensor&, const at::Tensor&,
                                            const std::optional<at::Tensor>&, std::string_view,
                                            Numbers, std::optional<std::string_view>)>();
    return [op](const at::Tensor& input, const at::Tensor& weight) {
      return op.call(input, weight, std::nullopt, "none", Numbers(), std::nullopt);
    };
  }

  [[nodiscard]] at::TensorOptions options(c10::ScalarType type) const {
    return at::TensorOptions(device_).dtype(type);
  }
  [[nodiscard]] double seconds(const std::function<void()>& work) const {
    return seconds_of(work, [this] {
      if (!device_.is_cpu())
        c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
    });
  }

  c10::Device device_;
};

PeakRates rates_of(const Measurement& measured, c10::Device device) {
  PeakRates rates{.fp32 = measured.products(c10::kFloat),
                  .fp16 = measured.products(c10::kHalf),
                  .bf16 = measured.products(c10::kBFloat16)};
  auto& context = at::globalContext();
  if (device.is_cuda() && !context.allowTF32CuBLAS()) {
    context.setAllowTF32CuBLAS(true);
    rates.tf32 = measured.products(c10::kFloat);
    context.setAllowTF32CuBLAS(false);
  }
  return rates;
}

/// Measures the disk of a folder by a file that no cache holds any more when it is read.
std::pair<double, double> disk_rates(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / ".tare-bench.partial";
  const std::vector<char> block(static_cast<size_t>(4_MiB), 'x');
  const auto bytes = static_cast<double>(kFile);
  double write = 0, read = 0;
  try {
    {
      io::File file(path, io::Mode::create);
      const auto start = Clock::now();
      for (int64_t done = 0; done < kFile; done += 4_MiB) file.write(block.data(), block.size());
      file.flush();
      write = bytes / since(start);
      (void)::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
      file.close();
    }
    io::File file(path, io::Mode::read);
    std::vector<char> into(block.size());
    const auto start = Clock::now();
    while (file.read(into.data(), into.size()) == into.size()) {
    }
    read = bytes / since(start);
  } catch (...) {
    std::error_code ignored;  // what went wrong first counts
    std::filesystem::remove(path, ignored);
    throw;
  }
  std::filesystem::remove(path);
  return {write, read};
}

std::string rate_text(double bytes_per_s) {
  return format_bytes(static_cast<int64_t>(bytes_per_s)) + "/s";
}

std::string products_text(const PeakRates& rates) {
  struct Row {
    const char* type;
    double rate;
  };
  std::string text;
  for (const auto& [type, rate] : {Row{"float32", rates.fp32}, Row{"TF32", rates.tf32},
                                   Row{"bfloat16", rates.bf16}, Row{"float16", rates.fp16}}) {
    if (rate <= 0) continue;
    std::array<char, 64> one{};
    std::snprintf(one.data(), one.size(), "%s %.4g", type, rate * 1000);
    text += (text.empty() ? "" : ", ") + std::string(one.data());
  }
  return text;
}

}  // namespace

double MachineLimits::seconds_of_bytes(double bytes) const {
  if (copies.empty() || bytes <= 0) return 0;
  const auto above = std::ranges::find_if(
      copies, [&](const CopyRate& one) { return static_cast<double>(one.bytes) >= bytes; });
  if (above == copies.begin()) return bytes / above->bytes_per_s;
  if (above == copies.end()) return bytes / copies.back().bytes_per_s;
  const CopyRate& below = *std::prev(above);
  const double share =
      std::log(bytes / static_cast<double>(below.bytes)) /
      std::log(static_cast<double>(above->bytes) / static_cast<double>(below.bytes));
  return bytes / std::lerp(below.bytes_per_s, above->bytes_per_s, share);
}

MachineLimits measure_limits(c10::Device device, const std::filesystem::path& folder) {
  const at::NoGradGuard without_graph;
  MachineLimits limits{.device = memory::backend(device).device(),
                       .name = memory::backend(device).name(),
                       .threads = at::get_num_threads()};
  const Measurement measured(limits.device);
  limits.products = rates_of(measured, limits.device);
  if (device.is_cpu() && limits.threads > 1) {
    at::set_num_threads(1);
    limits.products_of_one = rates_of(measured, limits.device);
    at::set_num_threads(static_cast<int>(limits.threads));
  } else if (device.is_cpu()) {
    limits.products_of_one = limits.products;
  }
  limits.copies = measured.copies();
  limits.read_bytes_per_s = measured.reading();
  if (!device.is_cpu())
    std::tie(limits.to_device_bytes_per_s, limits.from_device_bytes_per_s) = measured.transfers();
  if (!folder.empty())
    std::tie(limits.disk_write_bytes_per_s, limits.disk_read_bytes_per_s) = disk_rates(folder);
  return limits;
}

std::string to_text(const MachineLimits& limits, size_t width) {
  std::string copies;
  for (const CopyRate& one : limits.copies)
    copies +=
        (copies.empty() ? "" : ", ") + format_bytes(one.bytes) + " " + rate_text(one.bytes_per_s);
  std::vector<ListEntry> rows;
  const bool on_host = limits.device.is_cpu();
  rows.push_back({"products", products_text(limits.products) + " GFLOP/s"});
  if (on_host && limits.threads > 1)
    rows.push_back({"of one thread", products_text(limits.products_of_one) + " GFLOP/s"});
  rows.push_back({"copies", copies});
  rows.push_back({"reading", rate_text(limits.read_bytes_per_s)});
  if (!on_host)
    rows.push_back({"transfers", "to the device " + rate_text(limits.to_device_bytes_per_s) +
                                     ", from it " + rate_text(limits.from_device_bytes_per_s)});
  if (limits.disk_write_bytes_per_s > 0)
    rows.push_back({"disk", "writing " + rate_text(limits.disk_write_bytes_per_s) + ", reading " +
                                rate_text(limits.disk_read_bytes_per_s)});
  const std::string threads =
      std::to_string(limits.threads) + (limits.threads == 1 ? " thread" : " threads");
  return limits.device.str() + ", " + limits.name + (on_host ? ", " + threads : "") + '\n' +
         text_list(rows, 2, width);
}

}  // namespace tare::bench
