// Reads lists of pictures as data sets.
#include "tare/data/image_parts.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/data/image_files.h"
#include "tare/data/tensor_dataset.h"
#include "tare/transform/picture.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

int64_t pictures_of(const std::vector<ImagePart>& parts) {
  int64_t count = 0;
  for (const ImagePart& part : parts) count += static_cast<int64_t>(part.listing.files.size());
  return count;
}

/// Returns the shape of all samples: the shape of the first file, but for what the options say.
std::vector<int64_t> shape_of(const fs::path& first, const ImageFolderOptions& o) {
  const Picture picture = read_picture(first, o.channels);
  if (o.height > 0) return {picture.channels, o.height, o.width};
  return {picture.channels, picture.height, picture.width};
}

/// Returns what decode_sample() does to a picture, where the options give a size.
Resize resize_of(const ImageFolderOptions& o) {
  return {.height = o.height, .width = o.width, .round = true, .fit = o.fit};
}

/// Decodes all files into one tensor.
at::Tensor read_all(const ImageFiles& files) {
  std::vector<int64_t> shape = files.shape;
  const auto count = static_cast<int64_t>(files.files.size());
  shape.insert(shape.begin(), count);
  at::Tensor images = at::empty(shape, at::kByte);
  uint8_t* out = images.mutable_data_ptr<uint8_t>();
  int64_t converted = 0;
  for (int64_t i = 0; i < count; ++i, out += images.numel() / count)
    if (decode_sample(files, i, out) != files.shape[0]) ++converted;
  if (converted > 0 && files.warns_of_channels) warn_of_converted(files, converted);
  return images;
}

}  // namespace

void check(const ImageFolderOptions& o) {
  if (o.height < 0 || o.width < 0 || (o.height == 0) != (o.width == 0))
    throw ConfigError("data.image_folder", "height and width must both be 0 or both > 0");
  if (o.limit_bytes < 0 || o.cache_bytes.value_or(0) < 0)
    throw ConfigError("data.image_folder", "cache_bytes and limit_bytes must be >= 0");
  if (o.fit == ImageFolderOptions{}.fit) return;
  if (o.height == 0)
    throw ConfigError("data.image_folder", "fit", "needs the height and width of the samples",
                      "both > 0, or no fit", o.fit);
  config::validate(resize_of(o), "data.image_folder");
}

std::vector<DatasetPtr> read_image_parts(const fs::path& folder, std::vector<ImagePart> parts,
                                         const ImageFolderOptions& o) {
  check(o);
  const std::vector<int64_t> shape = shape_of(parts.front().listing.files.front(), o);
  const int64_t sample = c10::multiply_integers(shape), count = pictures_of(parts);
  const bool fits = sample <= o.limit_bytes / count;
  if (!fits && !o.cache_bytes)
    log::warning_once("the decoded pictures" +
                      (folder.empty() ? "" : " of " + printable(folder.string())) + " take " +
                      format_bytes(sample * count) + ", more than " + format_bytes(o.limit_bytes) +
                      ": each is decoded whenever it is needed; cache (data.cache in a recipe) "
                      "says how many bytes are kept");
  Transforms read_with;
  if (o.height > 0) read_with = Transforms{resize_of(o)};
  std::vector<DatasetPtr> sets;
  for (ImagePart& part : parts) {
    const auto names = std::make_shared<const std::vector<std::string>>(part.listing.names(folder));
    const at::Tensor targets = part.numbers.defined() ? part.numbers : part.listing.targets();
    const auto own = static_cast<int64_t>(part.listing.files.size());
    ImageFiles files{.folder = folder,
                     .files = std::move(part.listing.files),
                     .shape = shape,
                     .resizes = o.height > 0,
                     .fit = o.fit,
                     .warns_of_channels = o.channels == 0};
    if (fits && !o.cache_bytes) {
      const Batch all(read_all(files), targets);
      sets.push_back(std::make_shared<TensorDataset>(all.inputs, all.targets, part.listing.labels,
                                                     read_with, names));
      continue;
    }
    // The share is counted in whole samples, so that a part of few pictures gets one too.
    const int64_t kept = std::min(o.cache_bytes.value_or(0) / sample, count) * own / count;
    sets.push_back(std::make_shared<StreamedImages>(std::move(files), kept * sample, targets,
                                                    part.listing.labels, read_with, names));
  }
  return sets;
}

Splits read_image_splits(const fs::path& folder, std::vector<ImagePart> parts,
                         const ImageFolderOptions& options) {
  std::vector<std::string> names;
  for (const ImagePart& part : parts) names.push_back(part.name);
  const std::vector<DatasetPtr> sets = read_image_parts(folder, std::move(parts), options);
  Splits splits;
  for (size_t i = 0; i < sets.size(); ++i)
    (names[i] == "train"  ? splits.train
     : names[i] == "test" ? splits.test
                          : splits.valid) = sets[i];
  return splits;
}

}  // namespace tare
