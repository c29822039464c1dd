// Brings arrays of NumPy to the shape and the dtype that a bundle's model takes.
#include "tare/cli/predict_arrays.h"

#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/data/levels.h"
#include "tare/data/npy.h"
#include "tare/data/npy_pictures.h"

namespace tare::cli {
namespace {

constexpr int64_t kAny = -1;

/// Brings one array to what the model takes.
class ArrayReader {
 public:
  ArrayReader(const std::filesystem::path& path, at::Tensor array, const BundleManifest& manifest)
      : path_(path),
        manifest_(manifest),
        array_(std::move(array)),
        shape_(manifest.sample_shape),
        is_image_(sample_kind(manifest) == SampleKind::image),
        is_transformed_(shape_.size() == 3 && bundle_dtype(manifest.input) == c10::kFloat) {
    for (const int64_t dimension : any_size(manifest))
      shape_[static_cast<size_t>(dimension)] = kAny;
    // Pictures are resized, and transforms may change the size of other samples.
    if (is_transformed_ && (is_image_ || !manifest.transforms.steps().empty()))
      shape_[1] = shape_[2] = kAny;
  }

  ArraySamples read() {
    // Grey pictures as NumPy has them, which the data set npy takes, too.
    if (is_image_ && shape_[0] == 1 && are_grey_pictures(array_) && !fits(array_.sizes()) &&
        fits(array_.unsqueeze(1).sizes().slice(1)))
      array_ = array_.unsqueeze(1);
    const bool is_one = !shape_.empty() && fits(array_.sizes());
    if (!is_one && (array_.dim() == 0 || (!shape_.empty() && !fits(array_.sizes().slice(1)))))
      refuse_shape();
    ArraySamples result{.samples = is_one ? array_.unsqueeze(0) : array_, .is_one = is_one};
    if (is_image_)
      if (const std::string problem = picture_problem(result.samples); !problem.empty())
        refuse("data", problem);
    result.samples = converted(result.samples);
    warn_of_levels(result.samples, manifest_, path_.string());
    result.pictures = is_image_ && result.samples.scalar_type() == c10::kByte;
    if (is_transformed_ && !result.pictures) check_size(result.samples);
    return result;
  }

 private:
  [[noreturn]] void refuse(const char* part, const std::string& problem) const {
    throw FormatError("predict", path_.string(), part, problem);
  }

  [[nodiscard]] bool fits(at::IntArrayRef sizes) const {
    return std::ranges::equal(sizes, shape_, [](int64_t size, int64_t wanted) {
      return wanted == kAny ? size > 0 : size == wanted;
    });
  }

  [[nodiscard]] std::string shape_text() const {
    std::string text;
    for (const int64_t size : shape_)
      text += (text.empty() ? "" : ", ") + (size == kAny ? "any size" : std::to_string(size));
    return text;
  }

  [[noreturn]] void refuse_shape() const {
    const std::string one = shape_text();
    refuse("shape",
           "is " + c10::str(array_.sizes()) + ", and the model takes [samples" +
               (shape_.empty() ? ", ...]" : ", " + one + "], or one sample [" + one + "]") +
               hint());
  }

  /// Says how pictures in another order become those of the model.
  [[nodiscard]] std::string hint() const {
    if (!is_image_ || array_.dim() < 2) return "";
    std::vector<int64_t> moved = array_.sizes().vec();
    std::rotate(moved.end() - std::min<std::ptrdiff_t>(3, array_.dim()), moved.end() - 1,
                moved.end());
    const at::IntArrayRef sizes(moved);
    if (fits(sizes) || (sizes.size() > 1 && fits(sizes.slice(1))))
      return ": save numpy.moveaxis(array, -1, -3), which has the channels first";
    if (shape_[0] == 1 && (array_.dim() == 2 || array_.dim() == 3))
      return ": save numpy.expand_dims(array, -3), which has the channel";
    return "";
  }

