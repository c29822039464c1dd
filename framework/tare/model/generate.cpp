// Draws tokens from the scores of a language model.
#include "tare/model/generate.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tare/base/error.h"
#include "tare/base/highest.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

constexpr const char* kWhere = "generate";

/// Returns the last `context` tokens as int64 [1, time].
at::Tensor window_of(const std::vector<int64_t>& tokens, int64_t context) {
  const int64_t time = std::min(std::ssize(tokens), context);
  at::Tensor window = at::empty({1, time}, at::kLong);
  std::copy(tokens.end() - time, tokens.end(), window.mutable_data_ptr<int64_t>());
  return window;
}

/// Returns the logits of the token behind the last one.
std::vector<double> last_logits(const at::Tensor& output, int64_t time) {
  if (output.dim() != 3 || output.size(0) != 1 || output.size(2) != time || output.size(1) < 1)
    throw ShapeError(kWhere, "[1, classes, " + std::to_string(time) + "] from a language model",
                     c10::str(output.sizes()));
  const at::Tensor last = output.select(2, time - 1).to(at::kCPU, at::kDouble).contiguous();
  const double* data = last.const_data_ptr<double>();
  return {data, data + last.numel()};
}

int64_t draw(const std::vector<double>& logits, const GenerateOptions& options, RandomBits& bits) {
  if (options.temperature == 0) return static_cast<int64_t>(highest(logits, 1).front());
  const auto order =
      highest(logits, options.top_k > 0 ? static_cast<size_t>(options.top_k) : logits.size());
  std::vector<double> weights;
  double sum = 0;
  for (const size_t token : order) {  // relative to the highest, so that nothing overflows
    weights.push_back(std::exp((logits[token] - logits[order.front()]) / options.temperature));
    sum += weights.back();
  }
  double left = static_cast<double>(bits.uniform()) * sum;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int64_t>(order[i]);
  }
  return static_cast<int64_t>(order.back());
}

}  // namespace

std::vector<int64_t> generate(const TokenForward& forward, std::vector<int64_t> prompt,
                              int64_t context, const GenerateOptions& options) {
  config::validate(options, kWhere);
  if (prompt.empty()) throw ConfigError(kWhere, "the prompt is empty: give at least one token");
  if (context < 1) throw ConfigError(kWhere, "the context must be >= 1");
  const auto given = static_cast<std::ptrdiff_t>(prompt.size());
  RandomBits bits(static_cast<uint64_t>(options.seed));
  for (int64_t i = 0; i < options.length; ++i) {
    const at::Tensor window = window_of(prompt, context);
    prompt.push_back(draw(last_logits(forward(window), window.size(1)), options, bits));
  }
  return {prompt.begin() + given, prompt.end()};
}

}  // namespace tare
