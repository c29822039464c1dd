// Lists folders of files, one subfolder for each class.
#include "tare/data/class_folders.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/parts.h"

namespace tare {

bool is_named(const std::filesystem::path& path, const FileKind& kind) {
  const std::string extension = lower_case(path.extension().string());
  return std::ranges::find(kind.extensions, extension) != kind.extensions.end();
}

namespace {

namespace fs = std::filesystem;

// Entries of a folder that `keep` takes, by name, without hidden ones.
template <class Keep>
std::vector<fs::path> entries(const fs::path& folder, const FileKind& kind, Keep keep) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().native().front() != '.' && keep(*it)) found.push_back(it->path());
  if (error) throw IoError(kind.where, folder.string(), error.value());
  std::sort(found.begin(), found.end());
  return found;
}

// A link that leads nowhere, or in a circle, is taken, so that reading it fails.
bool is_broken(const fs::directory_entry& entry) {
  std::error_code ignored;
  const fs::file_type type = entry.status(ignored).type();
  return type == fs::file_type::not_found || type == fs::file_type::none;
}

bool is_file(const fs::directory_entry& entry, const FileKind& kind) {
  std::error_code ignored;
  return is_named(entry.path(), kind) && (entry.is_regular_file(ignored) || is_broken(entry));
}

bool is_folder(const fs::directory_entry& entry, const FileKind& kind) {
  std::error_code ignored;
  if (entry.path().filename() == "__MACOSX") return false;  // of a ZIP archive
  return entry.is_directory(ignored) || (!is_named(entry.path(), kind) && is_broken(entry));
}

/// The files in a folder and below it, in bytewise order: those of a kind, and others.
struct FilesBelow {
  std::vector<fs::path> found, others;
};

/// Whether a folder is one of those above a path.
bool is_above(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(path.parent_path(), error);
  const auto [at, rest] = std::mismatch(folder.begin(), folder.end(), place.begin(), place.end());
  return at == folder.end();
}

// Hidden files and folders are skipped, and links to a folder above them.
FilesBelow files_below(const fs::path& folder, const FileKind& kind) {
  FilesBelow files;
  std::error_code error;
  constexpr auto kFollow = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator it(folder, kFollow, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    const bool hidden = it->path().filename().native().front() == '.';
    if (hidden && it->is_directory(ignored)) it.disable_recursion_pending();
    if (hidden) continue;
    if (it->is_symlink(ignored) && it->is_directory(ignored) &&
        is_above(fs::weakly_canonical(it->path(), ignored), it->path())) {
      log::warning_once(printable(it->path().string()) +
                        " is skipped, because the link leads to a folder above it");
      it.disable_recursion_pending();
      continue;
    }
    if (is_file(*it, kind)) {
      files.found.push_back(it->path());
    } else if (it->is_regular_file(ignored)) {
      files.others.push_back(it->path());
    }
  }
  if (error) throw IoError(kind.where, folder.string(), error.value());
  std::ranges::sort(files.found);
  std::ranges::sort(files.others);
  return files;
}

/// Warns of the skipped files of a folder; `kept`: which files are read.
void warn_of_skipped(const fs::path& folder, const std::vector<fs::path>& files,
                     const std::string& kept) {
  if (files.empty()) return;
  const bool one = files.size() == 1;
  const std::string first = printable(files.front().lexically_relative(folder).generic_string());
  log::warning_once(std::to_string(files.size()) + (one ? " file of " : " files of ") +
                    printable(folder.string()) + (one ? " is" : " are") +
                    " skipped, because only " + kept + " are read: " + first +
                    (one ? "" : ", ..."));
}

void warn_of_other_kinds(const fs::path& folder, const std::vector<fs::path>& others,
                         const FileKind& kind) {
  std::string kinds;
  for (size_t i = 0; i < kind.extensions.size(); ++i)
    kinds.append(i == 0                           ? ""
                 : i + 1 < kind.extensions.size() ? ", "
                                                  : " and ")
        .append(kind.extensions[i]);
  warn_of_skipped(folder, others, kinds + " files");
}

void warn_of_other_files(const fs::path& folder, const std::vector<fs::path>& subfolders,
                         const FileKind& kind) {
  std::vector<fs::path> others = list_files(folder, kind, true);
  for (const fs::path& subfolder : subfolders)
    std::ranges::copy(list_files(subfolder, kind, true), std::back_inserter(others));
  warn_of_other_kinds(folder, others, kind);
}

