// The Parzen estimator of TPE: a density over a few parameters from observed points.
#pragma once

#include <cstdint>
#include <vector>

#include "tare/search/counter_rng.h"
#include "tare/search/space.h"

namespace tare::search {

/// Describes a parameter's values as numbers: those of a range, or the indices of its choices.
struct Domain {
  int64_t choices = 0;       ///< above 0: categorical, and the rest has no meaning
  double low = 0, high = 0;  ///< both included; high is low + a whole number of steps
  double step = 0;           ///< 0: any number between
  bool log = false;          ///< kernels are normal over the logarithm
  bool operator==(const Domain&) const = default;

  [[nodiscard]] bool fixed() const;  ///< has one value only
  /// Whether the domain is one of choices, or of numbers with steps.
  [[nodiscard]] bool discrete() const { return choices > 0 || step > 0; }
  [[nodiscard]] bool contains(double value) const;  ///< whether it is a value of the parameter
  /// Returns the grid's value next to `value`, within [low, high]; without steps, `value` itself.
  [[nodiscard]] double nearest(double value) const;
};
/// Returns the values of a parameter of a space.
[[nodiscard]] Domain domain_of(const Parameter& parameter);

/// Coordinates in the order of the domains.
using Coordinates = std::vector<double>;

/// Represents a mixture with one component for each observation and a prior, each a product of
/// kernels over the domains: truncated normal ones, their mass over a step, or a distribution of
/// choices. Widths by the gaps between neighbours, weights by age: Bergstra et al. 2011, Algorithms
/// for Hyper-Parameter Optimization, section 4, with the rules of Optuna 5.0.0: prior weight 1,
/// widths of at least 1 / min(100, n + 2) of the range ("magic clip"), no gaps to the range's ends.
/// A value; drawing changes nothing.
class Parzen {
 public:
  /// Fits the densities to `observations`, which lie inside the domains, the oldest first; without
  /// any, the prior remains. No domain is fixed.
  Parzen(std::vector<Domain> domains, const std::vector<Coordinates>& observations);
  /// Returns the log of the density, or of the mass where all domains are discrete.
  [[nodiscard]] double log_density(const Coordinates& point) const;
  /// Draws a point; its only randomness is `rng`.
  [[nodiscard]] Coordinates draw(CounterRng& rng) const;

 private:
  /// Holds the kernels of one domain, one for each component.
  struct Kernels {
    Domain domain{};
    double low = 0, high = 0;                     // where normal kernels end
    std::vector<double> mean{}, width{}, mass{};  // mass: log of what is inside of the ends
    std::vector<std::vector<double>> shares{};    // of the choices
    [[nodiscard]] double log_density(size_t component, double value) const;
    [[nodiscard]] double draw(size_t component, CounterRng& rng) const;
  };
  static Kernels kernels_of(const Domain& domain, const std::vector<double>& values);

  std::vector<double> weights_;  // sum 1
  std::vector<Kernels> kernels_;
};

}  // namespace tare::search
