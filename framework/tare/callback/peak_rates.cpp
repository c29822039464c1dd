// Lists what cards can do.
#include "tare/callback/peak_rates.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tare {
namespace {

struct Card {
  std::string_view name;
  PeakRates rates;
};

// The data sheets have rates of TF32, fp16 and bf16 for matrices with two zeros in four values from
// Ampere on, which are twice as high. The cards before Ampere have neither TF32 nor bf16.
constexpr std::array kCards{
    Card{"NVIDIA A10", {.fp32 = 31.2, .tf32 = 62.5, .fp16 = 125, .bf16 = 125}},
    Card{"NVIDIA A100-PCIE-40GB", {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312}},
    Card{"NVIDIA A100-SXM4-40GB", {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312}},
    Card{"NVIDIA A100 80GB PCIe", {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312}},
    Card{"NVIDIA A100-SXM4-80GB", {.fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312}},
    Card{"NVIDIA B200", {.fp32 = 75, .tf32 = 1125, .fp16 = 2250, .bf16 = 2250}},
    Card{"NVIDIA H100 80GB HBM3", {.fp32 = 67, .tf32 = 494.5, .fp16 = 989.5, .bf16 = 989.5}},
    Card{"NVIDIA H100 NVL", {.fp32 = 60, .tf32 = 417.5, .fp16 = 835.5, .bf16 = 835.5}},
    Card{"NVIDIA H100 PCIe", {.fp32 = 51, .tf32 = 378, .fp16 = 756.5, .bf16 = 756.5}},
    Card{"NVIDIA H200", {.fp32 = 67, .tf32 = 494.5, .fp16 = 989.5, .bf16 = 989.5}},
    Card{"NVIDIA H200 NVL", {.fp32 = 60, .tf32 = 417.5, .fp16 = 835.5, .bf16 = 835.5}},
    Card{"NVIDIA L4", {.fp32 = 30.3, .tf32 = 60, .fp16 = 121, .bf16 = 121}},
    Card{"NVIDIA L40S", {.fp32 = 91.6, .tf32 = 183, .fp16 = 362, .bf16 = 362}},
    Card{"NVIDIA GeForce RTX 3090", {.fp32 = 35.6, .tf32 = 35.6, .fp16 = 71, .bf16 = 71}},
    Card{"NVIDIA GeForce RTX 4090", {.fp32 = 82.6, .tf32 = 82.6, .fp16 = 165.2, .bf16 = 165.2}},
    Card{"Tesla T4", {.fp32 = 8.1, .fp16 = 65}},
    Card{"Tesla V100-PCIE-16GB", {.fp32 = 14, .fp16 = 112}},
    Card{"Tesla V100-PCIE-32GB", {.fp32 = 14, .fp16 = 112}},
    Card{"Tesla V100-SXM2-16GB", {.fp32 = 15.7, .fp16 = 125}},
    Card{"Tesla V100-SXM2-32GB", {.fp32 = 15.7, .fp16 = 125}},
};

}  // namespace

std::optional<double> PeakRates::seconds(const Flops& flops) const {
  struct Share {
    int64_t flops;
    double rate;
  };
  double all = 0;
  for (const auto& [count, rate] :
       {Share{flops.fp32, fp32}, Share{flops.tf32, tf32 > 0 ? tf32 : fp32}, Share{flops.fp16, fp16},
        Share{flops.bf16, bf16}, Share{flops.others, 0}}) {
    if (count == 0) continue;
    if (rate <= 0) return std::nullopt;
    all += static_cast<double>(count) / (rate * 1e12);
  }
  return all;
}

std::optional<PeakRates> peak_rates(const std::string& card) {
  const auto* const found = std::ranges::find(kCards, card, &Card::name);
  return found == kCards.end() ? std::nullopt : std::optional(found->rates);
}

}  // namespace tare
