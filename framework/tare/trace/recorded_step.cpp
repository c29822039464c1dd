// Marks recorded steps in a trace, with what a card's generator takes for them.
#include "tare/trace/recorded_step.h"

#include "tare/memory/libtorch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/estimate.h"
#include "tare/trace/trace.h"

namespace tare::plan {
namespace {

std::shared_ptr<GraphSeeds>* open_seeds = nullptr;  // of the scope; one recording at a time

std::shared_ptr<GraphSeeds> make_seeds() {
  constexpr int64_t kNumber = 8;
  return std::make_shared<GraphSeeds>(GraphSeeds{hold(kNumber), hold(kNumber)});
}

}  // namespace

RecordedStep::RecordedStep(SharedByGraphs& shared, std::shared_ptr<GraphSeeds>& seeds) {
  mark(kCacheReturned);
  if (libtorch::kGraphsShareSeeds) {
    seeds = shared.seeds.lock();
    mark(kRecordPrepared);
    if (!seeds) shared.seeds = seeds = make_seeds();
  }
  mark(kRecordBegins);
  open_seeds = &seeds;
}

RecordedStep::~RecordedStep() {
  open_seeds = nullptr;
  mark(kRecordEnds);
}

bool records_step() { return open_seeds != nullptr; }

void note_random_numbers() {
  if (open_seeds && !*open_seeds) *open_seeds = make_seeds();
}

}  // namespace tare::plan