  [[noreturn]] void refuse_dtype(const std::string& takes) const {
    refuse("descr", "is " + numpy_dtype(array_) + ", and " + takes);
  }

  [[nodiscard]] at::Tensor converted(const at::Tensor& samples) const {
    const c10::ScalarType type = samples.scalar_type(), wanted = bundle_dtype(manifest_.input);
    const bool is_whole = !samples.is_floating_point() && type != c10::kBool;
    if (type == wanted || (is_transformed_ && type == c10::kByte)) return samples;
    if (is_image_ && !(wanted == c10::kFloat && samples.is_floating_point()))
      refuse_dtype(
          "the model takes pictures: save array.astype(numpy.uint8) for levels from 0 to "
          "255" +
          std::string(wanted == c10::kFloat ? ", or numpy.float32 for levels from 0 to 1" : ""));
    if (c10::isFloatingType(wanted)) return samples.to(wanted);
    if (!is_whole || !c10::isIntegralType(wanted, /*includeBool=*/false))
      refuse_dtype("the model takes " + manifest_.input + ": save array.astype(numpy." +
                   manifest_.input + ")");
    const at::Tensor whole = samples.to(wanted);
    if (!whole.to(c10::kLong).equal(samples.to(c10::kLong)))
      refuse("data", "has a number that " + manifest_.input + " does not hold");
    return whole;
  }

  /// Numbers are not resized but by the transforms.
  void check_size(const at::Tensor& samples) const {
    const std::vector<int64_t> raw = samples.sizes().slice(1).vec();
    const std::vector<int64_t> made = manifest_.transforms.output_shape(raw);
    const std::vector<int64_t> open = any_size(manifest_);
    for (const size_t i : {1, 2}) {
      if (made[i] == manifest_.sample_shape[i] || std::ranges::count(open, i) > 0) continue;
      refuse("shape", "has samples of " + c10::str(at::IntArrayRef(raw)) +
                          ", and the model takes " +
                          c10::str(at::IntArrayRef(manifest_.sample_shape)) +
                          (is_image_ ? ": resize them, or save array.astype(numpy.uint8) with "
                                       "levels from 0 to 255, which are resized"
                                     : ""));
    }
  }

  const std::filesystem::path path_;
  const BundleManifest& manifest_;
  at::Tensor array_;
  std::vector<int64_t> shape_;  // of a sample; kAny: of any size; empty: unknown
  bool is_image_, is_transformed_;
};

}  // namespace

ArraySamples read_array(const std::filesystem::path& path, const BundleManifest& manifest) {
  if (manifest.rows)
    throw ConfigError("predict", "the model takes rows of a table, and '" +
                                     printable(path.string()) +
                                     "' is an array without the names of columns: give a CSV file "
                                     "or JSON lines");
  return ArrayReader(path, read_npy(path), manifest).read();
}

ArraySamples array_from(std::string_view bytes, const std::string& name,
                        const BundleManifest& manifest) {
  return ArrayReader(name, decode_npy(bytes, name), manifest).read();
}

void warn_of_levels(const at::Tensor& samples, const BundleManifest& manifest,
                    const std::string& name) {
  if (manifest.levels.empty() || !samples.is_floating_point()) return;
  const std::optional<Levels> levels = levels_of(samples);
  if (!levels) return;
  const Levels trained{.least = manifest.levels[0], .most = manifest.levels[1]};
  const std::string unusual = levels_warning(*levels, trained);
  if (!unusual.empty()) log::warning(printable(name, 1000) + ' ' + unusual);
}

void check_finite(const at::Tensor& sample, const std::filesystem::path& path, int64_t number) {
  if (!sample.is_floating_point() || at::isfinite(sample).all().item<bool>()) return;
  throw FormatError("predict", path.string(), "sample " + std::to_string(number),
                    "has NaN or a number that float32 does not hold");
}

}  // namespace tare::cli
