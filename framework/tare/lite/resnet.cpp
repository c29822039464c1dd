// The residual networks of models/resnet.h and models/resnet9.h.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "tare/lite/network.h"

namespace tare::lite {
namespace {

constexpr double kEpsilon = 1e-5;  // of batch norm in all of these models

/// Holds a convolution with its batch norm.
struct Convolution {
  Matrix weight{};
  ChannelScale norm{};
  Window window{};

  [[nodiscard]] Planes operator()(Engine& engine, const Planes& in, After after) const {
    after.norm = &norm;
    return convolve(engine, in, weight, window, after);
  }
};

ChannelScale norm_of(const Bundle& bundle, const std::string& name, int64_t channels) {
  const auto part = [&](const char* of) { return bundle.numbers(name + of, channels); };
  const auto weight = part(".weight"), bias = part(".bias"), mean = part(".running_mean"),
             variance = part(".running_var");
  ChannelScale norm;
  for (size_t i = 0; i < weight.size(); ++i) {
    const double scale = weight[i] / std::sqrt(double{variance[i]} + kEpsilon);
    norm.scale.push_back(static_cast<float>(scale));
    norm.shift.push_back(static_cast<float>(bias[i] - mean[i] * scale));
  }
  return norm;
}

/// Reads a convolution without a bias; `in`: its input channels, 0 where the weight alone says so.
Convolution convolution(const Bundle& bundle, const std::string& name, const std::string& norm,
                        int64_t in, const Window& window) {
  const std::vector<int64_t>& shape = bundle.shape(name + ".weight");
  const int64_t out = shape.empty() ? 0 : shape[0];
  if (in == 0 && shape.size() == 4) in = shape[1];
  return {bundle.weight(name + ".weight", {out, in, window.size, window.size}),
          norm_of(bundle, norm, out), window};
}

/// Is the head behind the pixels: a linear layer on one number a channel.
struct Head {
  Matrix weight{};
  std::span<const float> bias{};

  Head(const Bundle& bundle, int64_t in) {
    const std::vector<int64_t>& shape = bundle.shape("fc.weight");
    const int64_t classes = shape.empty() ? 0 : shape[0];
    weight = bundle.weight("fc.weight", {classes, in});
    bias = bundle.numbers("fc.bias", classes);
  }
};

/// Reduces each plane to one number.
template <class Reduce>
std::vector<float> reduced(const Planes& planes, const Reduce& reduce) {
  std::vector<float> result;
  for (int64_t c = 0; c < planes.channels; ++c)
    result.push_back(reduce(planes.values.get() + c * planes.pixels(), planes.pixels()));
  return result;
}

/// Is a network of pictures. Several threads share one picture, or take one each.
class PictureNetwork : public Network {
 public:
  [[nodiscard]] Output forward(Engine& engine, const Input& input) const final {
    const auto& shape = input.shape;
    if (input.tokens || shape.size() != 4 || shape[1] != channels() || shape[2] < 1 || shape[3] < 1)
      throw ShapeError("lite.resnet",
                       "images [batch, " + std::to_string(channels()) + ", height, width]",
                       "another shape");
    const int64_t classes = head_.weight.rows, size = shape[1] * shape[2] * shape[3];
    Output output{{shape[0], classes}, std::vector<float>(static_cast<size_t>(shape[0] * classes))};
    const auto compute = [&](int64_t n, Engine& with) {
      Planes picture{shape[1], shape[2], shape[3], Floats(size)};
      std::copy_n(input.numbers + n * size, size, picture.values.get());
      const std::vector<float> pooled = features(with, std::move(picture));
      linear(with, pooled.data(), 1, head_.weight, head_.bias.data(), /*relu=*/false,
             output.values.data() + n * classes);
    };
    if (shape[0] == 1) {
      compute(0, engine);
    } else {  // a thread for each picture waits for no other one between two layers
      engine.workers.run(shape[0], [&](int64_t n, int64_t worker) {
        compute(n, engine.workers.count() > 1 ? engine.alone(worker) : engine);
      });
    }
    return output;
  }

 protected:
  explicit PictureNetwork(const Head& head) : head_(head) {}

 private:
  [[nodiscard]] virtual int64_t channels() const = 0;
  /// Returns one number for each input of the head.
  [[nodiscard]] virtual std::vector<float> features(Engine& engine, Planes picture) const = 0;

  Head head_;
};

/// Holds the two convolutions around which resnet9 leads its input.
struct Residual {
  Convolution first, second;

  Residual(const Bundle& bundle, const std::string& name, int64_t channels)
      : first(convolution(bundle, name + ".conv1.0", name + ".conv1.1", channels, kWindow)),
        second(convolution(bundle, name + ".conv2.0", name + ".conv2.1", channels, kWindow)) {}

  [[nodiscard]] Planes operator()(Engine& engine, const Planes& x) const {
    return second(engine, first(engine, x, {.relu_after = true}),
                  {.residual = &x, .relu_before = true});
  }

