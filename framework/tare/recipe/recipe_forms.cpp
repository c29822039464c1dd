#include "tare/recipe/recipe_forms.h"

#include <utility>

#include "tare/base/error.h"

namespace tare {
namespace {

// A list position or a text that is no name is refused where the mapping is read.
void expand(config::Node& parent, const char* key, const char* name) {
  config::Node* value = parent.find(key);
  if (!value || value->kind != config::Kind::scalar) return;
  config::Node map = config::Node::map();
  map.source = value->source;
  map.entries.push_back({name, value->source, std::move(*value)});
  *value = std::move(map);
}

}  // namespace

void expand_short_forms(config::Node& root) {
  expand(root, "data", "name");
  expand(root, "model", "name");
  expand(root, "optimizer", "kind");
  config::Node* phases = root.find("phases");
  if (!phases) return;
  for (config::Node& phase : phases->items) {
    expand(phase, "data", "name");
    expand(phase, "schedule", "kind");
  }
}

void refuse_other_files(const config::Node& root, const std::filesystem::path& file) {
  const config::Node* other = root.find("recipe");
  const char* what = "a sweep of a recipe";
  if (!other) {
    other = root.find("meta");
    what = "the configuration of a sweep";
  }
  if (!other || root.find("phases")) return;
  throw ConfigError(other->source, "",
                    std::string("'") + printable(file.string()) + "' is " + what +
                        ", not a recipe: type `tare sweep run " + printable(file.string()) + "`");
}

}  // namespace tare
