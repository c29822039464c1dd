// Lists folders of splits, and compares their classes.
#include "tare/data/class_splits.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/scalar.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

/// Throws ConfigError unless a split has the classes of `train`.
void check_classes(const fs::path& folder, const FileKind& kind, const ClassSplit& train,
                   const ClassSplit& other) {
  const auto& theirs = train.listing.labels;
  const auto& own = other.listing.labels;
  if (theirs == own) return;
  const auto refuse = [&](const std::string& problem, const std::string& allowed) {
    throw ConfigError(kind.where, "folder", problem, allowed, folder.string());
  };
  const std::string samples = kind.samples;
  if (theirs.empty() != own.empty())
    refuse("has classes in " + (own.empty() ? train.name : other.name) + ", and " + samples +
               " without classes in " + (own.empty() ? other.name : train.name),
           "one subfolder for each class in every split; keep " + samples +
               " to predict on elsewhere");
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

void warn_of_other_folders(const fs::path& folder, const FileKind& kind,
                           const std::vector<ClassSplit>& splits) {
  for (const fs::path& subfolder : list_subfolders(folder, kind)) {
    const std::string name = subfolder.filename().string();
    if (std::ranges::find(splits, name, &ClassSplit::name) == splits.end())
      log::warning_once("the folder " + printable(subfolder.string()) +
                        " is skipped: beside train, only valid (or val) and test are splits");
  }
}

}  // namespace

std::vector<std::string> folder_splits(const fs::path& folder) {
  std::vector<std::string> found;
  const auto take = [&](const char* name) {
    std::error_code ignored;  // what cannot be looked at is no folder
    const bool is_there = fs::is_directory(folder / name, ignored);
    if (is_there) found.emplace_back(name);
    return is_there;
  };
  if (!take("train")) return {};
  if (!take("valid")) take("val");
  take("test");
  return found.size() > 1 ? found : std::vector<std::string>();
}

std::vector<ClassSplit> list_class_splits(const fs::path& folder, const FileKind& kind, bool warn) {
  std::vector<ClassSplit> splits;
  for (const std::string& name : folder_splits(folder))
    splits.push_back({name, list_class_folders(folder / name, kind, warn)});
  for (const ClassSplit& split : splits) check_classes(folder, kind, splits.front(), split);
  if (warn && !splits.empty()) warn_of_other_folders(folder, kind, splits);
  return splits;
}

std::vector<fs::path> list_class_files(const fs::path& folder, const FileKind& kind) {
  if (folder_splits(folder).empty()) return list_class_folders(folder, kind, false).files;
  std::vector<fs::path> files;
  for (const ClassSplit& split : list_class_splits(folder, kind, false))
    files.insert(files.end(), split.listing.files.begin(), split.listing.files.end());
  return files;
}

namespace datasets {

Found found_splits(Splits splits, const DataOptions& options) {
  if (splits.test && options.test != DataOptions{}.test)
    throw ConfigError("data.make", "test", "has no part in a folder that has the subfolder test",
                      "omit it", config::number_text(options.test));
  return {.data = std::move(splits.train),
          .valid = std::move(splits.valid),
          .test = std::move(splits.test)};
}

}  // namespace datasets
}  // namespace tare
