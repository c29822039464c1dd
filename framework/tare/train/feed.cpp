// Copies batches to the device ahead of their turn.
#include "tare/train/feed.h"

#include <c10/util/Exception.h>

#include <utility>

namespace tare {
namespace {

/// Lets the threads of a loader pin the batches, where that lets copies run beside computations.
LoaderOptions with_pinned_batches(LoaderOptions options, const LearnerState& state) {
  options.pinned = state.pins && !state.converts_inputs();  // what is converted is pinned later
  return options;
}

}  // namespace

Feed::Feed(LearnerState& state, DatasetPtr data, LoaderOptions options)
    : state_(state), loader_(std::move(data), with_pinned_batches(options, state)) {
  // Beside the computations of several devices there is no one place to copy ahead to.
  const bool alone = state.devices().size() == 1;
  if (state.pins && alone && options.workers > 0) side_.emplace(state.device);
}

Feed::~Feed() { drop_ahead(); }

void Feed::start(int64_t epoch, int64_t position, std::optional<int64_t> end) {
  drop_ahead();
  loader_.start(epoch, position, end);
}

void Feed::stop() {
  drop_ahead();
  loader_.stop();
}

bool Feed::next_ahead(Batch& batch) {
  batch.reset();
  if (!ahead_) ahead_ = fetch();
  Ahead now = std::move(*ahead_);
  ahead_.reset();
  if (now.error) std::rethrow_exception(now.error);
  if (!now.is_there) return false;
  if (now.on_device) {
    side_->join();
    state_.note_batch(now.on_host, *now.on_device);
    batch = std::move(*now.on_device);
  } else {
    batch = std::move(now.on_host);
    state_.to_device(batch);
  }
  now = {};  // its memory on the host
  ahead_ = fetch();
  return true;
}

Feed::Ahead Feed::fetch() {
  Ahead next;
  try {
    next.is_there = loader_.next(next.on_host);
    if (next.is_there) copy_ahead(next);
  } catch (...) {
    next.error = std::current_exception();
  }
  return next;
}

void Feed::copy_ahead(Ahead& next) {
  try {
    next.on_device = state_.copied(next.on_host, *side_);
  } catch (const c10::OutOfMemoryError&) {  // it is copied when it is its turn
  }
}

/// The memory must not go to the computation while a copy is under way.
void Feed::drop_ahead() {
  if (!ahead_) return;
  try {
    side_->join();
  } catch (const c10::Error&) {  // the device has failed, and says so at its next call
  }
  ahead_.reset();
}

void Feed::account(Ledger& ledger) const {
  loader_.account(ledger);
  if (!ahead_ || !ahead_->on_device) return;
  for (const auto* list : {&ahead_->on_device->inputs, &ahead_->on_device->targets})
    for (const auto& [name, tensor] : *list) ledger.add(Category::batch, "next." + name, tensor);
}

}  // namespace tare
