// Holds the families of models by name, and builds from them.
#include "tare/model/registry.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
#include "tare/config/changed.h"
#include "tare/config/node.h"
#include "tare/model/first_weights.h"

namespace tare {

void from_node(const config::Node& node, RenameRules& value) {
  if (node.kind != config::Kind::map)
    throw ConfigError(node.source, "",
                      "must be a mapping of beginnings of names to what takes their place", "",
                      config::describe(node));
  value.rules.clear();
  for (const config::Entry& entry : node.entries) {
    if (entry.value.kind != config::Kind::scalar)
      throw ConfigError(entry.value.source, entry.key, "must be text, '' for nothing", "",
                        config::describe(entry.value));
    value.rules.emplace(entry.key, entry.value.text);
  }
}

config::Node to_node(const RenameRules& value) {
  config::Node node = config::Node::map();
  for (const auto& [beginning, other] : value.rules)
    node.set(beginning, config::Node::string(other));
  return node;
}

}  // namespace tare

namespace tare::models {

void add_entries(Registry& all);  // CMake makes it from the list in models/CMakeLists.txt

namespace {

constexpr int64_t kMostValues = int64_t{1} << 32;  // of a sample

std::vector<std::string> taken_by(const Family& family) {
  std::vector<std::string> taken{"classes", "sample_shape", "weights", "rename", "options"};
  taken.insert(taken.end(), family.options.begin(), family.options.end());
  return taken;
}

// A field that the family does not take must be at its default.
void check_fields(const Family& family, const ModelOptions& options) {
  const std::vector<std::string> taken = taken_by(family);
  for (const auto& field : config::changed_fields(options))
    if (std::ranges::find(taken, field) == taken.end())
      throw ConfigError("models.make", field, "is not an option of the model '" + family.name + "'",
                        listed(taken), {});
}

// An earlier Tare reads the options of a family that has none of its own. What is built has no
// weights to rename.
config::Node spec_of(const ModelOptions& options) {
  config::Node node = config::to_node(options);
  const bool has_own = options.options != config::OwnOptions{};
  std::erase_if(node.entries, [has_own](const config::Entry& each) {
    return each.key == "rename" || (each.key == "options" && !has_own);
  });
  return node;
}

/// Holds the programs that this process runs as parts of models, by the names of their files.
struct Trusted {
  std::mutex mutex;
  std::set<std::string> files;
};
Trusted& trusted() {
  static Trusted all;
  return all;
}

/// Throws ConfigError if the model runs a program that nobody trusts here.
void require_trust(const std::string& name, const ModelOptions& options) {
  const std::string program = registry().make(name, options.options).program;
  if (program.empty()) return;
  const std::lock_guard lock(trusted().mutex);
  if (!trusted().files.contains(program))
    throw ConfigError("models.make",
                      "the model '" + name + "' runs the program " + printable(program) +
                          ", which is not trusted here: if you know where that file comes from, "
                          "give --trust " +
                          printable(program) + ", or call tare::models::trust_program()");
}

ModelOptions options_of(const ModelSpec& spec) {
  return config::read<ModelOptions>(config::parse_text(spec.options, "model options"));
}

}  // namespace

Registry& registry() {
  static Registry all("model", add_entries);
  return all;
}

void add(Registry& all, Family family) {
  const std::string name = family.name, summary = family.summary;
  all.add(name, summary, [family = std::move(family)] { return family; });
}

void add(Family family) { add(registry(), std::move(family)); }

void add(const std::string& name, std::function<Model(int64_t classes)> factory) {
  add(name, "computes what the program has added", std::move(factory));
}

void add(const std::string& name, std::string summary,
         std::function<Model(int64_t classes)> factory) {
  add(Family{.name = name,
             .summary = std::move(summary),
             .sample_shape = {},
             .options = {},
             .head = "",
             .make = [factory = std::move(factory)](const ModelOptions& o) {
               return factory(o.classes);
             }});
}

Family family(const std::string& name) {
  if (registry().contains(name)) {
    Family found = registry().make(name);
    found.name = name;
    return found;
  }
  throw config::unknown_entry("models.make", "model", name, names());
}

std::string head_of(const std::string& name, const ModelOptions& options) {
  const Family chosen = family(name);
  return chosen.head_for ? chosen.head_for(options) : chosen.head;
}

std::vector<std::string> names() { return registry().names(); }

std::vector<config::EntryInfo> infos() {
  const config::Node every = config::to_node(ModelOptions{});
  std::vector<config::EntryInfo> all = registry().infos();
  for (auto& info : all) {
    const config::Node own = std::exchange(info.defaults, config::Node::map());
    for (const auto& option : taken_by(family(info.name)))
      if (option != "options") info.defaults.set(option, *every.find(option));
    if (!own.entries.empty()) info.defaults.set("options", own);
  }
  return all;
}

ModelOptions without_weights(ModelOptions options) {
  options.weights.clear();
  options.rename.clear();
  return options;
}

void check(const std::string& name, const ModelOptions& options) {
  config::validate(options, "models.make");
  check_fields(family(name), options);
  if (!options.rename.empty() && options.weights.empty())
    throw ConfigError("models.make", "rename", "has no effect without weights",
                      "weights: the file whose tensors have other names; or omit it", {});
  const Family chosen = registry().make(name, options.options);
  if (chosen.check) chosen.check();
  if (!chosen.program.empty()) trust_program(chosen.program);
  int64_t values = 1;
  for (const int64_t side : options.sample_shape)
    if (__builtin_mul_overflow(values, side, &values) || values > kMostValues)
      throw ConfigError("models.make", "sample_shape", "is too large",
                        "at most " + format_count(kMostValues) + " values a sample", "more");
}

Model make(const std::string& name, const ModelOptions& options) {
  check(name, options);
  const Family chosen = registry().make(name, options.options);
  // Where the first weights came from is no part of how to build the model.
  ModelOptions full = without_weights(options);
  if (full.sample_shape.empty()) full.sample_shape = chosen.sample_shape;
  note_program(name, full);
  Model model = chosen.make(full);
  model.set_spec({name, config::to_yaml(spec_of(full))});
  if (!options.weights.empty())
    load_weights(model.state(), head_of(name, options), options.weights, options.rename);
  return model;
}

Model make(const ModelSpec& spec) {
  const ModelOptions options = options_of(spec);
  require_trust(spec.name, options);
  return make(spec.name, options);
}

std::string program_content(const std::string& file) {
  return checkpoint::hash(io::Mapping(file).bytes());
}

void note_program(const std::string& name, ModelOptions& options) {
  const std::string program = registry().make(name, options.options).program;
  config::Node& own = options.options.node;
  const config::Node* const content = own.find("content");
  if (program.empty() || (content != nullptr && !content->text.empty())) return;
  own.set("content", config::Node::string(program_content(program)));
}

void trust_program(const std::string& file) {
  const std::lock_guard lock(trusted().mutex);
  trusted().files.insert(file);
}

void reset_head(Model& model) {
  const std::string head =
      model.spec() ? head_of(model.spec()->name, options_of(*model.spec())) : "";
  if (head.empty()) {
    throw StateError("models.reset_head", "without a head that the registry knows",
                     "reset the module's own layers");
  }
  const std::string prefix = head + ".";
  const Model fresh = make(*model.spec());
  const auto source = fresh.state(), target = model.state();
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < target.size(); ++i) {
    at::Tensor tensor = target[i].tensor;
    if (target[i].name.starts_with(prefix)) tensor.copy_(source[i].tensor);
  }
}

}  // namespace tare::models
