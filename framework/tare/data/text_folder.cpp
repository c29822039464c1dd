// Reads folders of text files as sequences of bytes.
#include "tare/data/text_folder.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/class_splits.h"
#include "tare/data/datasets.h"
#include "tare/data/picture_kind.h"
#include "tare/data/text_bytes.h"
#include "tare/data/text_check.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 1> kExtensions{".txt"};
constexpr FileKind kText{
    .where = "data.text_folder", .extensions = kExtensions, .name = "text", .samples = "texts"};

void check(const TextFolderOptions& options) {
  if (options.length < 0)
    throw ConfigError("data.text_folder",
                      "length must be >= 0, got " + std::to_string(options.length));
}

/// Reads listed texts, of at most `left` bytes, and takes theirs from `left`. Samples are named by
/// their paths below `folder`.
DatasetPtr read_texts(const fs::path& folder, const ClassFolders& listing,
                      const TextFolderOptions& options, int64_t& left) {
  std::vector<Batch> samples;
  for (size_t i = 0; i < listing.files.size(); ++i) {
    const fs::path& file = listing.files[i];
    const std::string text = io::read_text(file, left);
    if (text.empty())
      throw FormatError("data.text_folder", file.string(), "text", "is empty: remove the file");
    left -= static_cast<int64_t>(text.size());
    Batch sample({{"text", bytes_of(text, options.length)}}, {});
    if (!listing.labels.empty())
      sample.targets.push_back({"label", at::scalar_tensor(listing.classes[i], at::kLong)});
    samples.push_back(std::move(sample));
  }
  return sample_dataset(std::move(samples), options.collate, listing.labels, listing.names(folder),
                        options.length);
}

}  // namespace

bool is_text_folder(const fs::path& folder) {
  if (holds_files(folder, kPictures)) return false;
  const std::vector<fs::path> subfolders = list_subfolders(folder, kText);
  if (subfolders.empty()) return !list_files(folder, kText).empty();
  return std::ranges::any_of(subfolders, [](const fs::path& f) { return holds_files(f, kText); });
}

bool has_text_splits(const fs::path& folder) { return !folder_splits(folder).empty(); }

std::vector<fs::path> text_files(const fs::path& folder) { return list_class_files(folder, kText); }

DatasetPtr text_folder(const fs::path& folder, const TextFolderOptions& options) {
  check(options);
  if (has_text_splits(folder))
    throw ConfigError("data.text_folder", "folder", "holds splits, in subfolders such as train",
                      "text_folder_splits(), or the folder of one split", folder.string());
  int64_t left = options.limit_bytes;
  return read_texts(folder, list_class_folders(folder, kText, true), options, left);
}

Splits text_folder_splits(const fs::path& folder, const TextFolderOptions& options) {
  check(options);
  if (!has_text_splits(folder))
    throw ConfigError("data.text_folder", "folder", "has no splits",
                      "the subfolder train, and valid or test beside it", folder.string());
  int64_t left = options.limit_bytes;
  Splits splits;
  for (const ClassSplit& split : list_class_splits(folder, kText, true))
    (split.name == "train"  ? splits.train
     : split.name == "test" ? splits.test
                            : splits.valid) = read_texts(folder, split.listing, options, left);
  return splits;
}

TextCheck check_text_folder(const DataOptions& o) {
  TextCheck check;
  for (const fs::path& file : text_files(o.folder)) {
    const auto add = [&](const std::string& problem) {
      check.problems.add({.path = file.string(), .problem = problem});
    };
    try {
      if (io::read_text(file, TextFolderOptions{}.limit_bytes).empty())
        add("is empty: remove the file");
    } catch (const IoError& error) {
      add(error.what());
    }
  }
  return check;
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found texts(const DataOptions& o, bool) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set text_folder",
                      "a folder of .txt files, one subfolder a class", "");
  const TextFolderOptions options{.length = o.length, .collate = collate_of_texts(o)};
  Found found = has_text_splits(o.folder) ? found_splits(text_folder_splits(o.folder, options), o)
                                          : Found{.data = text_folder(o.folder, options)};
  for (const auto& file : text_files(o.folder))
    found.files.push_back(file.lexically_relative(o.folder));
  found.description =
      format_count(static_cast<int64_t>(found.files.size())) + " texts of " + printable(o.folder);
  return found;
}

}  // namespace

void add_text_folder(Registry& all) {
  all.add("text_folder",
          "reads a folder of text files as bytes, with one subfolder a class, or without labels",
          [] {
            return Kind{.fields = {"folder", "length", "collate"}, .make = texts, .images = false};
          });
}

}  // namespace tare::datasets
