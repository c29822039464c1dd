// Asks LibTorch for the processor's instructions, and times products of matrices.
#include "tare/memory/native_types.h"

#include <ATen/core/ivalue.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tare/base/immortal.h"

namespace tare::memory {
namespace {

constexpr int64_t kWidth = 256;

bool has_instructions(const std::string& name) {
  const auto all = at::cpu::get_cpu_capabilities();
  const auto found = all.find(name);
  return found != all.end() && found->second.isBool() && found->second.toBool();
}

/// Whether oneDNN, which multiplies matrices of 16 bits, may use instructions of a generation.
/// ONEDNN_MAX_CPU_ISA names the newest that it may use; the generations are in their order.
bool may_use(const std::string& generation) {
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!limit) limit = std::getenv("DNNL_MAX_CPU_ISA");
  if (!limit) return true;
  std::string newest = limit;
  std::ranges::transform(newest, newest.begin(), [](unsigned char c) { return std::tolower(c); });
  static const std::vector<std::string> order{"sse41",
                                              "avx",
                                              "avx2",
                                              "avx2_vnni",
                                              "avx2_vnni_2",
                                              "avx512_core",
                                              "avx512_core_vnni",
                                              "avx512_core_bf16",
                                              "avx512_core_fp16",
                                              "avx512_core_amx",
                                              "avx512_core_amx_fp16"};
  const auto allowed = std::ranges::find(order, newest);  // others, such as "all", allow all
  return allowed == order.end() || std::ranges::find(order, generation) <= allowed;
}

// Zeros in memory that no allocator of tensors counts.
class Matrix {
 public:
  explicit Matrix(c10::ScalarType type)
      : memory_(static_cast<size_t>(kWidth * kWidth) * c10::elementSize(type)),
        tensor_(at::from_blob(memory_.data(), {kWidth, kWidth}, at::TensorOptions(type))) {}
  [[nodiscard]] const at::Tensor& tensor() const { return tensor_; }

 private:
  std::vector<char> memory_;
  at::Tensor tensor_;
};

// Of processor time, which other programs on the machine do not lengthen.
double product_seconds(c10::ScalarType type) {
  const c10::AutoGradMode no_grad(false);
  const Matrix a(type), b(type), result(type);
  at::Tensor out = result.tensor();
  double fastest = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {  // the first one sets up the library
    const std::clock_t start = std::clock();
    at::mm_out(out, a.tensor(), b.tensor());
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (attempt > 0) fastest = fastest > 0 ? std::min(fastest, took) : took;
  }
  return fastest;
}

}  // namespace

bool processor_computes(c10::ScalarType type) {
  if (type == c10::kBFloat16)
    return (has_instructions("avx512_bf16") && may_use("avx512_core_bf16")) ||
           (has_instructions("amx_bf16") && may_use("avx512_core_amx"));
  if (type == c10::kHalf)
    return (has_instructions("avx512_fp16") && may_use("avx512_core_fp16")) ||
           (has_instructions("amx_fp16") && may_use("avx512_core_amx_fp16"));
  return true;
}

double product_time_ratio(c10::ScalarType type) {
  static Immortal<std::map<c10::ScalarType, double>> ratios;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = ratios->emplace(type, 0);
  if (fresh) at->second = product_seconds(type) / product_seconds(c10::kFloat);
  return at->second;
}

}  // namespace tare::memory
