// The multi-layer perceptron of models/mlp.h.
#include <utility>

#include "tare/lite/network.h"

namespace tare::lite {
namespace {

struct Layer {
  Matrix weight{};
  std::span<const float> bias{};
};

class Mlp final : public Network {
 public:
  explicit Mlp(const Bundle& bundle) {
    for (size_t i = 0; bundle.contains("hidden" + std::to_string(i) + ".weight"); ++i)
      add(bundle, "hidden" + std::to_string(i));
    add(bundle, "head");
  }

  [[nodiscard]] Output forward(Engine& engine, const Input& input) const override {
    const int64_t batch = input.shape.front();
    int64_t features = 1;
    for (size_t i = 1; i < input.shape.size(); ++i) features *= input.shape[i];
    const int64_t wanted = layers_.front().weight.columns;
    if (input.tokens || features != wanted)
      throw ShapeError("lite.mlp",
                       "[batch, ...] with " + std::to_string(wanted) + " features a sample",
                       std::to_string(features) + " features");
    const float* x = input.numbers;
    Floats held;
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      Floats y(batch * layers_[i].weight.rows);
      run(engine, layers_[i], x, batch, /*relu=*/true, y.get());
      held = std::move(y);
      x = held.get();
    }
    const Layer& head = layers_.back();
    Output output{{batch, head.weight.rows},
                  std::vector<float>(static_cast<size_t>(batch * head.weight.rows))};
    run(engine, head, x, batch, /*relu=*/false, output.values.data());
    return output;
  }

 private:
  void add(const Bundle& bundle, const std::string& name) {
    const std::vector<int64_t>& shape = bundle.shape(name + ".weight");
    const int64_t out = shape.empty() ? 0 : shape[0];
    const int64_t in =
        layers_.empty() ? (shape.size() == 2 ? shape[1] : 0) : layers_.back().weight.rows;
    layers_.push_back(
        {bundle.weight(name + ".weight", {out, in}), bundle.numbers(name + ".bias", out)});
  }
  static void run(Engine& engine, const Layer& layer, const float* x, int64_t batch, bool relu,
                  float* y) {
    linear(engine, x, batch, layer.weight, layer.bias.data(), relu, y);
  }

  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<const Network> make_mlp(const Bundle& bundle) {
  return std::make_unique<Mlp>(bundle);
}

}  // namespace tare::lite
