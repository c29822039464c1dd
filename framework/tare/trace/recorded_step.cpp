// Marks recorded steps in a trace, with what a card's generator takes for them.
#include "tare/trace/recorded_step.h"

#include "tare/memory/libtorch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/marks.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

std::shared_ptr<GraphSeeds>* open_seeds = nullptr;  // of the scope; one recording at a time

std::shared_ptr<GraphSeeds> make_seeds() {
  constexpr int64_t kNumber = 8;
  return std::make_shared<GraphSeeds>(GraphSeeds{hold(kNumber), hold(kNumber)});
}

}  // namespace

RecordedStep::RecordedStep(SharedByGraphs& shared, std::shared_ptr<GraphSeeds>& seeds) {
  meta_mark(kCacheReturned);
  if (libtorch::kGraphsShareSeeds) {
    seeds = shared.seeds.lock();
    meta_mark(kRecordPrepared);
    if (!seeds) shared.seeds = seeds = make_seeds();
  }
  meta_mark(kRecordBegins);
  open_seeds = &seeds;
}

RecordedStep::~RecordedStep() {
  open_seeds = nullptr;
  meta_mark(kRecordEnds);
}

bool records_step() { return open_seeds != nullptr; }

void note_random_numbers() {
  if (open_seeds && !*open_seeds) *open_seeds = make_seeds();
}

}  // namespace tare::plan
