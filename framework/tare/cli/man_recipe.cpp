// Writes the man page of the recipe's keys as troff.
#include "tare/cli/man_recipe.h"

#include "tare/base/error.h"
#include "tare/cli/man_page.h"
#include "tare/config/node.h"

namespace tare::cli {
namespace {

std::string sentence(const std::string& head, const std::string& value) {
  return value.empty() ? "" : head + value + ". ";
}

std::string item_of(const RecipeKey& key) {
  return man_item(key.path, sentence("", key.meaning) + sentence("Type: ", key.type) +
                                sentence("Default: ", key.default_value) +
                                sentence("Allowed: ", allowed_text(key)) +
                                (key.example.empty() ? "" : "Example: " + key.example));
}

}  // namespace

std::string man_recipe(const std::vector<RecipeKey>& keys, const std::string& version) {
  std::string text = ".TH " + man_text("TARE-RECIPE") + " 5 \"\" \"tare " + version +
                     "\" \"Tare\"\n.SH NAME\n" + man_text("tare-recipe") +
                     " \\- a training run, phase by phase, as a YAML file\n.SH DESCRIPTION\n" +
                     man_text(
                         "A recipe is a mapping with the keys below. tare run takes them as "
                         "settings too, in dotted form and with the number of a phase, from "
                         "0, for N: tare run recipe.yaml phases.0.lr=1e-3. Only model.name "
                         "and one phase at least must be given.") +
                     "\n.SH KEYS\n";
  for (const auto& key : keys) text += item_of(key);
  text += ".SH EXAMPLES\n.EX\n";
  for (const char* line :
       {"model: {name: resnet9, width: 16}", "data: {name: digits}",
        "phases:", "  - {name: head, freeze_to: -1, epochs: 1, lr: 1.0e-2}",
        "  - {name: all, epochs: 4, lr: {from: 1.0e-4, to: 1.0e-2}}", "export: digits.tare"})
    text += man_text(line) + "\n";
  return text + ".EE\n.SH \"SEE ALSO\"\n.BR tare\\-run (1),\n.BR tare\\-explain (1)\n";
}

}  // namespace tare::cli
