// Does some operations of a list that are drawn at random, all of one magnitude.
//
// Cubuk et al. 2020, RandAugment: Practical automated data augmentation with a reduced search
// space. The list and the strengths are those of torchvision's RandAugment.
#include "tare/transform/rand_augment.h"
#include "tare/transform/transform.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "tare/base/error.h"
#include "tare/transform/planes.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

/// Configures rand_augment.
struct RandAugmentOptions {
  int64_t operations = 2;  ///< of a picture, one after the other, in [1, 14]
  int64_t magnitude = 9;   ///< of each, >= 0 and < levels
  int64_t levels = 31;     ///< number of magnitudes from nothing to the strongest, in [2, 1000]
};
void visit_fields(auto& visit, RandAugmentOptions& o) {
  visit("operations", o.operations, config::between(1, 14));
  visit("magnitude", o.magnitude, config::between(0, 999));
  visit("levels", o.levels, config::between(2, 1000));
}

class RandAugment final : public ImageTransform {
 public:
  explicit RandAugment(const RandAugmentOptions& options) : o_(options) {
    if (o_.magnitude < o_.levels) return;
    throw ConfigError("transform.rand_augment", "magnitude", "is not below levels",
                      "0 to " + std::to_string(o_.levels - 1), std::to_string(o_.magnitude));
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] bool moves_pixels() const override { return true; }
  [[nodiscard]] bool needs_colours() const override { return true; }
  [[nodiscard]] std::vector<int64_t> output_shape(
      const std::vector<int64_t>& shape) const override {
    if (shape[0] == 1 || shape[0] == 3) return shape;
    throw ConfigError("transform.rand_augment",
                      "takes grey pictures of 1 channel or colours of 3, and these have " +
                          std::to_string(shape[0]) + "; remove it");
  }
  [[nodiscard]] at::Tensor apply(at::Tensor images,
                                 std::span<const uint64_t> seeds) const override {
    const int64_t channels = images.size(1), height = images.size(2), width = images.size(3);
    float* const all = images.mutable_data_ptr<float>();
    each_sample(images.size(0), [&](int64_t n) {
      std::vector<uint8_t> bytes(static_cast<size_t>(channels * height * width));
      const Planes<uint8_t> picture{bytes.data(), channels, height, width};
      float* const values = all + n * std::ssize(bytes);
      std::transform(values, values + bytes.size(), bytes.begin(), [](float value) {
        return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0F, 1.0F) * 255));
      });
      for (const Operation& operation : drawn(seeds[static_cast<size_t>(n)], height, width)) {
        apply_colours(operation, picture);
        for (int64_t c = 0; c < channels; ++c)
          move(operation, picture.values + c * picture.pixels(), height, width, uint8_t{0});
      }
      std::ranges::transform(bytes, values,
                             [](uint8_t value) { return static_cast<float>(value) / 255; });
    });
    return images;
  }
  [[nodiscard]] at::Tensor apply_to_targets(at::Tensor targets,
                                            std::span<const uint64_t> seeds) const override {
    const int64_t height = targets.size(-2), width = targets.size(-1);
    return by_type(targets, [&]<class T>(T) {
      return each_plane<T>(targets, height, width, [&](size_t n) {
        return [&, operations = drawn(seeds[n], height, width)](const T* in, T* out) {
          std::copy(in, in + height * width, out);
          for (const Operation& operation : operations)
            move(operation, out, height, width, outside<T>());
        };
      });
    });
  }

 private:
  [[nodiscard]] std::vector<Operation> drawn(uint64_t seed, int64_t height, int64_t width) const {
    RandomBits bits(seed);
    std::vector<Operation> all;
    for (int64_t i = 0; i < o_.operations; ++i) {
      const size_t which = bits.below(operation_names().size());
      Operation operation = operation_of(which, o_.magnitude, o_.levels, height, width);
      if (operation.has_sign && bits.below(2) == 1) operation.magnitude = -operation.magnitude;
      all.push_back(std::move(operation));
    }
    return all;
  }
  template <class T>
  static void move(const Operation& operation, T* plane, int64_t height, int64_t width, T fill) {
    const Warp warp = warp_of(operation, height, width);
    if (warp.xx == 1 && warp.xy == 0 && warp.x0 == 0 && warp.yx == 0 && warp.y0 == 0) return;
    const std::vector<T> before(plane, plane + height * width);
    warp_plane(before.data(), plane, height, width, warp, fill);
  }

  RandAugmentOptions o_;
};

}  // namespace

