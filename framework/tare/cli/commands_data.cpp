// `tare ls` and `tare data`: lists what has a name, fetches and makes data sets.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/table.h"
#include "tare/callback/registry.h"
#include "tare/cli/command.h"
#include "tare/config/scalar.h"
#include "tare/data/collate.h"
#include "tare/data/datasets.h"
#include "tare/launch/executors.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/model/registry.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"
#include "tare/search/pruners.h"
#include "tare/search/samplers.h"

namespace tare::cli {
namespace {

// The first comment of a recipe file describes what it shows.
std::string first_comment(const std::filesystem::path& file) {
  const std::string text = io::read_text(file);
  const std::string line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : "";
}

/// Returns the recipes of the checkout that is the current folder, else those of the program.
std::filesystem::path recipe_folder() {
  const std::filesystem::path here = "recipes/configs";
  if (std::filesystem::is_directory(here)) return here;
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto with_program = program.parent_path().parent_path() / "share" / "tare" / "recipes";
  if (std::filesystem::is_directory(with_program)) return with_program;
  throw ConfigError("tare ls", "no recipes are here: neither " +
                                   printable(std::filesystem::absolute(here).string()) + " nor " +
                                   printable(with_program.string()) +
                                   " is a folder; call tare ls recipes in a checkout of Tare, or "
                                   "install it with its recipes (cmake --install)");
}

std::vector<ListEntry> recipes() {
  std::vector<ListEntry> found;
  const std::filesystem::path root = recipe_folder();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".yaml")
      found.push_back({entry.path().string(), first_comment(entry.path())});
  }
  std::ranges::sort(found, {}, &ListEntry::name);
  return found;
}

// The options of a registry's entry with their defaults, behind its summary.
std::string options_of(const config::EntryInfo& info) {
  std::string text;
  for (const auto& option : info.defaults.entries)
    text += (text.empty() ? "; options: " : ", ") + option.key +
            (option.value.kind == config::Kind::scalar ? '=' + option.value.text : "");
  return text;
}

std::vector<ListEntry> rows_of(const std::vector<config::EntryInfo>& infos) {
  std::vector<ListEntry> rows;
  for (const auto& info : infos) rows.push_back({info.name, info.summary + options_of(info)});
  return rows;
}

/// Rows whose options are fields of a struct that all entries share. `own`: those of an entry.
template <class Own>
std::vector<ListEntry> rows_with(std::vector<config::EntryInfo> infos, const Own& own) {
  for (auto& info : infos) {
    const config::Node of_entry = std::exchange(info.defaults, own(info.name));
    if (!of_entry.entries.empty()) info.defaults.set("options", of_entry);
  }
  return rows_of(infos);
}

config::Node optimizer_options(const std::string& name) {
  const OptimizerKind kind = optimizers::registry().make(name);
  const OptimizerOptions standard;
  config::Node options = config::Node::map();
  const auto add = [&](const char* key, double value) {
    options.set(key, config::Node::scalar(config::number_text(value)));
  };
  add("lr", standard.lr);
  add("weight_decay", standard.weight_decay);
  if (kind.momentum) add("momentum", *kind.momentum);
  if (kind.beta2) add("beta2", *kind.beta2);
  if (kind.eps) add("eps", *kind.eps);
  if (name == "sgd") options.set("nesterov", config::Node::scalar("false"));
  options.set("decay_norm_and_bias", config::Node::scalar("false"));
  return options;
}

config::Node data_options(const std::string& name) {
  const config::Node standard = config::to_node(DataOptions{});
  config::Node options = config::Node::map();
  for (const auto& field : datasets::fields_of(name)) options.set(field, *standard.find(field));
  if (options.find("style")) options.set("style", config::Node::string(GeneratedDigits{}.style));
  return options;
}

config::Node schedule_options(const std::string& name) {
  const config::Node standard = config::to_node(Schedule{});
  config::Node options = config::Node::map();
  if (name == "one_cycle") return *standard.find("one_cycle");
  options.set("warmup", *standard.find("warmup"));
  if (name != "constant") options.set("final_factor", *standard.find("final_factor"));
  return options;
}

// Maps each argument of `tare ls` to the function that returns its list.
const std::map<std::string, std::function<std::vector<ListEntry>()>>& lists() {
  static const std::map<std::string, std::function<std::vector<ListEntry>()>> table{
      {"callbacks", [] { return rows_of(callbacks::registry().infos()); }},
      {"collates", [] { return rows_of(collates::registry().infos()); }},
      {"datasets", [] { return rows_with(datasets::registry().infos(), data_options); }},
      {"executors", [] { return rows_of(launch::executors::registry().infos()); }},
      {"losses", [] { return rows_of(losses::registry().infos()); }},
      {"metrics", [] { return rows_of(metrics::registry().infos()); }},
      {"models", [] { return rows_of(models::infos()); }},
      {"optimizers", [] { return rows_with(optimizers::registry().infos(), optimizer_options); }},
      {"pruners", [] { return rows_of(search::pruners::registry().infos()); }},
      {"recipes", recipes},
      {"samplers", [] { return rows_of(search::samplers::registry().infos()); }},
      {"schedules", [] { return rows_with(schedules::registry().infos(), schedule_options); }},
      {"transforms", [] { return rows_of(transforms::registry().infos()); }}};
  return table;
}

int64_t count_of(const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ConfigError("tare data", "--count must be a whole number, got '" + printable(text) + "'");
  }
  return count;
}

}  // namespace

int list_command(const Arguments& arguments) {
  const std::string& what = arguments.positional().front();
  const auto list = lists().find(what);
  if (list == lists().end()) {
    std::vector<std::string> known;
    for (const auto& [name, rows] : lists()) known.push_back(name);
    throw ConfigError("tare ls", "there are " + listed(known) + " to list, got '" +
                                     printable(what) + "'" + did_you_mean(what, known));
  }
  std::cout << text_list(list->second(), 0, width_for(std::cout));
  return kSuccess;
}

int data_command(const Arguments& arguments) {
  const std::string& verb = arguments.positional()[0];
  const std::string& name = arguments.positional()[1];
  if (verb == "fetch") {
    std::cout << datasets::fetch(name).string() << '\n';
    return kSuccess;
  }
  if (verb != "make")
    throw ConfigError("tare data", "there are fetch and make, got '" + printable(verb) + "'" +
                                       did_you_mean(verb, {"fetch", "make"}));
  GeneratedDigits options;
  if (arguments.has("count")) options.count = count_of(arguments.get("count"));
  if (arguments.has("style")) options.style = arguments.get("style");
  const std::filesystem::path folder =
      arguments.get("out", (datasets::cache_folder() / name).string());
  const auto make = arguments.has("png") ? datasets::make_png_files : datasets::make_files;
  for (const auto& file : make(name, folder, options)) std::cout << file.string() << '\n';
  return kSuccess;
}

}  // namespace tare::cli
