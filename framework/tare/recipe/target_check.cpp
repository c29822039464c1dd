// Compares what the outputs of the model stand for in one phase and in the phase before it.
#include "tare/recipe/target_check.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/text_plot.h"
#include "tare/recipe/column_check.h"
#include "tare/recipe/phase_data.h"

namespace tare {
namespace {

constexpr size_t kMostNames = 10;

const std::vector<std::string>& labels_of(const DataFacts& data) {
  static const std::vector<std::string> kNone;
  return data.bundle ? data.bundle->labels : kNone;
}

const RowCoding* rows_of(const DataFacts& data) {
  return data.bundle && data.bundle->rows ? &*data.bundle->rows : nullptr;
}

/// Returns the phase whose weights phase number `phase`, >= 1, starts from.
size_t phase_before(const RecipeOptions& recipe, size_t phase) {
  const std::string& loaded = recipe.phases[phase].load;
  for (size_t i = phase; !loaded.empty() && i-- > 0;)
    if (recipe.phases[i].save == loaded) return i;
  return phase - 1;
}

/// Returns "phase 2", with the name where the phase has one.
std::string text_of(const RecipeOptions& recipe, size_t phase) {
  const std::string& name = recipe.phases[phase].name;
  return phase_number(phase) + (name.empty() ? "" : " ('" + printable(name) + "')");
}

/// Whether the shorter list begins the longer one, so that classes in both have equal numbers.
bool agree(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  const auto common = static_cast<std::ptrdiff_t>(std::min(one.size(), other.size()));
  return std::equal(one.begin(), one.begin() + common, other.begin());
}

bool is_number(const RowCoding& rows) { return rows.target_deviation > 0; }

/// Returns the targets whose units the outputs of a model have that scales them; empty: there are
/// none.
std::vector<std::string> scaled_targets(const DataFacts& data) {
  const RowCoding* rows = rows_of(data);
  if (!rows) return {};
  if (is_number(*rows)) return {rows->target};
  return rows->target_means.empty() ? std::vector<std::string>() : rows->targets;
}

/// Compares a phase with the phase before it.
class Comparison {
 public:
  Comparison(const RecipeOptions& recipe, const std::vector<DataFacts>& phases, size_t phase)
      : recipe_(recipe),
        phase_(phase),
        before_(phase_before(recipe, phase)),
        then_(phases[before_]),
        now_(phases[phase]) {}

  void check() const {
    const auto &then = labels_of(then_), &now = labels_of(now_);
    if (!agree(then, now))
      refuse("the classes are " + listed(then, kMostNames), listed(now, kMostNames),
             "equal classes in one order");
    if (!now.empty() && now.size() < then.size())
      throw_at_data("has no samples of classes that the model was trained on in " +
                        text_of(recipe_, before_) + ", and would train it never to choose them: " +
                        listed({then.begin() + std::ssize(now), then.end()}, kMostNames),
                    "data with all of these classes");
    const RowCoding *rows_then = rows_of(then_), *rows_now = rows_of(now_);
    if (!rows_then || !rows_now) return check_names();
    if (is_number(*rows_then) != is_number(*rows_now) || rows_then->targets != rows_now->targets ||
        (is_number(*rows_now) && rows_then->target != rows_now->target))
      refuse("the target is " + target_text(*rows_then), target_text(*rows_now),
             "one target in all phases");
    if (is_number(*rows_now)) warn_of_unit(*rows_then, *rows_now);
  }

  /// Checks a phase whose head is new, which leaves the units of the outputs as they are.
  void check_units() const {
    const std::vector<std::string> then = scaled_targets(then_), now = scaled_targets(now_);
    if (!is_scaled() || then == now) return;
    throw_at_data("has " + (now.empty() ? "a target that is no number" : listed(now, kMostNames)) +
                      ", but the outputs of the model are in the units of " +
                      listed(then, kMostNames) + " in " + text_of(recipe_, before_) +
                      ", which reset_head does not change",
                  "equal targets in all phases, or a recipe of its own with model.weights");
  }

 private:
  /// Whether the outputs of the model have units, which a new head does not change.
  [[nodiscard]] bool is_scaled() const {
    return scales_outputs(recipe_.model.name) && !scaled_targets(then_).empty();
  }

  /// Compares the columns of numbers of lists of pictures.
  void check_names() const {
    const auto targets_of = [&](size_t phase) {
      return data_of(recipe_, recipe_.phases[phase]).targets;
    };
    const std::vector<std::string> then = targets_of(before_), now = targets_of(phase_);
    if (!then.empty() && !now.empty() && then != now)
      refuse("the target is " + listed(then, kMostNames), listed(now, kMostNames),
             "one target in all phases");
  }

  static std::string target_text(const RowCoding& rows) {
    if (!rows.targets.empty()) return listed(rows.targets, kMostNames);
    return "'" + printable(rows.target) + (is_number(rows) ? "', a number" : "', a class");
  }

  [[noreturn]] void refuse(const std::string& then, const std::string& now,
                           const std::string& allowed) const {
    throw_at_data("gives the outputs of the model another meaning: " + then + " in " +
                      text_of(recipe_, before_) + ", and " + now + " in " +
                      text_of(recipe_, phase_),
                  allowed);
  }

  [[noreturn]] void throw_at_data(const std::string& problem, const std::string& allowed) const {
    const bool own = recipe_.phases[phase_].data.has_value();
    const std::string path = own ? "phases." + std::to_string(phase_) + ".data" : "data";
    const bool new_head = !recipe_.phases[phase_].reset_head && !is_scaled();
    throw ConfigError(
        "recipe.run", path, problem,
        allowed + (new_head ? ", or reset_head: true in " + text_of(recipe_, phase_) : ""), "")
        .within("", recipe_.file.place(path));
  }

  void warn_of_unit(const RowCoding& then, const RowCoding& now) const {
    constexpr double kMost = 30;  // some rows of one table differ less from all of them
    const double ratio = now.target_deviation / then.target_deviation;
    const double distance = std::abs(now.target_mean - then.target_mean) /
                            std::max(now.target_deviation, then.target_deviation);
    if (ratio < kMost && ratio > 1 / kMost && distance < kMost) return;
    const auto text = [](const RowCoding& rows) {
      return "a mean of " + short_number(rows.target_mean) + " and a deviation of " +
             short_number(rows.target_deviation);
    };
    log::warning_once("the target '" + printable(now.target) + "' may be in another unit in " +
                      text_of(recipe_, phase_) + ": it has " + text(now) + " there, and " +
                      text(then) + " in " + text_of(recipe_, before_) +
                      "; give all phases one unit");
  }

  const RecipeOptions& recipe_;
  size_t phase_, before_;
  const DataFacts &then_, &now_;
};

}  // namespace

void check_same_targets(const RecipeOptions& recipe, const std::vector<DataFacts>& phases) {
  for (size_t i = 1; i < phases.size(); ++i)
    if (recipe.phases[i].reset_head)
      Comparison(recipe, phases, i).check_units();
    else
      Comparison(recipe, phases, i).check();
}

}  // namespace tare
