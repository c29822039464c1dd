// Reads folders of pictures as data sets.
#include "tare/data/image_folder.h"

#include <string>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/data/class_splits.h"
#include "tare/data/datasets.h"
#include "tare/data/picture_kind.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "data.image_folder";

std::vector<ImagePart> parts_of(const fs::path& folder) {
  std::vector<ImagePart> parts;
  for (ClassSplit& split : list_class_splits(folder, kPictures, true))
    parts.push_back({std::move(split.name), std::move(split.listing)});
  return parts;
}

}  // namespace

bool has_image_splits(const fs::path& folder) { return !folder_splits(folder).empty(); }

std::vector<fs::path> image_files(const fs::path& folder) {
  return list_class_files(folder, kPictures);
}

DatasetPtr image_folder(const fs::path& folder, const ImageFolderOptions& options) {
  check(options);
  if (has_image_splits(folder))
    throw ConfigError(kFolder, "folder", "holds splits, in subfolders such as train",
                      "image_folder_splits(), or the folder of one split", folder.string());
  return read_image_parts(folder, {{"", list_class_folders(folder, kPictures, true)}}, options)
      .front();
}

Splits image_folder_splits(const fs::path& folder, const ImageFolderOptions& options) {
  check(options);
  if (!has_image_splits(folder))
    throw ConfigError(kFolder, "folder", "has no splits",
                      "the subfolder train, and valid or test beside it", folder.string());
  return read_image_splits(folder, parts_of(folder), options);
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found folder(const DataOptions& o, bool) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set image_folder",
                      "a folder of PNG, JPEG or WebP images, one subfolder a class", "");
  const ImageFolderOptions options{.channels = o.channels,
                                   .height = o.size,
                                   .width = o.size,
                                   .fit = o.fit,
                                   .cache_bytes = o.cache};
  Found found = has_image_splits(o.folder) ? found_splits(image_folder_splits(o.folder, options), o)
                                           : Found{.data = image_folder(o.folder, options)};
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
