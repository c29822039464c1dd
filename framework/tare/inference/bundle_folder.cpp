// Finds the bundle in a folder, and describes a folder without one.
#include "tare/inference/bundle_folder.h"

#include <algorithm>
#include <vector>

#include "tare/base/error.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/safetensors.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhere = "bundle.open";
constexpr const char* kRecipe = "recipe.yaml";  // which each run has in its folder

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kRecipe, ignored);
}

/// Returns the entries of a folder that `keep` takes, by name.
template <class Keep>
std::vector<fs::path> entries(const fs::path& folder, Keep keep) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (keep(it->path())) found.push_back(it->path());
  if (error) throw IoError(kWhere, folder.string(), error.value());
  std::ranges::sort(found);
  return found;
}

/// Whether a file of any name begins as a bundle.
bool is_bundle(const fs::path& path) {
  if (!fs::is_regular_file(path)) return false;
  try {
    return checkpoint::SafeTensors::open(path).metadata().contains("tare");
  } catch (const FormatError&) {  // a file of another kind
    return false;
  }
}

std::string shown(const fs::path& path) { return printable(path.string(), 1000); }

/// Describes a folder without a bundle, and how to make a bundle of it.
std::string text_of(const fs::path& folder) {
  const std::string make = "`tare export " + shown(folder) + "` makes a bundle of it";
  if (checkpoint::exists(folder)) return "is a checkpoint and no bundle (a .tare file): " + make;
  if (!is_run(folder))
    return "has no bundle (a .tare file) in it, and " + other_folder_text(folder);
  const std::string run = "is the folder of a run without a bundle (a .tare file)";
  if (entries(folder, checkpoint::exists).empty())
    return run + " and without a checkpoint: " + run_again_text(folder);
  return run + ": " + make;
}

}  // namespace

std::string other_folder_text(const fs::path& folder) {
  const auto runs = entries(folder, is_run);
  if (!runs.empty()) return "holds runs: give one of them, such as " + shown(runs.front());
  return "is neither a run's folder nor a checkpoint: give a run's folder, such as runs/NAME";
}

std::string run_again_text(const fs::path& folder) {
  return "`tare run " + shown(folder / kRecipe) +
         " export=NAME.tare` makes the run again, with a bundle";
}

fs::path bundle_at(const fs::path& path) {
  std::error_code error;
  const fs::path extension = path.extension();
  if ((extension == ".yaml" || extension == ".yml") && fs::is_regular_file(path, error))
    throw ConfigError(kWhere, "'" + shown(path) + "' is a recipe and no bundle: `tare run " +
                                  shown(path) +
                                  " export=NAME.tare` trains its model and writes the bundle");
  if (extension == ".onnx" || extension == ".pt2" || extension == ".gguf")
    throw ConfigError(kWhere, "'" + shown(path) +
                                  "' is a file for other programs and no bundle: `tare inspect " +
                                  shown(path) + "` describes it");
  if (!fs::is_directory(path, error)) return path;
  auto bundles = entries(path, [](const fs::path& entry) {
    return entry.extension() == ".tare" && !fs::is_directory(entry);
  });
  if (bundles.empty() && is_run(path)) bundles = entries(path, is_bundle);
  if (bundles.size() == 1) return bundles.front();
  const std::string folder = '\'' + shown(path) + "' ";
  if (bundles.empty()) throw ConfigError(kWhere, folder + text_of(path));
  throw ConfigError(kWhere, folder + "has " + std::to_string(bundles.size()) +
                                " bundles (.tare files): name one of them, such as " +
                                shown(bundles.front()));
}

}  // namespace tare
