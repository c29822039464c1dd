// Reads folders of text files as sequences of bytes.
#include "tare/data/text_folder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/class_folders.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kText{
    .where = "data.text_folder", .extension = ".txt", .name = "text", .samples = "texts"};

at::Tensor bytes_of(const std::string& text, int64_t length) {
  at::Tensor tokens = at::empty({length}, at::kLong);
  int64_t* token = tokens.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < length; ++i)
    token[i] = static_cast<unsigned char>(text[static_cast<size_t>(i)]);
  return tokens;
}

}  // namespace

std::vector<fs::path> text_files(const fs::path& folder) {
  return list_class_folders(folder, kText, false).files;
}

DatasetPtr text_folder(const fs::path& folder, const TextFolderOptions& options) {
  if (options.length < 0)
    throw ConfigError("data.text_folder",
                      "length must be >= 0, got " + std::to_string(options.length));
  const ClassFolders listing = list_class_folders(folder, kText, true);
  std::vector<Batch> samples;
  int64_t left = options.limit_bytes;
  for (size_t i = 0; i < listing.files.size(); ++i) {
    const fs::path& file = listing.files[i];
    const std::string text = io::read_text(file, left);
    if (text.empty())
      throw FormatError("data.text_folder", file.string(), "text", "is empty: remove the file");
    left -= static_cast<int64_t>(text.size());
    const auto whole = static_cast<int64_t>(text.size());
    const int64_t length = options.length > 0 ? std::min(options.length, whole) : whole;
    Batch sample({{"text", bytes_of(text, length)}}, {});
    if (!listing.labels.empty())
      sample.targets.push_back({"label", at::scalar_tensor(listing.classes[i], at::kLong)});
    samples.push_back(std::move(sample));
  }
  return sample_dataset(std::move(samples), options.collate, listing.labels, listing.names(folder),
                        options.length);
}

}  // namespace tare
