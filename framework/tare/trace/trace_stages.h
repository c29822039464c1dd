// The stages of a trace whose work is divided over several devices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <optional>

#include "tare/memory/accountable.h"
#include "tare/trace/estimate.h"
#include "tare/trace/trace_events.h"

namespace tare::plan {

/// Says, in the trace that is being recorded, that what follows is work of this stage, from 0 on: a
/// block that is born is on its device, unless note_stages() says otherwise. Work before the first
/// call is of stage 0.
void mark_stage(size_t stage);

/// Records on which stage's device the storages of a ledger are; `stage_of` returns nothing for one
/// that is where it was born. The last word on a block counts.
void note_stages(const Ledger& ledger,
                 const std::function<std::optional<size_t>(const LedgerEntry&)>& stage_of);

/// Returns the stage on whose device the storage of a meta tensor is in the trace that is being
/// recorded; unset: the storage is not in it.
[[nodiscard]] std::optional<size_t> stage_of(const at::Tensor& tensor);

/// Holds what of a trace is on one device.
struct StageTrace {
  Trace trace{};      ///< its events
  Section section{};  ///< the part of them that counts
};

/// Returns the events, sums, products and marks of one stage of a trace, and the stage of its
/// section that is in them. A pure function.
[[nodiscard]] StageTrace trace_of_stage(const Trace& whole, Section section, size_t stage);

}  // namespace tare::plan
