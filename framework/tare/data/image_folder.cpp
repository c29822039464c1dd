// Reads folders of pictures as data sets.
#include "tare/data/image_folder.h"

#include <algorithm>
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
#include "tare/data/picture_kind.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhere = "data.image_folder";

/// Throws ConfigError unless a split has the classes of `train`.
void check_classes(const fs::path& folder, const ImagePart& train, const ImagePart& other) {
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

std::vector<ImagePart> parts_of(const fs::path& folder, bool warn) {
  std::vector<ImagePart> parts;
  for (const std::string& name : image_splits(folder))
    parts.push_back({name, list_class_folders(folder / name, kPictures, warn)});
  for (const ImagePart& part : parts) check_classes(folder, parts.front(), part);
  if (!warn) return parts;
  for (const fs::path& subfolder : list_subfolders(folder, kPictures)) {
    const std::string name = subfolder.filename().string();
    if (std::ranges::find(parts, name, &ImagePart::name) == parts.end())
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
  for (const ImagePart& part : parts_of(folder, false))
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
  return read_image_splits(folder, parts_of(folder, true), options);
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
