// Cuts a part out of pictures: crop, centre_crop and random_resized_crop.
//
// The boxes are drawn as by torchvision's RandomCrop and RandomResizedCrop, and the centre is that
// of its CenterCrop.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/transform/crop.h"
#include "tare/transform/plane_stage.h"
#include "tare/transform/planes.h"
#include "tare/transform/random.h"
#include "tare/transform/resample.h"
#include "tare/transform/stages.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

int64_t height_of(const at::Tensor& images) { return images.size(-2); }
int64_t width_of(const at::Tensor& images) { return images.size(-1); }

/// Returns the place of a pixel in a row of `size` pixels; -1: it lies outside, and is padding.
int64_t place_of(int64_t at, int64_t size, const std::string& padding) {
  if (at >= 0 && at < size) return at;
  if (padding == "zero") return -1;
  if (padding == "edge") return std::clamp<int64_t>(at, 0, size - 1);
  return at < 0 ? -at : 2 * (size - 1) - at;
}

template <class T>
void cut(const T* in, int64_t height, int64_t width, Box box, const std::string& padding, T* out) {
  const bool inside = box.left >= 0 && box.left + box.width <= width;
  for (int64_t y = 0; y < box.height; ++y, out += box.width) {
    const int64_t row = place_of(box.top + y, height, padding);
    if (row >= 0 && inside) {
      std::copy_n(in + row * width + box.left, box.width, out);
      continue;
    }
    for (int64_t x = 0; x < box.width; ++x) {
      const int64_t column = place_of(box.left + x, width, padding);
      out[x] = row < 0 || column < 0 ? outside<T>() : in[row * width + column];
    }
  }
}

/// Resizes planes of a size to another one: values are averaged, and of classes the nearest is
/// taken.
template <class T>
class PlaneResize {
 public:
  PlaneResize(int64_t height, int64_t width, int64_t to_height, int64_t to_width)
      : down_(height, to_height), across_(width, to_width), width_(width) {}
  void operator()(const T* in, T* out) const {
    if constexpr (std::is_same_v<T, float>) {
      resample(in, out, down_, across_);
    } else {
      const auto nearest = [](const Axis& axis, size_t i) {
        return axis.weight[i] < 0.5F ? axis.low[i] : axis.high[i];
      };
      for (size_t y = 0; y < down_.low.size(); ++y)
        for (size_t x = 0; x < across_.low.size(); ++x)
          *out++ = in[nearest(down_, y) * width_ + nearest(across_, x)];
    }
  }

 private:
  std::conditional_t<std::is_same_v<T, float>, Filter, Axis> down_, across_;
  int64_t width_;
};

std::string size_text(int64_t height, int64_t width) {
  return std::to_string(height) + " x " + std::to_string(width);
}

/// Throws ConfigError if pictures of this shape are smaller than what is cut out of them.
void check_large_enough(const std::string& name, const std::vector<int64_t>& shape, int64_t height,
                        int64_t width) {
  if (shape[1] >= height && shape[2] >= width) return;
  const bool tall = shape[1] < height;
  throw ConfigError("transform." + name, tall ? "height" : "width",
                    "is more than pictures of " + size_text(shape[1], shape[2]) + " have",
                    "at most " + std::to_string(tall ? shape[1] : shape[2]),
                    std::to_string(tall ? height : width));
}

/// Configures centre_crop.
struct CentreCropOptions {
  int64_t height = 0;      ///< of what is kept, >= 1
  int64_t width = 0;       ///< of what is kept, >= 1
  int64_t short_side = 0;  ///< to which the picture's shorter side is resized before; 0: it is not
};
void visit_fields(auto& visit, CentreCropOptions& o) {
  visit("height", o.height, config::between(1, 16384));
  visit("width", o.width, config::between(1, 16384));
  visit("short_side", o.short_side, config::between(0, 16384));
}

class CentreCrop final : public ImageTransform {
 public:
  explicit CentreCrop(const CentreCropOptions& options) : o_(options) {
    config::validate(o_, "transform.centre_crop");
  }
  [[nodiscard]] bool moves_pixels() const override { return true; }
  [[nodiscard]] std::vector<int64_t> output_shape(
      const std::vector<int64_t>& shape) const override {
    const auto [height, width] = resized(shape[1], shape[2]);
    check_large_enough("centre_crop", {shape[0], height, width}, o_.height, o_.width);
    return {shape[0], o_.height, o_.width};
  }
  [[nodiscard]] at::Tensor apply(at::Tensor images, std::span<const uint64_t>) const override {
    return cut_all<float>(images);
  }
  [[nodiscard]] at::Tensor apply_to_targets(at::Tensor targets,
                                            std::span<const uint64_t>) const override {
    return by_type(targets, [&]<class T>(T) { return cut_all<T>(targets); });
  }

