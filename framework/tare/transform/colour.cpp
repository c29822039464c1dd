// Changes the colours of pictures at random: colour and grey.
//
// colour is torchvision's ColorJitter, and grey its RandomGrayscale.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/transform/colour_ops.h"
#include "tare/transform/planes.h"
#include "tare/transform/random.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

/// Throws ConfigError for pictures that have neither one channel nor three.
void check_channels(const std::string& name, const std::vector<int64_t>& shape) {
  if (shape[0] == 1 || shape[0] == 3) return;
  throw ConfigError("transform." + name,
                    "takes grey pictures of 1 channel or colours of 3, and "
                    "these have " +
                        std::to_string(shape[0]) + "; remove it");
}

/// Returns the picture at a place of a batch.
Planes<float> picture_of(const at::Tensor& images, int64_t n) {
  return {images.mutable_data_ptr<float>() + n * images.stride(0), images.size(1), images.size(2),
          images.size(3)};
}

/// Configures colour.
struct ColourOptions {
  double brightness = 0.2;  ///< factor on it uniform in [1 - brightness, 1 + brightness], >= 0
  double contrast = 0.2;    ///< factor on it, likewise
  double saturation = 0;    ///< factor on it, likewise; of pictures with three channels only
  double hue = 0;           ///< part of the circle by which hues move, [-hue, hue], in [0, 0.5]
};
void visit_fields(auto& visit, ColourOptions& o) {
  visit("brightness", o.brightness, config::between(0, 10));
  visit("contrast", o.contrast, config::between(0, 10));
  visit("saturation", o.saturation, config::between(0, 10));
  visit("hue", o.hue, config::between(0, 0.5));
}

class Colour final : public ImageTransform {
 public:
  explicit Colour(const ColourOptions& options) : o_(options) {
    if (o_.brightness == 0 && o_.contrast == 0 && o_.saturation == 0 && o_.hue == 0)
      throw ConfigError("transform.colour",
                        "changes nothing, because brightness, contrast, saturation and hue are 0; "
                        "raise one of them, or remove colour");
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] bool needs_colours() const override { return true; }
  [[nodiscard]] std::vector<int64_t> output_shape(
      const std::vector<int64_t>& shape) const override {
    check_channels("colour", shape);
    for (const auto& [field, value] : {std::pair{"saturation", o_.saturation}, {"hue", o_.hue}})
      if (shape[0] == 1 && value > 0)
        throw ConfigError("transform.colour", field, "cannot change pictures of one channel",
                          "0 for grey pictures", config::to_node(value).text);
    return shape;
  }
  [[nodiscard]] at::Tensor apply(at::Tensor images,
                                 std::span<const uint64_t> seeds) const override {
    each_sample(images.size(0), [&](int64_t n) {
      change(picture_of(images, n), RandomBits(seeds[static_cast<size_t>(n)]));
    });
    return images;
  }

 private:
  // torchvision, too, does the four in an order that is drawn.
  void change(Planes<float> picture, RandomBits bits) const {
    const auto factor = [&](double most) {
      return bits.uniform(std::max(0.0F, 1 - static_cast<float>(most)),
                          1 + static_cast<float>(most));
    };
    const float brightness = factor(o_.brightness), contrast = factor(o_.contrast),
                saturation = factor(o_.saturation);
    const auto hue = static_cast<float>(o_.hue);
    const float turn = bits.uniform(-hue, hue);
    std::array order{0, 1, 2, 3};
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[bits.below(i)]);
    for (const int which : order) {
      if (which == 0 && o_.brightness > 0) adjust_brightness(picture, brightness);
      if (which == 1 && o_.contrast > 0) adjust_contrast(picture, contrast);
      if (which == 2 && o_.saturation > 0) adjust_saturation(picture, saturation);
      if (which == 3 && o_.hue > 0) adjust_hue(picture, turn);
    }
  }

  ColourOptions o_;
};

/// Configures grey.
struct GreyOptions {
  double probability = 0.1;  ///< in [0, 1]
};
void visit_fields(auto& visit, GreyOptions& o) {
  visit("probability", o.probability, config::between(0, 1));
}

class Grey final : public ImageTransform {
 public:
  explicit Grey(const GreyOptions& options) : o_(options) {}
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] std::vector<int64_t> output_shape(
      const std::vector<int64_t>& shape) const override {
    if (shape[0] == 3) return shape;
    throw ConfigError("transform.grey", "takes pictures of three channels, and these have " +
                                            std::to_string(shape[0]) + "; remove it");
  }
  [[nodiscard]] bool needs_colours() const override { return true; }
  [[nodiscard]] at::Tensor apply(at::Tensor images,
                                 std::span<const uint64_t> seeds) const override {
    each_sample(images.size(0), [&](int64_t n) {
      if (RandomBits(seeds[static_cast<size_t>(n)]).uniform() < static_cast<float>(o_.probability))
        make_grey(picture_of(images, n));
    });
    return images;
  }

 private:
  GreyOptions o_;
};

}  // namespace

namespace transforms {
void add_colour(Registry& all) {
  all.add<ColourOptions>("colour", "changes brightness, contrast, saturation and hue, at random",
                         [](const ColourOptions& o) { return Added{std::make_shared<Colour>(o)}; });
  all.add<GreyOptions>("grey", "takes the colours away, at random",
                       [](const GreyOptions& o) { return Added{std::make_shared<Grey>(o)}; });
}
}  // namespace transforms

}  // namespace tare
