// Generates tokens by a language model, one after the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "tare/config/field.h"

namespace tare {

/// Sets how tokens are generated.
struct GenerateOptions {
  int64_t length = 200;    ///< tokens to generate, >= 1
  double temperature = 1;  ///< divides the logits, >= 0; 0: always the most probable token
  int64_t top_k = 0;       ///< draw from so many of the most probable tokens, >= 0; 0: from all
  int64_t seed = 0;        ///< of the draws, >= 0; equal seeds give equal texts
};
void visit_fields(auto& visit, GenerateOptions& o) {
  visit("length", o.length, config::at_least(1));
  visit("temperature", o.temperature, config::at_least(0));
  visit("top_k", o.top_k, config::at_least(0));
  visit("seed", o.seed, config::at_least(0));
}

/// Returns the logits [1, classes, time] of the token behind each of the tokens, int64 [1, time] on
/// the host.
using TokenForward = std::function<at::Tensor(const at::Tensor& tokens)>;

/// Returns the tokens that follow a prompt of at least one token. Each is drawn from the scores of
/// the last `context` tokens before it, which are computed anew for each token. Uses no generator
/// of LibTorch's. Throws ConfigError for an option out of range and an empty prompt, ShapeError for
/// a forward that returns other shapes, and what `forward` throws.
[[nodiscard]] std::vector<int64_t> generate(const TokenForward& forward,
                                            std::vector<int64_t> prompt, int64_t context,
                                            const GenerateOptions& options);

}  // namespace tare
