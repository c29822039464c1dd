// Saving and loading 256 MB of weights: Tare's checkpoint against torch::save and torch::load, in
// the same folder and in turns. Prints the median of each and its ratio to LibTorch's (below 1:
// less time), with LibTorch against itself as the A/A control.
//
//   bench_checkpoint [FOLDER] [ROUNDS]      defaults: a new folder in TMPDIR, 10
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/paired.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/safetensors.h"

namespace {

using namespace tare;

constexpr int64_t kTensors = 64;
constexpr int64_t kElements = int64_t{1} << 20;  // float32: 4 MiB each, 256 MiB in all

struct Time {
  double wall_s = 0;
  double cpu_s = 0;  ///< of this process; says more than the clock on a busy machine
};

double cpu_now() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Time measured(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_now();
  call();
  const double cpu_s = cpu_now() - cpu_start;
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpu_s};
}

double median(const std::vector<Time>& times, double Time::*which) {
  std::vector<double> values;
  for (const Time& t : times) values.push_back(t.*which);
  return bench::quantile(std::move(values), 0.5);
}

// A value that depends on every page.
double touch(const std::vector<NamedTensor>& tensors) {
  double sum = 0;
  for (const auto& t : tensors) {
    const float* data = t.tensor.const_data_ptr<float>();
    for (int64_t i = 0; i < t.tensor.numel(); i += 1024) sum += data[i];
  }
  return sum;
}

struct Case {
  std::string name;
  std::function<void()> call;
  std::vector<Time> times{};
};

class Bench {
 public:
  explicit Bench(const std::filesystem::path& folder)
      : torch_(folder / "torch.pt"), ours_(folder / "ours"), plain_(folder / "plain.safetensors") {
    for (int64_t i = 0; i < kTensors; ++i) {
      values_.push_back(torch::rand({kElements}));
      named_.push_back({"t" + std::to_string(i), values_.back()});
    }
    checkpoint::write(plain_, named_);
  }

  void run(int rounds) {
    measure(saves_, rounds);
    measure(loads_, rounds);
  }

 private:
  // The first case is what the others are compared with. Each round begins with another one, and
  // the disk is quiet before each, so that none of them pays for its neighbour's writing.
  static void measure(std::vector<Case>& cases, int rounds) {
    for (auto& c : cases) c.call();
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < cases.size(); ++i) {
        Case& c = cases[(i + static_cast<size_t>(round)) % cases.size()];
        ::sync();
        c.times.push_back(measured(c.call));
      }
    }
    for (const Case& c : cases) {
      std::printf("%-42s", c.name.c_str());
      for (double Time::*which : {&Time::wall_s, &Time::cpu_s}) {
        const double own = median(c.times, which);
        std::printf(" %10.2f %8.3f", own * 1e3, own / median(cases[0].times, which));
      }
      std::printf("\n");
    }
  }

  void save(bool flush) const { checkpoint::save(ours_, {.model = named_}, {.flush = flush}); }
  void torch_save() const { torch::save(values_, torch_.string()); }
  void torch_load() const {
    std::vector<torch::Tensor> loaded;
    torch::load(loaded, torch_.string());
  }

  std::filesystem::path torch_, ours_, plain_;
  std::vector<torch::Tensor> values_;
  std::vector<NamedTensor> named_;
  double sink_ = 0;
  std::vector<Case> saves_{{"save: torch::save", [this] { torch_save(); }},
                           {"save: torch::save again (A/A)", [this] { torch_save(); }},
                           {"save: checkpoint, not flushed", [this] { save(false); }},
                           {"save: checkpoint, flushed", [this] { save(true); }}};
  std::vector<Case> loads_{
      {"load: torch::load", [this] { torch_load(); }},
      {"load: torch::load again (A/A)", [this] { torch_load(); }},
      {"load: checkpoint, every hash verified", [this] { (void)checkpoint::load(ours_); }},
      {"load: safetensors, ready", [this] { (void)checkpoint::SafeTensors::open(plain_).all(); }},
      {"load: safetensors, every page touched",
       [this] { sink_ = touch(checkpoint::SafeTensors::open(plain_).all()); }}};
};

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  const testing::TempDir folder(argc > 1 ? argv[1] : std::filesystem::temp_directory_path());
  std::printf("%-42s %10s %8s %10s %8s\n", "256 MiB in 64 tensors", "wall ms", "ratio", "CPU ms",
              "ratio");
  Bench(folder.path()).run(argc > 2 ? std::max(1, std::atoi(argv[2])) : 10);
}
