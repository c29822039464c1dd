// Host kernels of aten::gelu and aten::gelu_backward that approximate by tanh with vector
// instructions.
#include "tare/memory/host_gelu.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu_backward_cpu_dispatch.h>
#include <ATen/ops/gelu_cpu_dispatch.h>

#include <optional>
#include <string>

#include "tare/memory/gelu_kernels.h"
#include "tare/memory/host_kernels.h"
#include "tare/memory/reference_kernels.h"

namespace tare::memory {
namespace {

using at::Tensor;

constexpr int64_t kGrain = 16'384;  // numbers of a thread, at least

/// Returns the kernels for what LibTorch may use of this processor.
std::optional<GeluKernels> kernels_of_processor() {
#if defined(__x86_64__)
  const std::string capability = at::get_cpu_capability();
  const bool has_fma = __builtin_cpu_supports("fma");
  if (capability == "AVX512" && has_fma) return avx512_gelu();
  if (capability == "AVX2" && has_fma) return avx2_gelu();
#endif
  return std::nullopt;
}

const std::optional<GeluKernels>& kernels() {
  static const std::optional<GeluKernels> found = kernels_of_processor();
  return found;
}

bool takes(const Tensor& x) {
  return x.scalar_type() == at::kFloat && x.is_contiguous() && has_own_gelu();
}

Tensor gelu(const Tensor& x, c10::string_view approximate) {
  if (approximate != "tanh" || !takes(x)) return at::cpu::gelu(x, approximate);
  Tensor result = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    kernels()->forward(from + begin, to + begin, end - begin);
  });
  return result;
}

Tensor gelu_backward(const Tensor& gradient, const Tensor& x, c10::string_view approximate) {
  const bool alike = takes(x) && takes(gradient) && gradient.sizes() == x.sizes();
  if (approximate != "tanh" || !alike) return at::cpu::gelu_backward(gradient, x, approximate);
  Tensor result = at::empty_like(x);
  const float *above = gradient.const_data_ptr<float>(), *from = x.const_data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    kernels()->backward(above + begin, from + begin, to + begin, end - begin);
  });
  return result;
}

bool install_gelu() {
  set_host_kernel("gelu", &gelu);
  set_host_kernel("gelu_backward", &gelu_backward);
  return true;
}
[[maybe_unused]] const bool gelu_in_force_before_main = install_gelu();

}  // namespace

bool has_own_gelu() { return kernels().has_value() && !reference_kernels(); }

}  // namespace tare::memory