 private:
  struct Size {
    int64_t height = 0, width = 0;
  };
  [[nodiscard]] Size resized(int64_t height, int64_t width) const {
    if (o_.short_side == 0) return {height, width};
    const int64_t shorter = std::min(height, width);
    return {height * o_.short_side / shorter, width * o_.short_side / shorter};
  }
  template <class T>
  [[nodiscard]] at::Tensor cut_all(const at::Tensor& images) const {
    const int64_t height = height_of(images), width = width_of(images);
    const Size size = resized(height, width);
    const auto half = [](int64_t rest) {
      return static_cast<int64_t>(std::nearbyint(static_cast<double>(rest) / 2));
    };
    const Box box{half(size.height - o_.height), half(size.width - o_.width), o_.height, o_.width};
    const PlaneResize<T> resize(height, width, size.height, size.width);
    const auto make_plane = [&](const T* in, T* out) {
      if (o_.short_side == 0) return cut(in, height, width, box, "zero", out);
      std::vector<T> whole(static_cast<size_t>(size.height * size.width));
      resize(in, whole.data());
      cut(whole.data(), size.height, size.width, box, "zero", out);
    };
    return each_plane<T>(images, o_.height, o_.width, [&](size_t) { return make_plane; });
  }

  CentreCropOptions o_;
};

Transform centre_crop(const CentreCropOptions& options) {
  return Added{std::make_shared<CentreCrop>(options), {"centre_crop", config::to_node(options)}};
}

/// Configures crop.
struct CropOptions {
  int64_t height = 0;         ///< of what is kept, >= 1
  int64_t width = 0;          ///< of what is kept, >= 1
  int64_t padding = 0;        ///< pixels that are put around the picture before, on each side
  std::string fill = "zero";  ///< of the padding: zero | edge | reflect
};
void visit_fields(auto& visit, CropOptions& o) {
  visit("height", o.height, config::between(1, 16384));
  visit("width", o.width, config::between(1, 16384));
  visit("padding", o.padding, config::between(0, 1024));
  visit("fill", o.fill, config::one_of({"zero", "edge", "reflect"}));
}

class Crop final : public ImageTransform {
 public:
  explicit Crop(CropOptions options) : o_(std::move(options)) {
    config::validate(o_, "transform.crop");
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] bool moves_pixels() const override { return true; }
  [[nodiscard]] std::vector<Transform> when_evaluating() const override {
    return {centre_crop({.height = o_.height, .width = o_.width})};
  }
  [[nodiscard]] std::vector<int64_t> output_shape(
      const std::vector<int64_t>& shape) const override {
    check_large_enough("crop", shape, o_.height, o_.width);
    const int64_t most = std::min(shape[1], shape[2]) - 1;
    if (o_.fill == "reflect" && o_.padding > most)
      throw ConfigError("transform.crop", "padding",
                        "is too wide to reflect pictures of " + size_text(shape[1], shape[2]),
                        "at most " + std::to_string(most), std::to_string(o_.padding));
    return {shape[0], o_.height, o_.width};
  }
  [[nodiscard]] at::Tensor apply(at::Tensor images,
                                 std::span<const uint64_t> seeds) const override {
    return cut_all<float>(images, seeds);
  }
  [[nodiscard]] at::Tensor apply_to_targets(at::Tensor targets,
                                            std::span<const uint64_t> seeds) const override {
    return by_type(targets, [&]<class T>(T) { return cut_all<T>(targets, seeds); });
  }

 private:
  template <class T>
  [[nodiscard]] at::Tensor cut_all(const at::Tensor& images,
                                   std::span<const uint64_t> seeds) const {
    const int64_t height = height_of(images), width = width_of(images);
    const auto draw = [&](uint64_t seed) {
      RandomBits bits(seed);
      const auto from = [&](int64_t size, int64_t cut_to) {
        const auto places = static_cast<uint64_t>(size + 2 * o_.padding - cut_to + 1);
        return static_cast<int64_t>(bits.below(places)) - o_.padding;
      };
      const int64_t top = from(height, o_.height);
      return Box{top, from(width, o_.width), o_.height, o_.width};
    };
    return each_plane<T>(images, o_.height, o_.width, [&](size_t n) {
      return [&, box = draw(seeds[n])](const T* in, T* out) {
        cut(in, height, width, box, o_.fill, out);
      };
    });
  }

  CropOptions o_;
};

/// Configures random_resized_crop.
struct ResizedCropOptions {
  int64_t height = 0;                        ///< of the result, >= 1
  int64_t width = 0;                         ///< of the result, >= 1
  std::vector<double> scale{0.08, 1};        ///< least and most share of the picture's area
  std::vector<double> ratio{0.75, 4.0 / 3};  ///< least and most width / height of the part
  /// The shorter side of the picture when evaluating, before its centre is cut; 0: the longer side
  /// of the result divided by 0.875.
  int64_t short_side = 0;
};
void visit_fields(auto& visit, ResizedCropOptions& o) {
  visit("height", o.height, config::between(1, 16384));
  visit("width", o.width, config::between(1, 16384));
  visit("scale", o.scale, config::above(0));
  visit("ratio", o.ratio, config::above(0));
  visit("short_side", o.short_side, config::between(0, 16384));
}

