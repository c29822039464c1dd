// Lists and checks the names of the files in a run's folder.
#include "tare/recipe/file_names.h"

#include <array>
#include <map>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/leftovers.h"
#include "tare/callback/autosave.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/resume.h"
#include "tare/recipe/target_metrics.h"
#include "tare/report/live.h"
#include "tare/report/run_failure.h"
#include "tare/report/worst_rows.h"

namespace tare {
namespace {

// The files of a run's folder, and whose they are.
class Names {
 public:
  explicit Names(const RecipeOptions& recipe) : recipe_(recipe) {
    for (const char* name :
         {"recipe.yaml", "report.json", "report.html", "run_data.json", "run_data.csv",
          "history.json", "trial.json", "timeline.csv", "trace.json", "snapshot.pickle",
          "peak.folded", report::kWorstRowsFile})
      own(name);
    own(report::kLiveFile);
    own(report::kFailureFile);
    own(recipe.name + ".log");
    own(recipe.name + ".err");
    own_plots("loss");
    for (const auto& metric : metric_columns(recipe)) own_plots(metric);
    for (const auto& name : automatic_checkpoints()) own(name);
    for (size_t i = 0; i < recipe.phases.size(); ++i)
      if (!recipe.phases[i].best.empty()) own(best_checkpoint(i));
  }

  /// Claims a name in the folder.
  void claim(const NamedFile& file) {
    // A file or folder that is written under another name first must not have that of another.
    for (const char* suffix : kSuffixes) {
      const auto [found, is_new] = owners_.emplace(file.name + suffix, file.owner);
      if (is_new) continue;
      throw ConfigError(
          recipe_.file.place(file.key), file.key,
          "would be '" + file.name + suffix + "' in the run's folder, which is " + found->second,
          "another name", file.name);
    }
    const std::string suffix(io::leftover_suffix(file.name));
    if (!suffix.empty())
      throw ConfigError(
          recipe_.file.place(file.key), file.key,
          "ends in " + suffix + ", which stands for what a save that was cut off leaves behind",
          "another name", file.name);
  }

 private:
  static constexpr std::array kSuffixes{"", ".partial", ".old"};

  /// Claims a file that the run writes for every recipe.
  void own(const std::string& name) {
    for (const char* suffix : kSuffixes) owners_.emplace(name + suffix, "a file of the run itself");
  }

  /// Claims the plots of a figure, which a sweep makes.
  void own_plots(const std::string& figure) {
    for (const char* type : {".svg", ".png"}) own(figure + type);
  }

  const RecipeOptions& recipe_;
  std::map<std::string, std::string> owners_;
};

void add_phase(const RecipeOptions& recipe, size_t index, std::vector<NamedFile>& files) {
  const std::string number = phase_number(index), key = "phases." + std::to_string(index);
  const std::string name = name_of(recipe, index), save = recipe.phases[index].save;
  files.push_back({name + ".csv", key + ".name", "the table of " + number});
  files.push_back({name + ".steps.csv", key + ".name", "the steps of " + number});
  if (rate_of(recipe, recipe.phases[index]).search())
    files.push_back({name + ".lr_find.csv", key + ".name", "the search for a rate of " + number});
  if (!save.empty()) files.push_back({save, key + ".save", "the checkpoint of " + number});
}

/// Returns the epochs of all phases together; of a phase that steps, samples or the clock end, so
/// many that hardly one has more.
int64_t most_epochs(const RecipeOptions& recipe) {
  constexpr int64_t kUnknown = 1000;
  int64_t all = 0;
  for (const auto& phase : recipe.phases) {
    const int64_t epochs = duration_of(phase).epochs;
    all += epochs > 0 ? epochs : kUnknown;
  }
  return all;
}

/// `epochs`: of all phases together, by which checkpoints of epochs are numbered.
void add_callbacks(const std::vector<ChosenCallback>& callbacks, int64_t epochs,
                   std::vector<NamedFile>& files) {
  for (const ChosenCallback& one : callbacks) {
    const CallbackFacts facts = one.callback->facts();
    const std::string owner = "a file of the callback " + one.callback->name();
    for (const auto& file : facts.files) files.push_back({file, one.place_of(file), owner});
    for (const auto& prefix : facts.prefixes)
      for (int64_t i = 1; i <= epochs; ++i)
        files.push_back({prefix + std::to_string(i), one.path, owner});
  }
}

}  // namespace

std::vector<NamedFile> named_files(const RecipeOptions& recipe) {
  std::vector<NamedFile> files;
  for (size_t i = 0; i < recipe.phases.size(); ++i) add_phase(recipe, i, files);
  const int64_t epochs = most_epochs(recipe);
  add_callbacks(make_callbacks(recipe), epochs, files);
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    add_callbacks(make_callbacks(recipe, i), epochs, files);
  const std::string bundle = export_name(recipe);
  if (!bundle.empty()) files.push_back({bundle, "export", "the bundle"});
  for (size_t i = 0; i < recipe.export_formats.size(); ++i) {
    const std::string &format = recipe.export_formats[i], file = export_name(recipe, format);
    const std::string key = "export_formats." + std::to_string(i);
    files.push_back({file, key, "the " + format + " file"});
    if (format == "onnx") files.push_back({file + ".data", key, "the weights of the onnx file"});
  }
  return files;
}

std::vector<std::string> result_names(const RecipeOptions& recipe) {
  std::vector<std::string> names;
  for (const auto& file : named_files(recipe)) names.push_back(file.name);
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    if (!recipe.phases[i].best.empty()) names.push_back(best_checkpoint(i));
  return names;
}

std::string best_checkpoint(size_t phase) { return "best-" + std::to_string(phase); }

void check_file_names(const RecipeOptions& recipe) {
  Names names(recipe);
  for (const auto& file : named_files(recipe)) names.claim(file);
}

}  // namespace tare
