// Reads lists of pictures.
#include "tare/data/image_list.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/scalar.h"
#include "tare/data/datasets.h"
#include "tare/data/float_spread.h"
#include "tare/data/image_parts.h"
#include "tare/data/picture_list.h"
#include "tare/data/table_head.h"
#include "tare/transform/number_hint.h"
#include "tare/transform/row_coding.h"
#include "tare/transform/table_text.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImageList = "data.image_list";
constexpr int64_t kMostBytes = int64_t{2} << 30;
constexpr size_t kMostColumns = 20;  // in a message

[[noreturn]] void refuse(const fs::path& file, int64_t line, const std::string& problem) {
  throw FormatError(kImageList, file.string(), "line " + std::to_string(line), problem);
}

/// Returns the place of a column of a table; -1: it is not there.
int64_t column_of(const TableText& table, const std::string& name) {
  const auto found = std::ranges::find(table.names(), name);
  return found == table.names().end() ? -1 : found - table.names().begin();
}

/// Throws FormatError for a class that no picture of the training split has.
void check_label(const fs::path& file, const ListedPicture& picture,
                 const std::vector<std::string>& labels) {
  if (std::ranges::binary_search(labels, picture.label)) return;
  refuse(file, picture.line,
         "has the class '" + printable(picture.label) + "', which no picture of train has" +
             did_you_mean(picture.label, labels));
}

/// Returns float32 [pictures, columns].
at::Tensor numbers_of(const std::vector<const ListedPicture*>& pictures) {
  const auto columns = static_cast<int64_t>(pictures.front()->numbers.size());
  at::Tensor all = at::empty({static_cast<int64_t>(pictures.size()), columns}, at::kFloat);
  float* out = all.mutable_data_ptr<float>();
  for (const ListedPicture* picture : pictures)
    for (const double number : picture->numbers) *out++ = static_cast<float>(number);
  return all;
}

/// Throws ConfigError for a column of numbers from which a model learns nothing, or warns, where it
/// is one of labels.
void check_numbers(const fs::path& file, const std::vector<ListedPicture>& pictures,
                   const std::vector<std::string>& targets) {
  const bool labels = are_labels(pictures);
  for (size_t i = 0; i < targets.size(); ++i) {
    std::vector<double> column;
    for (const ListedPicture& picture : pictures) column.push_back(picture.numbers[i]);
    const auto refuse_column = [&](const std::string& problem) {
      throw ConfigError("data.make", "targets",
                        "has the column '" + printable(targets[i]) + "' of " +
                            printable(file.string()) + ", which " + problem,
                        "columns of numbers that differ", targets[i]);
    };
    const auto [least, most] = std::ranges::minmax(column);
    const std::string value = config::number_text(least);
    if (least == most && labels && targets.size() > 1)
      log::warning_once(printable(file.string()) + ": the column '" + printable(targets[i]) +
                        "' is " + value + " in all rows: a model learns nothing from it");
    else if (least == most)
      refuse_column("has one value only, " + value);
    if (const std::string lost = spread_problem(column); !lost.empty()) refuse_column(lost);
  }
}

