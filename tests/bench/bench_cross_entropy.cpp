// The cross-entropy of many logits, forward and backward, in parts against LibTorch's operator:
// ratios of time in interleaved rounds, with LibTorch against itself, and the bytes that each takes
// beside the logits at its peak.
//
//   bench_cross_entropy [rounds]
#include <ATen/core/Reduction.h>
#include <torch/torch.h>

#include <cstdlib>
#include <string>

#include "bench/paired.h"
#include "tare/base/bytes.h"
#include "tare/memory/backend.h"
#include "tare/metric/loss.h"
#include "tare/runtime/init.h"

namespace {

using torch::Tensor;

struct Subject {
  std::string name;
  Tensor logits, labels;
};

void work(const Subject& subject, bool parts) {
  static const auto loss = tare::resolve("cross_entropy").mean;
  subject.logits.mutable_grad().reset();
  // A GPT gives its logits as a view whose classes are innermost in memory.
  const Tensor output = subject.logits.dim() == 3 ? subject.logits.transpose(1, 2) : subject.logits;
  (parts ? loss(output, subject.labels)
         : at::cross_entropy_loss(output, subject.labels, {}, at::Reduction::Mean, -100))
      .backward();
}

int64_t peak(const Subject& subject, bool parts) {
  work(subject, parts);
  subject.logits.mutable_grad().reset();
  const tare::memory::PeakScope scope(at::kCPU);
  work(subject, parts);
  return scope.peak_above_start_bytes();
}

}  // namespace

int main(int argc, char** argv) {
  tare::init({.threads = 1, .cuda = tare::CudaMode::off});
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  for (const int64_t classes : {5'000, 50'257})
    for (const bool gpt : {false, true}) {
      const int64_t batch = 4, tokens = classes > 10'000 ? 128 : 1024;
      Tensor logits = gpt ? torch::randn({batch, tokens, classes})
                          : torch::randn({batch * tokens, classes}),
             labels = gpt ? torch::randint(classes, {batch, tokens})
                          : torch::randint(classes, {batch * tokens});
      const Subject subject{std::to_string(batch * tokens) + " x " + std::to_string(classes) +
                                (gpt ? ", of gpt" : ", rows"),
                            logits.requires_grad_(true), labels};
      const auto side = [&](bool parts) {
        return [&subject, parts] { return tare::bench::seconds([&] { work(subject, parts); }); };
      };
      tare::bench::print(subject.name.c_str(),
                         tare::bench::paired(rounds, side(false), side(true)));
      tare::bench::print("  control", tare::bench::paired(rounds, side(false), side(false)));
      std::printf("  %s of logits; beside them %s against %s\n",
                  tare::format_bytes(static_cast<int64_t>(logits.nbytes())).c_str(),
                  tare::format_bytes(peak(subject, true)).c_str(),
                  tare::format_bytes(peak(subject, false)).c_str());
    }
}