const std::vector<std::string>& operation_names() {
  static const std::vector<std::string> all{
      "identity",  "shear_x",    "shear_y",       "translate_x", "translate_y",
      "rotate",    "brightness", "colour",        "contrast",    "sharpness",
      "posterise", "solarise",   "auto_contrast", "equalise"};
  return all;
}

Operation operation_of(size_t index, int64_t magnitude, int64_t levels, int64_t height,
                       int64_t width) {
  constexpr double kShear = 0.3, kTranslate = 150.0 / 331, kDegrees = 30, kEnhance = 0.9;
  const double share = static_cast<double>(magnitude) / static_cast<double>(levels - 1);
  const auto strength = [&](double most) { return static_cast<float>(most * share); };
  const std::string& name = operation_names().at(index);
  if (name.starts_with("shear")) return {name, strength(kShear), true};
  if (name == "translate_x")
    return {name, std::trunc(strength(kTranslate * static_cast<double>(width))), true};
  if (name == "translate_y")
    return {name, std::trunc(strength(kTranslate * static_cast<double>(height))), true};
  if (name == "rotate") return {name, strength(kDegrees), true};
  if (name == "posterise") return {name, 8 - std::nearbyint(strength(4))};
  if (name == "solarise") return {name, 255 - strength(255)};
  if (name == "identity" || name == "auto_contrast" || name == "equalise") return {name};
  return {name, strength(kEnhance), true};
}

Warp warp_of(const Operation& operation, int64_t height, int64_t width) {
  const float m = operation.magnitude;
  // torchvision shears about the corner of the picture, which lies half a side from the centre.
  if (operation.name == "shear_x") return {.xy = m, .x0 = m * static_cast<float>(height) / 2};
  if (operation.name == "shear_y") return {.yx = m, .y0 = m * static_cast<float>(width) / 2};
  if (operation.name == "translate_x") return {.x0 = -m};
  if (operation.name == "translate_y") return {.y0 = -m};
  if (operation.name != "rotate") return {};
  const float angle = m * std::numbers::pi_v<float> / 180;
  return {
      .xx = std::cos(angle), .xy = -std::sin(angle), .yx = std::sin(angle), .yy = std::cos(angle)};
}

void apply_colours(const Operation& operation, Planes<uint8_t> picture) {
  const float m = operation.magnitude;
  if (operation.name == "brightness") adjust_brightness(picture, 1.0 + m);
  if (operation.name == "colour") adjust_saturation(picture, 1.0 + m);
  if (operation.name == "contrast") adjust_contrast(picture, 1.0 + m);
  if (operation.name == "sharpness") adjust_sharpness(picture, 1.0 + m);
  if (operation.name == "posterise") posterise(picture, static_cast<int>(m));
  if (operation.name == "solarise") solarise(picture, m);
  if (operation.name == "auto_contrast") stretch_contrast(picture);
  if (operation.name == "equalise") equalise(picture);
}

template <class T>
void warp_plane(const T* in, T* out, int64_t height, int64_t width, const Warp& warp, T fill) {
  const float middle_y = static_cast<float>(height - 1) / 2;
  const float middle_x = static_cast<float>(width - 1) / 2;
  for (int64_t y = 0; y < height; ++y) {
    const float down = static_cast<float>(y) - middle_y;
    for (int64_t x = 0; x < width; ++x) {
      const float right = static_cast<float>(x) - middle_x;
      const float from_x = warp.xx * right + warp.xy * down + warp.x0 + middle_x;
      const float from_y = warp.yx * right + warp.yy * down + warp.y0 + middle_y;
      const auto column = static_cast<int64_t>(std::nearbyint(from_x));
      const auto row = static_cast<int64_t>(std::nearbyint(from_y));
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      *out++ = inside ? in[row * width + column] : fill;
    }
  }
}

template void warp_plane(const uint8_t*, uint8_t*, int64_t, int64_t, const Warp&, uint8_t);
template void warp_plane(const float*, float*, int64_t, int64_t, const Warp&, float);
template void warp_plane(const int64_t*, int64_t*, int64_t, int64_t, const Warp&, int64_t);

namespace transforms {
void add_rand_augment(Registry& all) {
  all.add<RandAugmentOptions>(
      "rand_augment", "does some of 14 changes of colours and places, at random",
      [](const RandAugmentOptions& o) { return Added{std::make_shared<RandAugment>(o)}; });
}
}  // namespace transforms

}  // namespace tare