/// Warns of files of the kind below the folders of the classes, where none is read.
void warn_of_deep_files(const fs::path& folder, const std::vector<fs::path>& subfolders,
                        const FileKind& kind) {
  std::vector<fs::path> deep;
  for (const fs::path& subfolder : subfolders)
    for (const fs::path& below : list_subfolders(subfolder, kind))
      std::ranges::move(files_below(below, kind).found, std::back_inserter(deep));
  warn_of_skipped(folder, deep, "files directly in the folder of a class");
}

void warn_of_odd_folder(const fs::path& folder, const FileKind& kind, size_t classes) {
  const size_t beside = list_files(folder, kind).size();
  if (beside > 0)
    log::warning_once(std::to_string(beside) + " " + kind.samples + " of " +
                      printable(folder.string()) +
                      " are skipped: they lie beside the folders of the classes");
  if (classes == 1)
    log::warning_once(
        printable(folder.string()) +
        " has one class: a model that is trained on it always answers with that class");
}

}  // namespace

std::vector<std::string> ClassFolders::names(const fs::path& folder) const {
  std::vector<std::string> all;
  for (const fs::path& file : files)
    all.push_back(file.lexically_relative(folder).generic_string());
  return all;
}

at::Tensor ClassFolders::targets() const {
  if (labels.empty()) return {};
  at::Tensor target = at::empty({static_cast<int64_t>(classes.size())}, at::kLong);
  std::copy(classes.begin(), classes.end(), target.mutable_data_ptr<int64_t>());
  return target;
}

std::vector<fs::path> list_subfolders(const fs::path& folder, const FileKind& kind) {
  return entries(folder, kind, [&](const auto& entry) { return is_folder(entry, kind); });
}

std::vector<fs::path> list_files(const fs::path& folder, const FileKind& kind, bool others) {
  return entries(folder, kind, [&](const auto& entry) {
    std::error_code ignored;
    if (!others) return is_file(entry, kind);
    return !is_named(entry.path(), kind) && entry.is_regular_file(ignored);
  });
}

ClassFolders list_class_folders(const fs::path& folder, const FileKind& kind, bool warn) {
  ClassFolders listing;
  const auto subfolders = list_subfolders(folder, kind);
  if (subfolders.empty())
    listing.files = list_files(folder, kind);
  else if (warn)
    warn_of_odd_folder(folder, kind, subfolders.size());
  const std::string name = kind.name;
  for (const fs::path& subfolder : subfolders) {
    const std::vector<fs::path> files = list_files(subfolder, kind);
    if (files.empty())
      throw ConfigError(kind.where, "folder",
                        "has a class without " + name + " files, and no others are read",
                        "add some to " + printable(subfolder.string()) + ", or remove that folder",
                        folder.string());
    listing.files.insert(listing.files.end(), files.begin(), files.end());
    listing.classes.insert(listing.classes.end(), files.size(),
                           static_cast<int64_t>(listing.labels.size()));
    listing.labels.push_back(subfolder.filename().string());
  }
  if (listing.files.empty())
    throw ConfigError(kind.where, "folder", "has no subfolder and no " + name + " file",
                      "one subfolder of " + name + " files for each class, such as " +
                          printable((folder / "cat" / "1").string()) +
                          std::string(kind.extensions.front()) + ", or " + kind.samples +
                          " without labels in the folder itself, to predict on",
                      folder.string());
  if (warn) warn_of_other_files(folder, subfolders, kind);
  if (warn) warn_of_deep_files(folder, subfolders, kind);
  return listing;
}

bool holds_files(const fs::path& folder, const FileKind& kind) {
  return !files_below(folder, kind).found.empty();
}

std::vector<fs::path> list_files_below(const fs::path& folder, const FileKind& kind) {
  FilesBelow files = files_below(folder, kind);
  if (files.found.empty())
    throw ConfigError(kind.where, "there is no " + std::string(kind.name) +
                                      " file in the folder '" + printable(folder.string()) + "'");
  warn_of_other_kinds(folder, files.others, kind);
  return std::move(files.found);
}

}  // namespace tare