  static constexpr Window kWindow{3, 1, 1};
};

class ResNet9 final : public PictureNetwork {
 public:
  explicit ResNet9(const Bundle& bundle)
      : PictureNetwork(Head(bundle, channels_of(bundle, "layer3.0"))),
        prep_(convolution(bundle, "prep.0", "prep.1", 0, {3, 1, 1})),
        layer1_(down(bundle, "layer1", prep_)),
        residual1_(bundle, "layer1.3", layer1_.weight.rows),
        layer2_(down(bundle, "layer2", layer1_)),
        layer3_(down(bundle, "layer3", layer2_)),
        residual3_(bundle, "layer3.3", layer3_.weight.rows) {}

 private:
  static int64_t channels_of(const Bundle& bundle, const std::string& convolution) {
    const auto& shape = bundle.shape(convolution + ".weight");
    return shape.empty() ? 0 : shape[0];
  }
  static Convolution down(const Bundle& bundle, const std::string& name,
                          const Convolution& before) {
    return convolution(bundle, name + ".0", name + ".1", before.weight.rows, {3, 2, 1});
  }
  [[nodiscard]] int64_t channels() const override { return prep_.weight.columns / 9; }
  [[nodiscard]] std::vector<float> features(Engine& engine, Planes picture) const override {
    const After relu{.relu_after = true};
    Planes x = prep_(engine, picture, relu);
    x = residual1_(engine, layer1_(engine, x, relu));
    x = layer2_(engine, x, relu);
    x = residual3_(engine, layer3_(engine, x, relu));
    return reduced(x, [](const float* plane, int64_t pixels) {
      return std::accumulate(plane, plane + pixels, plane[0], [](float most, float value) {
        return value > most || std::isnan(value) ? value : most;
      });
    });
  }

  Convolution prep_, layer1_;
  Residual residual1_;
  Convolution layer2_, layer3_;
  Residual residual3_;
};

/// Holds a block of the larger ResNets: two or three convolutions around a shortcut.
struct Block {
  std::vector<Convolution> convolutions{};
  std::optional<Convolution> shortcut{};

  Block(const Bundle& bundle, const std::string& name, int64_t in, int64_t stride,
        bool bottleneck) {
    const auto add = [&](int64_t size, int64_t step) {
      const std::string number = std::to_string(convolutions.size() + 1);
      const int64_t from = convolutions.empty() ? in : convolutions.back().weight.rows;
      convolutions.push_back(convolution(bundle, name + ".conv" + number, name + ".bn" + number,
                                         from, {size, step, size / 2}));
    };
    if (bottleneck) add(1, 1);
    add(3, stride);
    add(bottleneck ? 1 : 3, 1);
    if (bundle.contains(name + ".downsample.0.weight"))
      shortcut =
          convolution(bundle, name + ".downsample.0", name + ".downsample.1", in, {1, stride, 0});
  }

  [[nodiscard]] Planes operator()(Engine& engine, const Planes& x) const {
    Planes y = convolutions.front()(engine, x, {.relu_after = true});
    for (size_t i = 1; i + 1 < convolutions.size(); ++i)
      y = convolutions[i](engine, y, {.relu_after = true});
    Planes around;
    if (shortcut) around = (*shortcut)(engine, x, {});
    return convolutions.back()(engine, y,
                               {.residual = shortcut ? &around : &x, .relu_after = true});
  }
  [[nodiscard]] int64_t out() const { return convolutions.back().weight.rows; }
};

class ResNet final : public PictureNetwork {
 public:
  ResNet(const Bundle& bundle, const std::vector<int64_t>& blocks, bool bottleneck)
      : PictureNetwork(head_of(bundle)), stem_(convolution(bundle, "conv1", "bn1", 0, {7, 2, 3})) {
    int64_t in = stem_.weight.rows;
    for (size_t layer = 0; layer < blocks.size(); ++layer)
      for (int64_t i = 0; i < blocks[layer]; ++i) {
        const std::string name = "layer" + std::to_string(layer + 1) + "." + std::to_string(i);
        blocks_.emplace_back(bundle, name, in, i == 0 && layer > 0 ? 2 : 1, bottleneck);
        in = blocks_.back().out();
      }
    (void)Head(bundle, in);  // throws where the head does not fit
  }

 private:
  static Head head_of(const Bundle& bundle) {
    const auto& shape = bundle.shape("fc.weight");
    return {bundle, shape.size() == 2 ? shape[1] : 0};
  }
  [[nodiscard]] int64_t channels() const override { return stem_.weight.columns / 49; }
  [[nodiscard]] std::vector<float> features(Engine& engine, Planes picture) const override {
    Planes x = max_pool(engine, stem_(engine, picture, {.relu_after = true}), {3, 2, 1});
    for (const Block& block : blocks_) x = block(engine, x);
    return reduced(x, [](const float* plane, int64_t pixels) {
      return std::accumulate(plane, plane + pixels, 0.0F) / static_cast<float>(pixels);
    });
  }

  Convolution stem_;
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<const Network> make_resnet9(const Bundle& bundle) {
  return std::make_unique<ResNet9>(bundle);
}

std::unique_ptr<const Network> make_resnet(const Bundle& bundle, const std::vector<int64_t>& blocks,
                                           bool bottleneck) {
  return std::make_unique<ResNet>(bundle, blocks, bottleneck);
}

}  // namespace tare::lite
