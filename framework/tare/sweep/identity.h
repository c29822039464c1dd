// Identifies a run by its recipe and its settings.
#pragma once

#include <string>
#include <vector>

#include "tare/search/trial.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Computes the SHA-256, in hexadecimal, of the recipe with its settings as canonical YAML: keys
/// sorted, values in one spelling; without name, folder, device, workers, save_every and
/// save_in_background. Reads the recipe once, then names cells. For a program (see
/// SweepOrigin::is_program) it is of its configuration, without nulls and, unless they vary, the
/// keys of SweepOrigin::without.
class Identity {
 public:
  /// Reads the recipe of `sweep`, which must outlive the identity. Throws IoError and ConfigError
  /// for the recipe's file.
  explicit Identity(const SweepOptions& sweep);
  /// Throws ConfigError for a setting that the recipe has no place for.
  [[nodiscard]] std::string of(const search::Cell& cell) const;

 private:
  [[nodiscard]] config::Node program_of(const search::Cell& cell) const;

  const SweepOptions& sweep_;
  config::Node recipe_;  // with SweepOptions::set; null: there is none
};

/// Returns "optimizer.weight_decay=0.1", as `tare run` takes it.
[[nodiscard]] std::string override_text(const std::string& key, const config::Node& value);

/// Returns the overrides of all settings, in order, under the recipe's names
/// (SweepOrigin::aliases).
[[nodiscard]] std::vector<std::string> override_texts(const SweepOptions& sweep,
                                                      const search::Settings& settings);

}  // namespace tare::sweep
