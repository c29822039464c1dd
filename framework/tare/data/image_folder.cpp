// Reads folders of pictures as data sets.
#include "tare/data/image_folder.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/scalar.h"
#include "tare/data/class_folders.h"
#include "tare/data/datasets.h"
#include "tare/data/image_files.h"
#include "tare/data/image_parts.h"
#include "tare/data/picture_kind.h"
#include "tare/data/tensor_dataset.h"
#include "tare/transform/picture.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhere = "data.image_folder";

void check(const ImageFolderOptions& o) {
  if (o.height < 0 || o.width < 0 || (o.height == 0) != (o.width == 0))
    throw ConfigError(kWhere, "height and width must both be 0 or both > 0");
  if (o.limit_bytes < 0 || o.cache_bytes.value_or(0) < 0)
    throw ConfigError(kWhere, "cache_bytes and limit_bytes must be >= 0");
}

using Part = ImagePart;

int64_t pictures_of(const std::vector<Part>& parts) {
  int64_t count = 0;
  for (const Part& part : parts) count += static_cast<int64_t>(part.listing.files.size());
  return count;
}

/// Returns the shape of all samples: the shape of the first file, but for what the options say.
std::vector<int64_t> shape_of(const fs::path& first, const ImageFolderOptions& o) {
  const Picture picture = read_picture(first, o.channels);
  if (o.height > 0) return {picture.channels, o.height, o.width};
  return {picture.channels, picture.height, picture.width};
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

std::vector<DatasetPtr> read_image_parts(const fs::path& folder, std::vector<ImagePart> parts,
                                         const ImageFolderOptions& o) {
  check(o);
  const std::vector<int64_t> shape = shape_of(parts.front().listing.files.front(), o);
  const int64_t sample = c10::multiply_integers(shape), count = pictures_of(parts);
  const bool fits = sample <= o.limit_bytes / count;
  if (!fits && !o.cache_bytes)
    log::warning_once("the decoded pictures of " + printable(folder.string()) + " take " +
                      format_bytes(sample * count) + ", more than " + format_bytes(o.limit_bytes) +
                      ": each is decoded whenever it is needed; cache (data.cache in a recipe) "
                      "says how many bytes are kept");
  Transforms read_with;
  if (o.height > 0)
    read_with = Transforms{Resize{.height = o.height, .width = o.width, .round = true}};
  std::vector<DatasetPtr> sets;
  for (Part& part : parts) {
    const auto names = std::make_shared<const std::vector<std::string>>(part.listing.names(folder));
    const at::Tensor targets = part.listing.targets();
    const auto own = static_cast<int64_t>(part.listing.files.size());
    ImageFiles files{.folder = folder,
                     .files = std::move(part.listing.files),
                     .shape = shape,
                     .resizes = o.height > 0,
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

namespace {

/// Throws ConfigError unless a split has the classes of `train`.
void check_classes(const fs::path& folder, const Part& train, const Part& other) {
  const auto& theirs = train.listing.labels;
  const auto& own = other.listing.labels;
  if (theirs == own) return;
  const auto refuse = [&](const std::string& problem, const std::string& allowed) {
    throw ConfigError(kWhere, "folder", problem, allowed, folder.string());
  };
  if (theirs.empty() != own.empty())
    refuse(std::string("has classes in ") + (own.empty() ? train.name : other.name) +
               ", and pictures without classes in " + (own.empty() ? other.name : train.name),
           "one subfolder for each class in every split; keep pictures to predict on elsewhere");
  const auto lacks = [](const std::vector<std::string>& all, const std::string& label) {
    return std::ranges::find(all, label) == all.end();
  };
  for (const auto& [from, in, with, without] :
       {std::tuple(&own, &theirs, &other.name, &train.name),
        std::tuple(&theirs, &own, &train.name, &other.name)})
    for (const std::string& label : *from)
      if (lacks(*in, label))
        refuse("has the class '" + printable(label) + "' in " + *with + ", but not in " + *without,
               "the same classes in every split");
}

std::vector<Part> parts_of(const fs::path& folder, bool warn) {
  std::vector<Part> parts;
  for (const std::string& name : image_splits(folder))
    parts.push_back({name, list_class_folders(folder / name, kPictures, warn)});
  for (const Part& part : parts) check_classes(folder, parts.front(), part);
  if (!warn) return parts;
  for (const fs::path& subfolder : list_subfolders(folder, kPictures)) {
    const std::string name = subfolder.filename().string();
    if (std::ranges::find(parts, name, &Part::name) == parts.end())
      log::warning_once("the folder " + printable(subfolder.string()) +
                        " is skipped: beside train, only valid (or val) and test are splits");
  }
  return parts;
}

}  // namespace

bool has_image_splits(const fs::path& folder) { return !image_splits(folder).empty(); }

std::vector<fs::path> image_files(const fs::path& folder) {
  if (!has_image_splits(folder)) return list_class_folders(folder, kPictures, false).files;
  std::vector<fs::path> files;
  for (const Part& part : parts_of(folder, false))
    files.insert(files.end(), part.listing.files.begin(), part.listing.files.end());
  return files;
}

DatasetPtr image_folder(const fs::path& folder, const ImageFolderOptions& options) {
  check(options);
  if (has_image_splits(folder))
    throw ConfigError(kWhere, "folder", "holds splits, in subfolders such as train",
                      "image_folder_splits(), or the folder of one split", folder.string());
  return read_image_parts(folder, {{"", list_class_folders(folder, kPictures, true)}}, options)
      .front();
}

Splits image_folder_splits(const fs::path& folder, const ImageFolderOptions& options) {
  check(options);
  if (!has_image_splits(folder))
    throw ConfigError(kWhere, "folder", "has no splits",
                      "the subfolder train, and valid or test beside it", folder.string());
  std::vector<Part> parts = parts_of(folder, true);
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);
  const std::vector<DatasetPtr> sets = read_image_parts(folder, std::move(parts), options);
  Splits splits;
  for (size_t i = 0; i < sets.size(); ++i)
    (names[i] == "train"  ? splits.train
     : names[i] == "test" ? splits.test
                          : splits.valid) = sets[i];
  return splits;
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found folder(const DataOptions& o, bool) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set image_folder",
                      "a folder of PNG, JPEG or WebP images, one subfolder a class", "");
  const ImageFolderOptions options{
      .channels = o.channels, .height = o.size, .width = o.size, .cache_bytes = o.cache};
  Found found;
  if (has_image_splits(o.folder)) {
    Splits splits = image_folder_splits(o.folder, options);
    found.data = std::move(splits.train);
    found.valid = std::move(splits.valid);
    found.test = std::move(splits.test);
    if (found.test && o.test != DataOptions{}.test)
      throw ConfigError("data.make", "test", "has no part in a folder that has the subfolder test",
                        "omit it", config::number_text(o.test));
  } else {
    found.data = image_folder(o.folder, options);
  }
  for (const auto& file : image_files(o.folder))
    found.files.push_back(file.lexically_relative(o.folder));
  found.description =
      format_count(static_cast<int64_t>(found.files.size())) + " images of " + printable(o.folder);
  return found;
}

}  // namespace

void add_image_folder(Registry& all) {
  all.add("image_folder",
          "reads a folder of PNG, JPEG and WebP images, with one subfolder a class, or without "
          "labels",
          [] {
            return Kind{{"folder", "channels", "cache"}, folder};
          });
}

}  // namespace tare::datasets
