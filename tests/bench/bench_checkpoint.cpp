// Saving and loading 256 MB of weights: Tare's checkpoint against torch::save and torch::load, in
// the same folder and in turns. Prints the median of each and its ratio to LibTorch's (below 1:
// less time), with LibTorch against itself as the A/A control.
//
//   bench_checkpoint [FOLDER] [ROUNDS]      defaults: a new folder in TMPDIR, 9
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/temp_dir.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/safetensors.h"

namespace {

using namespace tare;

constexpr int64_t kTensors = 64;
constexpr int64_t kElements = int64_t{1} << 20;  // float32: 4 MiB each, 256 MiB in all

double seconds(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
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

class Bench {
 public:
  explicit Bench(const std::filesystem::path& folder)
      : torch_(folder / "torch.pt"), ours_(folder / "ours"), plain_(folder / "plain.safetensors") {
    for (int64_t i = 0; i < kTensors; ++i) {
      values_.push_back(torch::rand({kElements}));
      named_.push_back({"t" + std::to_string(i), values_.back()});
    }
  }

  void round() {
    times_["save: torch::save"].push_back(seconds([&] { torch::save(values_, torch_.string()); }));
    times_["save: torch::save again (A/A)"].push_back(
        seconds([&] { torch::save(values_, torch_.string()); }));
    times_["save: checkpoint, not flushed"].push_back(seconds([&] { save(false); }));
    times_["save: checkpoint, flushed"].push_back(seconds([&] { save(true); }));
    if (!std::filesystem::exists(plain_)) checkpoint::write(plain_, named_);
    times_["load: torch::load"].push_back(seconds([&] { torch_load(); }));
    times_["load: torch::load again (A/A)"].push_back(seconds([&] { torch_load(); }));
    times_["load: checkpoint, every hash verified"].push_back(
        seconds([&] { (void)checkpoint::load(ours_); }));
    times_["load: safetensors, ready"].push_back(
        seconds([&] { (void)checkpoint::SafeTensors::open(plain_).all(); }));
    times_["load: safetensors, every page touched"].push_back(
        seconds([&] { sink_ = touch(checkpoint::SafeTensors::open(plain_).all()); }));
  }

  void print() const {
    std::printf("%-42s %12s %10s\n", "256 MiB in 64 tensors", "median ms", "ratio");
    for (const char* kind : {"save", "load"}) {
      const double base = median(times_.at(std::string(kind) + ": torch::" + kind));
      for (const auto& [name, values] : times_) {
        if (name.starts_with(kind))
          std::printf("%-42s %12.2f %10.3f\n", name.c_str(), median(values) * 1e3,
                      median(values) / base);
      }
    }
  }

 private:
  void save(bool flush) const {
    checkpoint::save(ours_, {.model = named_, .optimizer = {}, .extra = {}}, {.flush = flush});
  }
  void torch_load() const {
    std::vector<torch::Tensor> loaded;
    torch::load(loaded, torch_.string());
  }

  std::filesystem::path torch_, ours_, plain_;
  std::vector<torch::Tensor> values_;
  std::vector<NamedTensor> named_;
  std::map<std::string, std::vector<double>> times_;
  double sink_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  const testing::TempDir folder(argc > 1 ? argv[1] : std::filesystem::temp_directory_path());
  Bench bench(folder.path());
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 9;
  for (int i = 0; i < rounds; ++i) bench.round();
  bench.print();
}
