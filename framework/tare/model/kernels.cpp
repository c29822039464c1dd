#include "tare/model/kernels.h"

#include <ATen/Context.h>

namespace tare {
namespace {

using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

at::Context& context() { return at::globalContext(); }

Float32Precision precision_of(Float32Op op) {
  return context().float32Precision(Float32Backend::CUDA, op);
}

}  // namespace

struct KernelScope::Switches {
  Float32Precision matmul{}, conv{}, rnn{};
  bool cudnn = true, benchmark = false, cudnn_deterministic = false;
  bool deterministic = false, warn_only = false;

  static Switches now() {
    return {.matmul = precision_of(Float32Op::MATMUL),
            .conv = precision_of(Float32Op::CONV),
            .rnn = precision_of(Float32Op::RNN),
            .cudnn = context().userEnabledCuDNN(),
            .benchmark = context().benchmarkCuDNN(),
            .cudnn_deterministic = context().deterministicCuDNN(),
            .deterministic = context().deterministicAlgorithms(),
            .warn_only = context().deterministicAlgorithmsWarnOnly()};
  }

  [[nodiscard]] Switches with(const KernelOptions& options) const {
    Switches changed = *this;
    if (options.tf32)
      changed.matmul = changed.conv = changed.rnn =
          *options.tf32 ? Float32Precision::TF32 : Float32Precision::IEEE;
    if (!options.cudnn) changed.cudnn = false;
    if (options.cudnn_benchmark) changed.benchmark = true;
    if (options.deterministic) {
      changed.cudnn_deterministic = changed.deterministic = true;
      changed.warn_only = false;
    }
    return changed;
  }

  void set() const {
    context().setFloat32Precision(Float32Backend::CUDA, Float32Op::MATMUL, matmul);
    context().setFloat32Precision(Float32Backend::CUDA, Float32Op::CONV, conv);
    context().setFloat32Precision(Float32Backend::CUDA, Float32Op::RNN, rnn);
    context().setUserEnabledCuDNN(cudnn);
    context().setBenchmarkCuDNN(benchmark);
    context().setDeterministicCuDNN(cudnn_deterministic);
    context().setDeterministicAlgorithms(deterministic, warn_only);
  }
};

KernelScope::KernelScope(const KernelOptions& options) {
  if (options == KernelOptions{.channels_last = options.channels_last}) return;
  before_ = std::make_unique<Switches>(Switches::now());
  before_->with(options).set();
}

KernelScope::~KernelScope() {
  if (before_) before_->set();
}

}  // namespace tare
