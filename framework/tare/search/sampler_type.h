// Sampler: the method by which a sweep chooses what its runs set.
#pragma once

#include <functional>
#include <vector>

#include "tare/search/counter_rng.h"
#include "tare/search/space.h"
#include "tare/search/trial.h"

namespace tare::search {

/// Holds the input of a sampler for a trial. The references hold as long as its draws are used.
struct Seen {
  const Space& space;                     ///< whose parameters are drawn
  const std::vector<SeenTrial>& history;  ///< without the trial that is drawn
  bool maximize = false;                  ///< the metric of the trials
};

/// Draws a point, with a value for each parameter of the space. It is called again when conditions,
/// exclusions or earlier runs rule the point out. Its only randomness is `rng`.
using Draw = std::function<Point(CounterRng& rng)>;

/// Holds a method, ready for use. A value.
struct Sampler {
  /// Looks at the trials once for each trial that is drawn; a pure function. Empty: nothing is
  /// drawn, and the runs are all combinations of the values, as for `grid`.
  std::function<Draw(const Seen& seen)> look{};
};

}  // namespace tare::search
