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

#include "tare/config/registry.h"
#include "tare/transform/steps.h"

namespace tare {

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
