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
#include "tare/data/tensor_dataset.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

// Entries of a folder that `keep` takes, by name, without hidden ones.
template <class Keep>
std::vector<fs::path> entries(const fs::path& folder, Keep keep) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().native().front() != '.' && keep(*it)) found.push_back(it->path());
  if (error) throw IoError("data.png_folder", folder.string(), error.value());
  std::sort(found.begin(), found.end());
  return found;
}

bool is_named_png(const fs::directory_entry& entry) {
  std::string extension = entry.path().extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension == ".png";
}

// A link that leads nowhere, or in a circle, is taken, so that reading it fails.
bool is_broken(const fs::directory_entry& entry) {
  std::error_code ignored;
  const fs::file_type type = entry.status(ignored).type();
  return type == fs::file_type::not_found || type == fs::file_type::none;
}

bool is_png(const fs::directory_entry& entry) {
  std::error_code ignored;
  return is_named_png(entry) && (entry.is_regular_file(ignored) || is_broken(entry));
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  if (entry.path().filename() == "__MACOSX") return false;  // of a ZIP archive
  return entry.is_directory(ignored) || (!is_named_png(entry) && is_broken(entry));
}

struct Listing {
  std::vector<fs::path> files;
  std::vector<int64_t> classes;
  std::vector<std::string> labels;  // empty: the pictures have no labels
};

void warn_of_odd_folder(const fs::path& folder, size_t classes) {
  const size_t beside = entries(folder, is_png).size();
  if (beside > 0)
    log::warning(std::to_string(beside) + " pictures of " + printable(folder.string()) +
                 " are left out: they lie beside the folders of the classes");
  if (classes == 1)
    log::warning(printable(folder.string()) +
                 " has one class: a model that is trained on it always answers with that class");
}

/// With warnings of what a user would not expect, if `warn`.
Listing list(const fs::path& folder, bool warn) {
  Listing listing;
  const auto subfolders = entries(folder, is_folder);
  if (subfolders.empty())
    listing.files = entries(folder, is_png);
  else if (warn)
    warn_of_odd_folder(folder, subfolders.size());
  for (const fs::path& subfolder : subfolders) {
    const std::vector<fs::path> files = entries(subfolder, is_png);
    if (files.empty())
      throw ConfigError("data.png_folder", "no PNG file in " + printable(subfolder.string()) +
                                               ": add PNG files, the only kind that is read, or "
                                               "remove the folder");
    listing.files.insert(listing.files.end(), files.begin(), files.end());
    listing.classes.insert(listing.classes.end(), files.size(),
                           static_cast<int64_t>(listing.labels.size()));
    listing.labels.push_back(subfolder.filename().string());
  }
  if (listing.files.empty())
    throw ConfigError("data.png_folder",
                      "no subfolder in " + printable(folder.string()) +
                          " and no PNG file: give one folder a class, or pictures without labels");
  return listing;
}

// `resized` becomes true where the file has another size than the options.
at::Tensor read_one(const fs::path& path, const PngFolderOptions& options, bool& resized) {
  at::Tensor image = read_png(path, options.channels);
  if (options.height == 0 || (image.size(1) == options.height && image.size(2) == options.width))
    return image;
  resized = true;
  return resize_image(image, options.height, options.width);
}

SampleNames names_of(const Listing& listing, const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& file : listing.files)
    names.push_back(file.lexically_relative(folder).generic_string());
  return std::make_shared<const std::vector<std::string>>(std::move(names));
}

at::Tensor targets_of(const Listing& listing) {
  if (listing.labels.empty()) return {};
  at::Tensor target = at::empty({static_cast<int64_t>(listing.classes.size())}, at::kLong);
  std::copy(listing.classes.begin(), listing.classes.end(), target.mutable_data_ptr<int64_t>());
  return target;
}

}  // namespace

std::vector<fs::path> png_files(const fs::path& folder) { return list(folder, false).files; }

DatasetPtr png_folder(const fs::path& folder, const PngFolderOptions& given) {
  if (given.height < 0 || given.width < 0 || (given.height == 0) != (given.width == 0))
    throw ConfigError("data.png_folder", "height and width must both be 0 or both > 0");
  const Listing listing = list(folder, true);
  PngFolderOptions options = given;
  bool resized = false;
  at::Tensor image = read_one(listing.files.front(), options, resized);
  options.channels = image.size(0);
  const auto count = static_cast<int64_t>(listing.files.size());
  if (image.numel() > options.limit_bytes / count)
    throw ConfigError("data.png_folder", std::to_string(count) + " images need more than " +
                                             format_bytes(options.limit_bytes) +
                                             ": resize them or raise the limit");
  at::Tensor images = at::empty({count, image.size(0), image.size(1), image.size(2)}, at::kByte);
  for (int64_t i = 0; i < count; ++i) {
    const fs::path& path = listing.files[static_cast<size_t>(i)];
    if (i > 0) image = read_one(path, options, resized);
    if (image.sizes() != images.sizes().slice(1))
      throw FormatError("data.png_folder", path.string(), "size",
                        c10::str(image.sizes()) + " differs from the first file's " +
                            c10::str(images.sizes().slice(1)) +
                            ": give a size to resize to (data.size in a recipe)");
    std::copy_n(image.const_data_ptr<uint8_t>(), image.numel(),
                images.mutable_data_ptr<uint8_t>() + i * image.numel());
  }
  Transforms read_with;
  if (resized)
    read_with = Transforms{Resize{.height = options.height, .width = options.width, .round = true}};
  const Batch all(images, targets_of(listing));
  return std::make_shared<TensorDataset>(all.inputs, all.targets, listing.labels, std::nullopt,
                                         read_with, names_of(listing, folder));
}

}  // namespace tare
