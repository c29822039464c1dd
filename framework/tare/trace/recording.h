// The allocator of the meta device while a trace is recorded. Internal.
#pragma once

#include <ATen/core/operator_name.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tare/memory/accountable.h"
#include "tare/trace/trace_events.h"

namespace tare::plan {

/// Records every block of the meta device from construction to finish() or destruction. Throws
/// StateError if another recording is in progress.
class Recording {
 public:
  explicit Recording(Machine machine);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Ends the recording and returns it.
  [[nodiscard]] Trace finish();
};

/// Passes a mark, or a note, on to the recording in progress; without one does nothing.
void meta_mark(std::string name);
void meta_note(const Ledger& ledger);
void meta_note_stages(const Ledger& ledger,
                      const std::function<std::optional<size_t>(const LedgerEntry&)>& stage_of);

/// Says which stage is at work, for meta_stage_of() of the blocks that are born from now on.
void meta_stage(size_t stage);
/// Returns the stage of a block of the recording, as noted or else as born; unset: of none.
[[nodiscard]] std::optional<size_t> meta_stage_of(const LedgerEntry& entry);

/// Begins, with `on`, or ends a part of the recording that is not in the trace.
void pause_recording(bool on);

/// Adds a product at this moment to a recording of a card.
void note_product(ProductBy by);

/// Adds a sum at this moment to a recording of a card.
void note_sum(CardSum sum);

/// Whether the recording in progress is one of a card, which has none of the host's temporaries.
[[nodiscard]] bool for_card();
/// Returns the machine of the recording in progress.
[[nodiscard]] Machine recorded_machine();

/// Names the operator at work on this thread until the end of the scope; the outermost counts.
/// `name` lives as long as the process.
class WorkingOp {
 public:
  explicit WorkingOp(const c10::OperatorName& name);
  ~WorkingOp();
  WorkingOp(const WorkingOp&) = delete;
  WorkingOp& operator=(const WorkingOp&) = delete;

 private:
  bool outermost_;
};

}  // namespace tare::plan
