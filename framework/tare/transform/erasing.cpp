// Erases a box of pictures at random, as torchvision's RandomErasing does.
//
// Zhong et al. 2020, Random Erasing Data Augmentation.
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/transform/crop.h"
#include "tare/transform/planes.h"
#include "tare/transform/random.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

/// Configures erasing.
struct ErasingOptions {
  double probability = 0.5;               ///< in [0, 1]
  std::vector<double> scale{0.02, 0.33};  ///< least and most share of the picture's area
  std::vector<double> ratio{0.3, 3.3};    ///< least and most height / width of the box
  std::string fill = "value";             ///< value | noise (normal, of mean 0 and deviation 1)
  double value = 0;                       ///< of the pixels in the box, for fill: value
};
void visit_fields(auto& visit, ErasingOptions& o) {
  visit("probability", o.probability, config::between(0, 1));
  visit("scale", o.scale, config::above(0));
  visit("ratio", o.ratio, config::above(0));
  visit("fill", o.fill, config::one_of({"value", "noise"}));
  visit("value", o.value, config::between(-1e6, 1e6));
}

/// Draws the box; none after ten that do not fit, as torchvision does.
std::optional<Box> draw_erased(RandomBits& bits, const ErasingOptions& o, int64_t height,
                               int64_t width) {
  constexpr int kAttempts = 10;
  const auto between = [&](double low, double high) { return low + (high - low) * bits.uniform(); };
  for (int i = 0; i < kAttempts; ++i) {
    const double area = static_cast<double>(height * width) * between(o.scale[0], o.scale[1]);
    const double aspect = std::exp(between(std::log(o.ratio[0]), std::log(o.ratio[1])));
    const auto down = static_cast<int64_t>(std::nearbyint(std::sqrt(area * aspect)));
    const auto across = static_cast<int64_t>(std::nearbyint(std::sqrt(area / aspect)));
    if (down >= height || across >= width) continue;
    const auto top = static_cast<int64_t>(bits.below(static_cast<uint64_t>(height - down + 1)));
    const auto left = static_cast<int64_t>(bits.below(static_cast<uint64_t>(width - across + 1)));
    return Box{top, left, down, across};
  }
  return std::nullopt;
}

/// Draws from the normal distribution, by Box and Muller's method.
float normal(RandomBits& bits) {
  const float radius = std::sqrt(-2 * std::log(1 - bits.uniform()));
  return radius * std::cos(2 * std::numbers::pi_v<float> * bits.uniform());
}

class Erasing final : public ImageTransform {
 public:
  explicit Erasing(ErasingOptions options) : o_(std::move(options)) {
    check_bounds("erasing", "scale", o_.scale, 1);
    check_bounds("erasing", "ratio", o_.ratio, 1e6);
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] at::Tensor apply(at::Tensor images,
                                 std::span<const uint64_t> seeds) const override {
    const int64_t channels = images.size(1), height = images.size(2), width = images.size(3);
    float* const values = images.mutable_data_ptr<float>();
    each_sample(images.size(0), [&](int64_t n) {
      float* plane = values + n * channels * height * width;
      RandomBits bits(seeds[static_cast<size_t>(n)]);
      std::optional<Box> box;
      if (bits.uniform() < static_cast<float>(o_.probability))
        box = draw_erased(bits, o_, height, width);
      for (int64_t c = 0; c < channels; ++c, plane += height * width)
        if (box) erase(plane, width, *box, bits);
    });
    return images;
  }

 private:
  void erase(float* plane, int64_t width, Box box, RandomBits& bits) const {
    const bool noise = o_.fill == "noise";
    for (int64_t y = box.top; y < box.top + box.height; ++y)
      for (int64_t x = box.left; x < box.left + box.width; ++x)
        plane[y * width + x] = noise ? normal(bits) : static_cast<float>(o_.value);
  }

  ErasingOptions o_;
};

}  // namespace

namespace transforms {
void add_erasing(Registry& all) {
  all.add<ErasingOptions>("erasing", "erases a box, at random", [](const ErasingOptions& o) {
    return Added{std::make_shared<Erasing>(o)};
  });
}
}  // namespace transforms

}  // namespace tare