class ResizedCrop final : public ImageTransform {
 public:
  explicit ResizedCrop(ResizedCropOptions options) : o_(std::move(options)) {
    config::validate(o_, "transform.random_resized_crop");
    check_bounds("random_resized_crop", "scale", o_.scale, 1);
    check_bounds("random_resized_crop", "ratio", o_.ratio, 1e6);
    const int64_t longer = std::max(o_.height, o_.width);
    if (o_.short_side > 0 && o_.short_side < longer)
      throw ConfigError("transform.random_resized_crop", "short_side",
                        "is less than the longer side of the result, which is cut out of it",
                        "0, or at least " + std::to_string(longer), std::to_string(o_.short_side));
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] bool moves_pixels() const override { return true; }
  [[nodiscard]] std::vector<Transform> when_evaluating() const override {
    const auto longer = static_cast<double>(std::max(o_.height, o_.width));
    return {centre_crop({.height = o_.height,
                         .width = o_.width,
                         .short_side = o_.short_side > 0
                                           ? o_.short_side
                                           : static_cast<int64_t>(std::lround(longer / 0.875))})};
  }
  [[nodiscard]] std::vector<int64_t> output_shape(
      const std::vector<int64_t>& shape) const override {
    return {shape[0], o_.height, o_.width};
  }
  [[nodiscard]] at::Tensor apply(at::Tensor images,
                                 std::span<const uint64_t> seeds) const override {
    return cut_all<float>(images, seeds);
  }
  [[nodiscard]] at::Tensor apply_to_targets(at::Tensor targets,
                                            std::span<const uint64_t> seeds) const override {
    return by_type(targets, [&]<class T>(T) { return cut_all<T>(targets, seeds); });
  }

 private:
  template <class T>
  [[nodiscard]] at::Tensor cut_all(const at::Tensor& images,
                                   std::span<const uint64_t> seeds) const {
    const int64_t height = height_of(images), width = width_of(images);
    return each_plane<T>(images, o_.height, o_.width, [&](size_t n) {
      const Box box = draw_box(seeds[n], height, width, o_.scale, o_.ratio);
      return [=, part = std::vector<T>(static_cast<size_t>(box.height * box.width)),
              resize = PlaneResize<T>(box.height, box.width, o_.height, o_.width)](const T* in,
                                                                                   T* out) mutable {
        cut(in, height, width, box, "zero", part.data());
        resize(part.data(), out);
      };
    });
  }

  ResizedCropOptions o_;
};

}  // namespace

void check_bounds(const std::string& name, const char* field, const std::vector<double>& bounds,
                  double most) {
  if (bounds.size() == 2 && bounds[0] <= bounds[1] && bounds[1] <= most) return;
  std::string got = "[";
  for (size_t i = 0; i < bounds.size(); ++i)
    got += (i ? ", " : "") + config::number_text(bounds[i]);
  throw ConfigError("transform." + name, field, "must be the least and the most of a range",
                    "[least, most] with 0 < least <= most <= " + config::number_text(most),
                    got + "]");
}

Box draw_box(uint64_t seed, int64_t height, int64_t width, const std::vector<double>& scale,
             const std::vector<double>& ratio) {
  constexpr int kAttempts = 10;  // of torchvision
  RandomBits bits(seed);
  const auto between = [&](double low, double high) { return low + (high - low) * bits.uniform(); };
  const auto pixels = [](double side) { return static_cast<int64_t>(std::nearbyint(side)); };
  const auto middle = [&](int64_t box_height, int64_t box_width) {
    return Box{(height - box_height) / 2, (width - box_width) / 2, box_height, box_width};
  };
  for (int i = 0; i < kAttempts; ++i) {
    const double area = static_cast<double>(height * width) * between(scale[0], scale[1]);
    const double aspect = std::exp(between(std::log(ratio[0]), std::log(ratio[1])));
    const int64_t across = pixels(std::sqrt(area * aspect)),
                  down = pixels(std::sqrt(area / aspect));
    if (across < 1 || down < 1 || across > width || down > height) continue;
    const auto top = static_cast<int64_t>(bits.below(static_cast<uint64_t>(height - down + 1)));
    const auto left = static_cast<int64_t>(bits.below(static_cast<uint64_t>(width - across + 1)));
    return {top, left, down, across};
  }
  const double own = static_cast<double>(width) / static_cast<double>(height);
  if (own < ratio[0])
    return middle(std::max<int64_t>(1, pixels(static_cast<double>(width) / ratio[0])), width);
  if (own > ratio[1])
    return middle(height, std::max<int64_t>(1, pixels(static_cast<double>(height) * ratio[1])));
  return middle(height, width);
}

namespace transforms {
void add_crop(Registry& all) {
  all.add<CropOptions>("crop", "cuts out a part, at random; the centre when evaluating",
                       [](const CropOptions& o) { return Added{std::make_shared<Crop>(o)}; });
  all.add<CentreCropOptions>("centre_crop", "cuts out the centre", centre_crop);
  all.add<ResizedCropOptions>(
      "random_resized_crop", "resizes a part of random area and shape; the centre when evaluating",
      [](const ResizedCropOptions& o) { return Added{std::make_shared<ResizedCrop>(o)}; });
}
}  // namespace transforms

}  // namespace tare