std::vector<ImagePart> parts_of(const fs::path& file, const std::vector<std::string>& targets) {
  const std::vector<ListedPicture> pictures = list_pictures(file, targets);
  if (!targets.empty()) check_numbers(file, pictures, targets);
  const bool has_splits = !pictures.front().split.empty();
  const bool has_labels = !pictures.front().label.empty();
  if (has_splits && std::ranges::find(pictures, "train", &ListedPicture::split) == pictures.end())
    refuse(file, 1, "begins a list in which no row has the split train; give some rows that split");
  std::set<std::string> classes;
  for (const ListedPicture& picture : pictures)
    if (has_labels && (!has_splits || picture.split == "train")) classes.insert(picture.label);
  const std::vector<std::string> labels =
      are_labels(pictures) ? targets : std::vector(classes.begin(), classes.end());
  std::vector<ImagePart> parts;
  for (const char* name : {"train", "valid", "test"}) {
    ImagePart part{.name = name};
    part.listing.labels = labels;
    std::vector<const ListedPicture*> rows;
    for (const ListedPicture& picture : pictures) {
      if (has_splits ? picture.split != name : part.name != "train") continue;
      std::error_code ignored;  // what cannot be looked at is reported as missing
      if (!fs::is_regular_file(picture.path, ignored))
        refuse(file, picture.line,
               "names the picture " + printable(picture.path.string()) +
                   ", which is not there; paths are relative to the folder of the list");
      part.listing.files.push_back(picture.path);
      rows.push_back(&picture);
      if (!has_labels) continue;
      check_label(file, picture, labels);
      part.listing.classes.push_back(std::ranges::lower_bound(labels, picture.label) -
                                     labels.begin());
    }
    if (rows.empty()) continue;
    if (!targets.empty()) part.numbers = numbers_of(rows);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

bool is_picture_list(const fs::path& file) { return head_names(file, "path"); }

namespace {

/// Returns the places of the columns of numbers.
std::vector<size_t> places_of(const fs::path& file, const TableText& table,
                              const std::vector<std::string>& targets) {
  std::vector<size_t> places;
  for (const std::string& name : targets) {
    const int64_t place = column_of(table, name);
    if (place < 0)
      refuse(file, 1,
             "has no column '" + printable(name) + "', which is a target" +
                 did_you_mean(name, table.names()) + "; there are " +
                 listed(table.names(), kMostColumns));
    if (name == "path" || name == "split" || std::ranges::count(targets, name) > 1)
      throw ConfigError("data.make", "targets", "must be columns of numbers, each once",
                        "columns other than path and split", name);
    places.push_back(static_cast<size_t>(place));
  }
  return places;
}

/// Holds the places of a list's columns; -1: the list lacks the column.
struct Places {
  int64_t path = -1, label = -1, split = -1;
  std::vector<size_t> numbers{};
};

/// Reads a split, and returns what is wrong with it; empty: nothing is.
std::string read_split(const std::string& text, std::string& split) {
  split = text == "val" ? "valid" : text;
  for (const char* known : {"train", "valid", "test"})
    if (split == known) return {};
  return "has the split '" + printable(text) + "'; allowed are train, valid (or val) and test";
}

/// Reads a number, and returns what is wrong with it; empty: nothing is.
std::string read_number(std::string_view field, const std::string& column, double& number) {
  const auto value = number_of(field);
  number = value.value_or(0);
  if (value) return {};
  return "has '" + printable(field, 50) + "' in the column '" + printable(column) +
         "', where a number is needed: " +
         (is_missing(field, {}) ? "write one, or remove the row" : number_hint(field));
}

/// Reads a row, and returns what is wrong with it; empty: nothing is.
std::string read_row(const TableText& table, int64_t row, const Places& places,
                     ListedPicture& picture) {
  const auto field = [&](int64_t column) {
    return column < 0 ? std::string() : std::string(table.field(row, static_cast<size_t>(column)));
  };
  const fs::path list = table.path();
  picture = {.line = table.line(row),
             .path = list.parent_path() / field(places.path),
             .label = field(places.label)};
  if (field(places.path).empty()) return "has no path";
  if (places.label >= 0 && picture.label.empty())
    return "has no label; give every picture one, or remove the column";
  std::string problem;
  if (places.split >= 0) problem = read_split(field(places.split), picture.split);
  for (size_t i = 0; i < places.numbers.size() && problem.empty(); ++i)
    problem = read_number(table.field(row, places.numbers[i]), table.names()[places.numbers[i]],
                          picture.numbers.emplace_back());
  return problem;
}

}  // namespace

bool are_labels(const std::vector<ListedPicture>& pictures) {
  return !pictures.front().numbers.empty() &&
         std::ranges::all_of(pictures, [](const ListedPicture& picture) {
           return std::ranges::all_of(picture.numbers,
                                      [](double number) { return number == 0 || number == 1; });
         });
}

std::string columns_text(const fs::path& file) {
  TableFindings ignored;  // of lines
  const TableText table = read_table(file, {.limit_bytes = kMostBytes}, &ignored);
  return "there are " + listed(table.names(), kMostColumns);
}

std::vector<ListedPicture> list_pictures(const fs::path& file,
                                         const std::vector<std::string>& targets,
                                         TableFindings* findings) {
  const TableText table = read_table(file, {.limit_bytes = kMostBytes}, findings);
  const Places places{.path = column_of(table, "path"),
                      .label = targets.empty() ? column_of(table, "label") : -1,
                      .split = column_of(table, "split"),
                      .numbers = places_of(file, table, targets)};
  if (places.path < 0)
    refuse(file, 1,
           "has no column `path`; there are " + listed(table.names(), kMostColumns) +
               ": name the column of the paths `path` in the first row, and those of classes and "
               "splits, where there are some, `label` and `split`; data.targets names columns of "
               "numbers");
  std::vector<ListedPicture> pictures;
  std::set<fs::path> seen;
  for (int64_t row = 0; row < table.rows(); ++row) {
    ListedPicture picture;
    std::string problem = read_row(table, row, places, picture);
    if (problem.empty() && !seen.insert(picture.path).second)
      problem = "names " + printable(table.field(row, static_cast<size_t>(places.path))) +
                " again; give each picture once";
    if (problem.empty()) {
      pictures.push_back(std::move(picture));
      continue;
    }
    if (!findings) refuse(file, picture.line, problem);
    findings->add({.path = file.string(), .line = picture.line, .problem = std::move(problem)});
  }
  return pictures;
}

Splits image_list(const fs::path& file, const ImageFolderOptions& options,
                  const std::vector<std::string>& targets) {
  return read_image_splits(file.parent_path(), parts_of(file, targets), options);
}

}  // namespace tare

namespace tare::datasets {
namespace {

constexpr size_t kMostNames = 8;  // in a description

Found list_of_pictures(const DataOptions& o, bool) {
  if (o.file.empty())
    throw ConfigError("data.make", "file", "is needed by the data set image_list",
                      "a CSV, TSV or JSON lines file with the columns path and label", "");
  const std::filesystem::path folder = std::filesystem::path(o.file).parent_path();
  std::vector<ImagePart> parts = parts_of(o.file, o.targets);
  std::vector<std::filesystem::path> files;
  for (const ImagePart& part : parts)
    for (const auto& file : part.listing.files)
      files.push_back(folder.empty() ? file : file.lexically_relative(folder));
  Splits splits = read_image_splits(folder, std::move(parts),
                                    {.channels = o.channels,
                                     .height = o.size,
                                     .width = o.size,
                                     .fit = o.fit,
                                     .cache_bytes = o.cache});
  if (splits.test && o.test != DataOptions{}.test)
    throw ConfigError("data.make", "test", "has no part in a list that has the split test",
                      "omit it", config::number_text(o.test));
  Found found{.data = std::move(splits.train),
              .valid = std::move(splits.valid),
              .test = std::move(splits.test),
              .files = std::move(files)};
  found.description =
      format_count(static_cast<int64_t>(found.files.size())) + " images of " + printable(o.file);
  if (!o.targets.empty())
    found.description += std::string(found.data->labels().empty() ? " (numbers " : " (labels ") +
                         listed(o.targets, kMostNames) + ")";
  return found;
}

}  // namespace

void add_image_list(Registry& all) {
  all.add("image_list",
          "reads PNG, JPEG and WebP images that a table lists with their labels or numbers", [] {
            return Kind{{"file", "targets", "channels", "cache"}, list_of_pictures};
          });
}

}  // namespace tare::datasets
