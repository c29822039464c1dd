// Image transforms between file and model. They are values that a bundle stores, so that training
// and prediction cannot differ.
//
// Every pipeline, even an empty one, converts uint8 images to float32 in [0, 1] (value / 255);
// float32 images are used as they are. Then the steps are applied in order. Random steps (flip,
// shift, affine, crop, colour ...) act in training only, and some of them have other steps in their
// place when a model is evaluated; what they do to a sample depends only on the sample's seed and
// the step's position in the list.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tare/config/field.h"
#include "tare/config/registry.h"

namespace tare {

/// Resizes bilinearly. With `antialias` each pixel is a mean of all that it covers, as by Pillow's
/// Image.resize(..., BILINEAR): to within 1/255, and exactly with `round` for uint8 images.
/// Without, it is a mean of the nearest four, as by torch's interpolate(..., align_corners=False).
///
/// `fit` says what becomes of an image of another aspect ratio; the pixels are those of the whole
/// image scaled to the size below:
/// - `stretch`: the image is scaled to height x width, whatever its aspect ratio.
/// - `crop`: the image is scaled until it just covers height x width, and its middle is kept. One
///   side has its size exactly, the other is rounded down; half of what is left over, rounded
///   half to even, is cut off at the top or the left. For a square that is torchvision's
///   Resize(size) and CenterCrop(size).
/// - `pad`: the image is scaled until it just fits into height x width, and lies in the middle of
///   zeros (black, before a Normalise). One side has its size exactly. The other (at least 1) and
///   the margin at the top or the left are rounded half to even, as by Pillow's ImageOps.pad(). In
///   a target of int64 classes the margin is -100, which the losses ignore.
struct Resize {
  int64_t height = 0;  ///< >= 1
  int64_t width = 0;   ///< >= 1
  /// Rounds the result to the 256 levels of a uint8 image, as a reader does that resizes the files
  /// it reads (image_folder) and keeps them as bytes.
  bool round = false;
  bool antialias = true;  ///< false: an image that shrinks loses fine lines, and shows patterns
  std::string fit = "stretch";  ///< stretch | crop | pad, see above
  bool operator==(const Resize&) const = default;
};
/// Computes (value - mean) / std per channel; the statistics are those of images in [0, 1].
struct Normalise {
  std::vector<double> mean{};  ///< one for each channel, or one for all
  std::vector<double> std{};   ///< as many as `mean`, > 0
  bool operator==(const Normalise&) const = default;
};
/// Mirrors left and right with the given probability. Random.
struct Flip {
  double probability = 0.5;  ///< in [0, 1]
  bool operator==(const Flip&) const = default;
};
/// Moves by a whole number of pixels, uniform in [-pixels, pixels] in each direction. Random.
struct Shift {
  int64_t pixels = 2;            ///< in [0, 1024], and below the image's height and width
  std::string padding = "zero";  ///< of what moves in: zero | edge (repeats the border)
  bool operator==(const Shift&) const = default;
};
/// Rotates by an angle uniform in [-degrees, degrees] and scales by a factor uniform in [1 - zoom,
/// 1 + zoom] about the image's centre; bilinear, padded with zeros. Random.
struct Affine {
  double degrees = 10;  ///< in [0, 180]
  double zoom = 0.1;    ///< in [0, 0.9]
  bool operator==(const Affine&) const = default;
};

void visit_fields(auto& visit, Resize& r) {
  visit("height", r.height, config::between(1, 16384));
  visit("width", r.width, config::between(1, 16384));
  visit("round", r.round);
  visit("antialias", r.antialias);
  visit("fit", r.fit, config::one_of({"stretch", "crop", "pad"}));
}
void visit_fields(auto& visit, Normalise& n) {
  visit("mean", n.mean);
  visit("std", n.std);
}
void visit_fields(auto& visit, Flip& f) {
  visit("probability", f.probability, config::between(0, 1));
}
void visit_fields(auto& visit, Shift& s) {
  visit("pixels", s.pixels, config::between(0, 1024));
  visit("padding", s.padding, config::one_of({"zero", "edge"}));
}
void visit_fields(auto& visit, Affine& a) {
  visit("degrees", a.degrees, config::between(0, 180));
  visit("zoom", a.zoom, config::between(0, 0.9));
}

struct Added;
/// Holds one transform, by its type.
using Transform = std::variant<Resize, Normalise, Flip, Shift, Affine, Added>;

/// Is the base of a transform that is an entry of transforms::registry() and has no type in the
/// list above, such as one of a program. Its functions are called from several threads at once.
class ImageTransform {
 public:
  virtual ~ImageTransform() = default;
  /// Whether it draws by the samples' seeds. Then it acts in training only, and no bundle has it.
  [[nodiscard]] virtual bool random() const { return false; }
  /// Returns what takes the place of a random transform outside of training, and in a bundle:
  /// transforms that are not random, and give images of output_shape(). By default there are none.
  [[nodiscard]] virtual std::vector<Transform> when_evaluating() const;
  /// Whether it moves pixels. Then targets that look like images must have the images' size.
  [[nodiscard]] virtual bool moves_pixels() const { return false; }
  /// Whether it takes values in [0, 1] only, so that a normalise can only come after it.
  [[nodiscard]] virtual bool needs_colours() const { return false; }
  /// Returns the shape of a transformed sample; both are [channels, height, width].
  [[nodiscard]] virtual std::vector<int64_t> output_shape(const std::vector<int64_t>& shape) const {
    return shape;
  }
  /// Transforms `images`, contiguous float32 [batch, channels, height, width] on the host, which
  /// the function may change. `seeds` has one for each image if it is random, else empty. Returns
  /// contiguous float32 images of output_shape().
  [[nodiscard]] virtual at::Tensor apply(at::Tensor images,
                                         std::span<const uint64_t> seeds) const = 0;
  /// Applies the transform to targets that are images, see Transforms::apply_to_targets(). By
  /// default they stay as they are; a transform that moves pixels must move those of the targets in
  /// the same way.
  [[nodiscard]] virtual at::Tensor apply_to_targets(at::Tensor targets,
                                                    std::span<const uint64_t> seeds) const {
    static_cast<void>(seeds);
    return targets;
  }
};

/// Holds an ImageTransform with the name and the options that it was made from.
struct Added {
  std::shared_ptr<const ImageTransform> transform{};  ///< what changes the image
  config::Choice choice{};                            ///< set where it is read by name
  /// Whether both were made from equal names and options.
  bool operator==(const Added& other) const { return choice == other.choice; }
};

/// Returns "resize", "normalise", "flip", "shift", "affine" or the name of an added transform.
[[nodiscard]] std::string name_of(const Transform& transform);
/// Returns a transform's name with all its options.
[[nodiscard]] config::Choice choice_of(const Transform& transform);

namespace transforms {
/// Holds the transforms by name. A program adds its own:
///   transforms::registry().add<BlurOptions>(
///       "blur", "blur with a Gaussian",
///       [](const BlurOptions& o) { return Added{std::make_shared<Blur>(o)}; });
/// A bundle names it, so that a program which predicts with the bundle must add it too.
using Registry = config::Registry<Transform()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace transforms

/// Holds an ordered list of transforms; a value. In YAML:
///   - resize: {height: 32, width: 32}
///   - normalise: {mean: [0.13], std: [0.31]}
///   - shift: {pixels: 2}
class Transforms {
 public:
  Transforms() = default;
  /// Throws ConfigError for a field out of its range.
  Transforms(std::initializer_list<Transform> steps);
  /// Throws ConfigError for a field out of its range.
  explicit Transforms(std::vector<Transform> steps);

