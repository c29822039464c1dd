// The GPT-2 of models/gpt.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tare/lite/network.h"

namespace tare::lite {
namespace {

constexpr float kEpsilon = 1e-5F;  // of layer norm
constexpr int64_t kHeads = 12;     // of GPT-2 small, the family's default

struct Norm {
  std::span<const float> weight{}, bias{};

  Norm(const Bundle& bundle, const std::string& name, int64_t width)
      : weight(bundle.numbers(name + ".weight", width)),
        bias(bundle.numbers(name + ".bias", width)) {}
  void operator()(Engine& engine, const float* x, int64_t tokens, float* to) const {
    const auto width = static_cast<int64_t>(weight.size());
    for (int64_t t = 0; t < tokens; ++t)
      engine.kernels.layer_norm(x + t * width, width, weight.data(), bias.data(), kEpsilon,
                                to + t * width);
  }
};

struct Linear {
  Matrix weight{};
  std::span<const float> bias{};

  Linear(const Bundle& bundle, const std::string& name, int64_t in, int64_t out)
      : weight(bundle.weight(name + ".weight", {in, out})),
        bias(bundle.numbers(name + ".bias", out)) {}
  void operator()(Engine& engine, const float* x, int64_t tokens, float* to) const {
    linear_of_columns(engine, x, tokens, weight, bias.data(), to);
  }
};

/// Holds the numbers of a forward for so many tokens, which all blocks use.
struct Memory {
  Floats x, normed, wide, attended;
  Memory(int64_t tokens, int64_t width)
      : x(tokens * width),
        normed(tokens * width),
        wide(4 * tokens * width),
        attended(tokens * width) {}
};

struct Block {
  Norm first, second;
  Linear attention, projection, up, down;

  Block(const Bundle& bundle, const std::string& name, int64_t width)
      : first(bundle, name + ".ln_1", width),
        second(bundle, name + ".ln_2", width),
        attention(bundle, name + ".attn.c_attn", width, 3 * width),
        projection(bundle, name + ".attn.c_proj", width, width),
        up(bundle, name + ".mlp.c_fc", width, 4 * width),
        down(bundle, name + ".mlp.c_proj", 4 * width, width) {}

  void run(Engine& engine, Memory& memory, int64_t tokens, int64_t width, int64_t heads) const {
    float *x = memory.x.get(), *y = memory.normed.get(), *wide = memory.wide.get();
    const int64_t all = tokens * width;
    first(engine, x, tokens, y);
    attention(engine, y, tokens, wide);
    attend(engine, wide, tokens, width, heads, memory.attended.get());
    projection(engine, memory.attended.get(), tokens, y);
    engine.kernels.add(x, y, all);
    second(engine, x, tokens, y);
    up(engine, y, tokens, wide);
    engine.workers.run(
        tokens, [&](int64_t t, int64_t) { engine.kernels.gelu(wide + t * 4 * width, 4 * width); });
    down(engine, wide, tokens, y);
    engine.kernels.add(x, y, all);
  }
};

class Gpt final : public Network {
 public:
  explicit Gpt(const Bundle& bundle)
      : width_(width_of(bundle)),
        heads_(bundle.option("heads", kHeads)),
        tokens_(bundle.weight("wte.weight", {rows_of(bundle, "wte.weight"), width_})),
        positions_(bundle.weight("wpe.weight", {rows_of(bundle, "wpe.weight"), width_})),
        norm_(bundle, "ln_f", width_) {
    if (width_ % heads_ != 0)
      throw FormatError(
          "lite.gpt", bundle.path().string(), "heads",
          std::to_string(heads_) + " do not divide the width of " + std::to_string(width_));
    for (size_t i = 0; bundle.contains("h." + std::to_string(i) + ".ln_1.weight"); ++i)
      blocks_.emplace_back(bundle, "h." + std::to_string(i), width_);
  }

  [[nodiscard]] Output forward(Engine& engine, const Input& input) const override {
    const auto& shape = input.shape;
    if (input.numbers || shape.size() != 2 || shape[1] < 1 || shape[1] > positions_.rows)
      throw ShapeError(
          "lite.gpt",
          "tokens int64 [batch, time] with a time of 1 to " + std::to_string(positions_.rows),
          !input.numbers && shape.size() == 2 ? "a time of " + std::to_string(shape[1])
                                              : "another shape or dtype");
    const int64_t length = shape[1], each = tokens_.rows * length;
    Output output{{shape[0], tokens_.rows, length},
                  std::vector<float>(static_cast<size_t>(shape[0] * each))};
    Memory memory(length, width_);
    for (int64_t n = 0; n < shape[0]; ++n) {
      embed(engine, input.tokens + n * length, length, memory.x.get());
      for (const Block& block : blocks_) block.run(engine, memory, length, width_, heads_);
      norm_(engine, memory.x.get(), length, memory.normed.get());
      multiply_transposed(engine, tokens_, memory.normed.get(), length,
                          output.values.data() + n * each);
    }
    return output;
  }

 private:
  static int64_t rows_of(const Bundle& bundle, const std::string& name) {
    const auto& shape = bundle.shape(name);
    return shape.empty() ? 0 : shape[0];
  }
  static int64_t width_of(const Bundle& bundle) {
    const auto& shape = bundle.shape("wte.weight");
    return shape.size() == 2 ? shape[1] : 0;
  }

  void embed(Engine& engine, const int64_t* tokens, int64_t length, float* x) const {
    const Floats position(width_);
    for (int64_t t = 0; t < length; ++t) {
      if (tokens[t] < 0 || tokens[t] >= tokens_.rows)
        throw ConfigError("lite.gpt", "tokens must be in [0, " + std::to_string(tokens_.rows) +
                                          "), the model's vocabulary, got " +
                                          std::to_string(tokens[t]));
      widen_row(engine.kernels, tokens_, tokens[t], x + t * width_);
      widen_row(engine.kernels, positions_, t, position.get());
      engine.kernels.add(x + t * width_, position.get(), width_);
    }
  }

  int64_t width_, heads_;
  Matrix tokens_, positions_;
  Norm norm_;
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<const Network> make_gpt(const Bundle& bundle) {
  return std::make_unique<Gpt>(bundle);
}

}  // namespace tare::lite
