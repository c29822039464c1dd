// Measures the cost of adaptive execution by toma's own benchmark (github.com/BlackHC/toma), which
// fills 128x256x256 floats in four chunks, with its five rows beside the ratios of its README; and
// the time of one out-of-memory that is caught.
//   bench_adaptive [rounds]
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "bench/paired.h"
#include "tare/adapt/adapt.h"
#include "tare/adapt/size_cache.h"
#include "tare/memory/host_allocator.h"
#include "tare/runtime/init.h"

namespace {

using tare::adapt::Cache;
using tare::bench::paired;

constexpr int64_t kRows = 128, kChunk = 32;

void fill(const at::Tensor& chunk, int64_t, int64_t) { chunk.fill_(1); }

struct Row {
  const char* name;
  double published;  // against toma's native loop
  std::function<void()> work;
};

void toma_rows(int rounds, const at::Tensor& tensor) {
  const auto native = [&] {
    for (int64_t from = 0; from < kRows; from += kChunk) {
      const int64_t to = std::min(kRows, from + kChunk);
      fill(tensor.narrow(0, from, to - from), from, to);
    }
  };
  tare::adapt::Chunked wrapper(kChunk, fill);
  const std::vector<Row> rows{
      {"native (A/A control)", 1.0, native},
      {"simple: range(), no cache", 9.14,
       [&] {
         tare::adapt::range(
             0, kRows, kChunk,
             [&](int64_t from, int64_t to) { fill(tensor.narrow(0, from, to - from), from, to); },
             {.policy = {.regrow_after = 0}, .cache = Cache::none});
       }},
      {"no cache: chunked(), no cache", 14.44,
       [&] { tare::adapt::chunked(tensor, kChunk, fill, 0, {.cache = Cache::none}); }},
      {"explicit: chunked(), cache of the call", 17.23,
       [&] { tare::adapt::chunked(tensor, kChunk, fill, 0, {.cache = Cache::call}); }},
      {"toma: Chunked, cache by stack and shapes", 18.89, [&] { wrapper(tensor); }}};
  for (const Row& row : rows) {
    const auto ratios = paired(
        rounds, [&] { return tare::bench::seconds(native); },
        [&] { return tare::bench::seconds(row.work); });
    tare::bench::print(row.name, ratios);
    std::printf("%-44s %.2f as toma's README has it\n", "", row.published);
  }
}

/// A chunk that is refused and repeated at half its size, against the two halves alone.
void caught(int rounds) {
  const auto use = [](int64_t size) { static_cast<void>(at::empty({size}, c10::kByte)); };
  const auto halves = [&] {
    for (int64_t i = 0; i < 2; ++i) use(1 << 15);
  };
  const auto adaptive = [&] {
    tare::memory::host_allocator::fail_at(1);
    tare::adapt::range(0, 1 << 16, 1 << 16, [&](int64_t from, int64_t to) { use(to - from); },
                       {.cache = Cache::none});
  };
  const auto ratios = paired(
      rounds, [&] { return tare::bench::seconds(halves); },
      [&] { return tare::bench::seconds(adaptive); });
  std::printf("one caught out-of-memory, caches given back  %.1f us\n",
              1e6 * (ratios.second_s - ratios.first_s));
}

}  // namespace

int main(int argc, char** argv) {
  tare::init();
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 501;
  const at::Tensor tensor = at::empty({kRows, 256, 256});
  toma_rows(rounds, tensor);
  caught(rounds);
}