  /// Returns the transforms in the order in which they are applied.
  [[nodiscard]] const std::vector<Transform>& steps() const { return steps_; }
  /// Whether a step is random.
  [[nodiscard]] bool random() const;
  /// Returns the transforms without the random steps, or with what takes the place of each when
  /// evaluating: what a bundle stores.
  [[nodiscard]] Transforms deterministic() const;
  /// Returns the shape of a transformed sample. `shape`: [channels, height, width]; throws
  /// ShapeError for another rank, ConfigError for a Normalise that does not fit the channels, a
  /// Shift that is not below height and width, and what an added transform does not take.
  [[nodiscard]] std::vector<int64_t> output_shape(const std::vector<int64_t>& shape) const;

  /// Transforms a batch. `images`: [batch, channels, height, width], uint8 or float32, contiguous,
  /// on the host. `sample_seeds`: one per image, derive_seed(epoch seed, sample index); may be
  /// empty if no random step acts. Returns a new float32 tensor. Thread-safe. Throws ShapeError,
  /// ConfigError.
  [[nodiscard]] at::Tensor apply(const at::Tensor& images, std::span<const uint64_t> sample_seeds,
                                 bool training) const;
  /// Applies the transforms to the images at `rows` of a larger tensor [total, channels, height,
  /// width], without copying them first. The caller guarantees that each row is in [0, total).
  /// `sample_seeds`: one per row.
  [[nodiscard]] at::Tensor apply_rows(const at::Tensor& images, std::span<const int64_t> rows,
                                      std::span<const uint64_t> sample_seeds, bool training) const;

  /// Whether targets of this shape are images of the inputs' size, which apply_to_targets() moves:
  /// [N, height, width] or [N, channels, height, width] for images [N, channels, height, width].
  [[nodiscard]] static bool are_images(c10::IntArrayRef targets, c10::IntArrayRef images);
  /// Throws ConfigError, naming both shapes, if a flip, shift or affine moves images of this shape
  /// but not the targets, though they look like images: two or more of their sizes after the batch
  /// are over 1, and are_images() is false. So it does for an added transform that moves_pixels().
  /// `name`: of the target.
  void check_targets_move(const std::string& name, c10::IntArrayRef targets,
                          c10::IntArrayRef images) const;
  /// Does to targets that are images what apply() with equal seeds does to the images: resize,
  /// flip, shift and affine, but no normalise. float32 targets are interpolated, and what moves in
  /// or is padding is 0. int64 and uint8 targets are classes, so the nearest pixel is taken. What
  /// moves in or is padding is -100 (which the losses ignore) or, for uint8, 0. Returns `targets`
  /// itself where nothing acts. Thread-safe. Throws ShapeError for another dtype or layout.
  [[nodiscard]] at::Tensor apply_to_targets(const at::Tensor& targets,
                                            std::span<const uint64_t> sample_seeds,
                                            bool training) const;

  bool operator==(const Transforms&) const = default;

 private:
  [[nodiscard]] at::Tensor run(const at::Tensor& images, const std::span<const int64_t>* rows,
                               std::span<const uint64_t> sample_seeds, bool training) const;

  std::vector<Transform> steps_;
  std::vector<Transform> evaluating_;  // the steps outside of training
};

/// Reads the YAML form, as described above. from_node throws ConfigError for an unknown transform,
/// naming the nearest.
void from_node(const config::Node& node, Transforms& transforms);
[[nodiscard]] config::Node to_node(const Transforms& transforms);

/// Returns the list of a bundle or a checkpoint, complete for from_node(): a resize that does not
/// say whether it is antialiased was written by an earlier Tare, which had none that is.
[[nodiscard]] config::Node with_stored_defaults(config::Node list);

}  // namespace tare
