// RecordedStep: a step that a card records as a graph, in the trace of a plan.
#pragma once

#include <c10/core/Allocator.h>

#include <array>
#include <memory>

namespace tare::plan {

/// Holds the seed and the offset of a card's generator, which a graph reads from the card.
using GraphSeeds = std::array<c10::DataPtr, 2>;

/// Holds what belongs to all graphs of a card together.
struct SharedByGraphs {
  std::weak_ptr<GraphSeeds>
      seeds{};  ///< held by each graph, where they share the generator's state
};

/// Opens a scope of a step that a card records: its allocations come from the memory of graphs, and
/// its random numbers begin where the card's generator is when the graph is queued. Scopes do not
/// nest.
class RecordedStep {
 public:
  /// Begins the scope. `seeds` gets what belongs to the graph, and lives as long as the graph.
  RecordedStep(SharedByGraphs& shared, std::shared_ptr<GraphSeeds>& seeds);
  ~RecordedStep();
  RecordedStep(const RecordedStep&) = delete;
  RecordedStep& operator=(const RecordedStep&) = delete;
};

/// Whether a RecordedStep is open, in which a card keeps the seeds of attention on the card.
[[nodiscard]] bool records_step();
/// Notes that an operator of a card draws random numbers; does nothing outside of a RecordedStep.
void note_random_numbers();

}  // namespace tare::plan
