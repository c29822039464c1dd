// The loader against a raw gather of the same rows: 32-row batches of 64 floats with an int64
// label. Prints median ratios of interleaved rounds, with an A/A control, and what the image paths
// give per second.
//   bench_loader [rounds]
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <vector>

#include "bench/paired.h"
#include "tare/data/digits.h"
#include "tare/data/loader.h"
#include "tare/transform/random.h"

namespace {

constexpr int64_t kSamples = 8192, kBatch = 32, kFeatures = 64;

// CPU time of this thread, so that a busy machine changes little; wall time where other threads do
// the work.
double seconds(const std::function<void()>& work, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  const auto now = [clock] {
    timespec t{};
    ::clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

struct Rows {
  at::Tensor input = at::zeros({kSamples, kFeatures});
  at::Tensor target = at::zeros({kSamples}, at::kLong);
  std::vector<int64_t> order = tare::permutation(kSamples, 1);

  // The lower bound: memcpy of the rows in a shuffled order, into buffers that are made anew or
  // used again.
  void gather(bool reuse) const {
    const float* from = input.const_data_ptr<float>();
    const int64_t* labels = target.const_data_ptr<int64_t>();
    at::Tensor x, y;
    for (int64_t begin = 0; begin < kSamples; begin += kBatch) {
      if (!reuse || begin == 0) {
        x = at::empty({kBatch, kFeatures});
        y = at::empty({kBatch}, at::kLong);
      }
      auto* to = x.mutable_data_ptr<float>();
      auto* label = y.mutable_data_ptr<int64_t>();
      for (int64_t i = 0; i < kBatch; ++i) {
        const int64_t row = order[static_cast<size_t>(begin + i)];
        std::memcpy(to + i * kFeatures, from + row * kFeatures, kFeatures * sizeof(float));
        label[i] = labels[row];
      }
    }
  }
};

void drain(tare::Loader& loader) {
  tare::Batch batch;
  while (loader.next(batch)) {
  }
}

// Median seconds of each work, in rounds that interleave them.
std::vector<double> interleaved(const std::vector<std::function<double()>>& works, int rounds) {
  std::vector<std::vector<double>> times(works.size());
  for (int r = 0; r < rounds; ++r)
    for (size_t i = 0; i < works.size(); ++i) times[i].push_back(works[i]());
  std::vector<double> medians;
  for (auto& t : times) medians.push_back(tare::bench::quantile(std::move(t), 0.5));
  return medians;
}

void small_rows(int rounds) {
  const Rows rows;
  const tare::DatasetPtr data = tare::tensor_dataset(rows.input, rows.target);
  tare::Loader own(data, {.batch = kBatch, .shuffle = true}),
      ahead(data, {.batch = kBatch, .shuffle = true, .workers = 1, .prefetch = 16});
  const auto epoch = [](tare::Loader& loader, clockid_t clock) {
    return [&loader, clock] {
      loader.start(0);  // the permutation of the epoch is not part of a batch
      return seconds([&] { drain(loader); }, clock);
    };
  };
  const auto raw = [&](bool reuse) {
    return [&rows, reuse] { return seconds([&] { rows.gather(reuse); }); };
  };
  const auto t = interleaved({raw(false), raw(false), epoch(own, CLOCK_THREAD_CPUTIME_ID),
                              epoch(ahead, CLOCK_MONOTONIC), raw(true)},
                             rounds);
  constexpr double kBatches = static_cast<double>(kSamples) / kBatch;
  std::printf("raw gather into new tensors   %8.3f us a batch\n", t[0] / kBatches * 1e6);
  std::printf("raw gather into one buffer    %8.3f us a batch\n", t[4] / kBatches * 1e6);
  std::printf("A/A control                   %8.3f x\n", t[1] / t[0]);
  std::printf("loader, caller's thread       %8.3f x   (at most 3, goal 1.5)\n", t[2] / t[0]);
  std::printf("loader, caller's thread       %8.3f x   of one buffer\n", t[2] / t[4]);
  std::printf(
      "loader, 1 worker ahead        %8.3f x   (wall time: a hand-over between threads a batch)\n",
      t[3] / t[0]);
}

void images(int rounds) {
  constexpr int64_t kImages = 4096;
  const at::Tensor pixels = at::zeros({kImages, 3, 32, 32}, at::kByte);
  const tare::DatasetPtr raw = tare::tensor_dataset(pixels);
  const tare::Normalise normalise{{0.5}, {0.25}};
  const std::vector<std::pair<const char*, tare::DatasetPtr>> pipelines{
      {"uint8 gather", raw},
      {"normalise", tare::transformed(raw, {normalise})},
      {"shift + flip + normalise",
       tare::transformed(raw, {tare::Shift{4}, tare::Flip{}, normalise})},
      {"resize to 40 + normalise", tare::transformed(raw, {tare::Resize{40, 40}, normalise})}};
  for (const auto& [name, data] : pipelines) {
    tare::Loader loader(data, {.batch = 256, .shuffle = true, .training = true});
    const auto t = interleaved({[&loader = loader] {
                                 loader.start(0);
                                 return seconds([&] { drain(loader); });
                               }},
                               rounds);
    std::printf("3 x 32 x 32, %-26s %8.0f thousand images/s\n", name,
                static_cast<double>(kImages) / t[0] / 1e3);
  }
  for (const char* style : {"printed", "written"}) {
    const double t = seconds([&] { (void)tare::generate_digits({.count = 5000, .style = style}); });
    std::printf("generated digits, %-21s %8.1f thousand images/s\n", style, 5.0 / t);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 51;
  small_rows(rounds);
  images(std::max(1, rounds / 5));
}
