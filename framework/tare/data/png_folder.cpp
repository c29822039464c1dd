// Reads folders of PNG images as data sets.
#include "tare/data/png_folder.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/data/class_folders.h"
#include "tare/data/datasets.h"
#include "tare/data/tensor_dataset.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kPng{
    .where = "data.png_folder", .extension = ".png", .name = "PNG", .samples = "pictures"};

// Records whether pictures were resized, and how many were converted, while the files were read.
struct Changed {
  bool resized = false;   // a file has another size than the options
  int64_t converted = 0;  // files with another number of channels
};

at::Tensor read_one(const fs::path& path, const PngFolderOptions& options, Changed& changed) {
  int64_t stored = 0;
  at::Tensor image = read_png(path, options.channels, &stored);
  if (stored != image.size(0)) ++changed.converted;
  if (options.height == 0 || (image.size(1) == options.height && image.size(2) == options.width))
    return image;
  changed.resized = true;
  return resize_image(image, options.height, options.width);
}

const char* kind_of_picture(int64_t channels) { return channels == 1 ? "grey" : "RGB"; }

// The user who gave the channels expects pictures to be converted.
void warn_of_converted(const fs::path& folder, int64_t converted, size_t count, int64_t channels) {
  log::warning_once(
      std::to_string(converted) + " of " + std::to_string(count) + " pictures of " +
      printable(folder.string()) + " are " + kind_of_picture(4 - channels) +
      " and are converted to " + kind_of_picture(channels) +
      ", because the first picture is: channels (data.channels in a recipe) chooses 1 "
      "for grey or 3 for RGB");
}

}  // namespace

std::vector<fs::path> png_files(const fs::path& folder) {
  return list_class_folders(folder, kPng, false).files;
}

DatasetPtr png_folder(const fs::path& folder, const PngFolderOptions& given) {
  if (given.height < 0 || given.width < 0 || (given.height == 0) != (given.width == 0))
    throw ConfigError("data.png_folder", "height and width must both be 0 or both > 0");
  const ClassFolders listing = list_class_folders(folder, kPng, true);
  PngFolderOptions options = given;
  Changed changed;
  at::Tensor image = read_one(listing.files.front(), options, changed);
  options.channels = image.size(0);
  const auto count = static_cast<int64_t>(listing.files.size());
  if (image.numel() > options.limit_bytes / count)
    throw ConfigError("data.png_folder", std::to_string(count) + " images need more than " +
                                             format_bytes(options.limit_bytes) +
                                             ": resize them or raise the limit");
  at::Tensor images = at::empty({count, image.size(0), image.size(1), image.size(2)}, at::kByte);
  for (int64_t i = 0; i < count; ++i) {
    const fs::path& path = listing.files[static_cast<size_t>(i)];
    if (i > 0) image = read_one(path, options, changed);
    if (image.sizes() != images.sizes().slice(1))
      throw FormatError("data.png_folder", path.string(), "size",
                        c10::str(image.sizes()) + " differs from the first file's " +
                            c10::str(images.sizes().slice(1)) +
                            ": give a size to resize to (data.size in a recipe)");
    std::copy_n(image.const_data_ptr<uint8_t>(), image.numel(),
                images.mutable_data_ptr<uint8_t>() + i * image.numel());
  }
  if (changed.converted > 0 && given.channels == 0)
    warn_of_converted(folder, changed.converted, listing.files.size(), options.channels);
  Transforms read_with;
  if (changed.resized)
    read_with = Transforms{Resize{.height = options.height, .width = options.width, .round = true}};
  const Batch all(images, listing.targets());
  return std::make_shared<TensorDataset>(
      all.inputs, all.targets, listing.labels, std::nullopt, read_with,
      std::make_shared<const std::vector<std::string>>(listing.names(folder)));
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found folder(const DataOptions& o, bool) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set png_folder",
                      "a folder of PNG images, one subfolder a class", "");
  const DatasetPtr data =
      png_folder(o.folder, {.channels = o.channels, .height = o.size, .width = o.size});
  Found found{.description = format_count(data->size()) + " images of " + printable(o.folder),
              .data = data};
  for (const auto& file : png_files(o.folder))
    found.files.push_back(file.lexically_relative(o.folder));
  return found;
}

}  // namespace

void add_png_folder(Registry& all) {
  all.add("png_folder",
          "reads a folder of PNG images, with one subfolder a class, or without labels", [] {
            return Kind{{"folder", "channels"}, folder};
          });
}

}  // namespace tare::datasets
