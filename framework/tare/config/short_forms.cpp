// Expands the short forms of a recipe's tree.
#include "tare/config/short_forms.h"

#include <string>
#include <utility>

#include "tare/config/override.h"

namespace tare::config {
namespace {

// A list position or a text that is no name is refused where the mapping is read.
void expand(Node& parent, const char* key, const char* name) {
  Node* value = parent.find(key);
  if (!value || value->kind != Kind::scalar) return;
  Node map = Node::map();
  map.source = value->source;
  map.entries.push_back({name, value->source, std::move(*value)});
  *value = std::move(map);
}

bool leads_through(std::string_view assignment, const std::string& path) {
  return assignment.substr(0, assignment.find('=')).starts_with(path + '.');
}

struct Form {
  const char *key, *name;
};
constexpr Form kOfRecipe[] = {{"data", "name"}, {"model", "name"}, {"optimizer", "kind"}};
constexpr Form kOfPhase[] = {{"data", "name"}, {"schedule", "kind"}};
constexpr Form kOfSchedules[] = {{"momentum", "kind"}, {"beta2", "kind"}, {"weight_decay", "kind"}};
constexpr Form kOfSweep[] = {{"method", "type"}, {"pruner", "type"}, {"executor", "type"}};

}  // namespace

void expand_short_forms(Node& recipe) {
  for (const Form& form : kOfRecipe) expand(recipe, form.key, form.name);
  if (Node* phases = recipe.find("phases"))
    for (Node& phase : phases->items) {
      for (const Form& form : kOfPhase) expand(phase, form.key, form.name);
      if (Node* schedules = phase.find("schedules"))
        for (const Form& form : kOfSchedules) expand(*schedules, form.key, form.name);
    }
}

namespace {

void expand_schedules(Node& recipe, std::string_view assignment) {
  Node* phases = recipe.find("phases");
  for (size_t i = 0; phases && i < phases->items.size(); ++i)
    for (const Form& form : kOfSchedules)
      if (Node* schedules = phases->items[i].find("schedules");
          schedules &&
          leads_through(assignment, "phases." + std::to_string(i) + ".schedules." + form.key))
        expand(*schedules, form.key, form.name);
}

}  // namespace

void apply_recipe_override(Node& recipe, std::string_view assignment) {
  for (const Form& form : kOfRecipe)
    if (leads_through(assignment, form.key)) expand(recipe, form.key, form.name);
  if (Node* phases = recipe.find("phases"))
    for (size_t i = 0; i < phases->items.size(); ++i)
      for (const Form& form : kOfPhase)
        if (leads_through(assignment, "phases." + std::to_string(i) + '.' + form.key))
          expand(phases->items[i], form.key, form.name);
  expand_schedules(recipe, assignment);
  apply_override(recipe, assignment);
}

void apply_sweep_override(Node& sweep, std::string_view assignment) {
  for (const Form& form : kOfSweep)
    if (leads_through(assignment, form.key)) expand(sweep, form.key, form.name);
  apply_override(sweep, assignment, {"parameters", "set"});
}

}  // namespace tare::config
