// The allocation trace of a piece of work, recorded on LibTorch's meta device: tensors there have a
// shape and no memory, so a whole training step is traced without computing or holding anything.
//
// The trace is that of the same work on the host, or on a card. Operators that take temporary
// memory on the host take it in a trace of the host; convolutions are the exception to "nothing is
// computed" there, see convolution_profile.h. A trace of a card has none of the host's temporaries,
// so that it is the same whatever processor and number of threads it is made with.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/trace_events.h"

namespace tare::plan {

/// Returns the operators of a trace that have not been compared with the host, event by event (the
/// others are in verified_operators.cpp, which the tests hold up): what they take there beyond
/// their results is not known, so that a plan with one of them may be too small.
[[nodiscard]] std::vector<std::string> unverified(const Trace& trace);
/// Names the workspaces of convolutions among what a plan for a card does not contain.
inline constexpr const char* kWorkspaces = "the workspaces of cuDNN's convolutions";
/// Names the workspaces of attention there.
inline constexpr const char* kAttentionWorkspaces = "the workspaces of cuDNN's attention";
/// Returns what a card may take beyond its trace, as texts: the temporary memory of operators that
/// have not been compared with a card, and the workspaces that cuDNN chooses.
[[nodiscard]] std::vector<std::string> not_counted_on_card(const Trace& trace);

/// Names this moment of the trace that is being recorded; does nothing outside of one.
void mark(std::string name);
/// Records in the trace what the storages of a ledger are used for; the first word on a block
/// counts. Storages outside the trace are skipped.
void note(const Ledger& ledger);

/// Opens a scope in which the factory calls of its thread make meta tensors, whatever device they
/// name, so that `models::make(...)` gives a model without memory, and operators on meta tensors
/// allocate what they would on the host. They are autocast where an AutocastScope for the meta
/// device is in force. Backward passes started on the thread inherit the MetaScope. Other threads
/// are not affected. Reading a value of a meta tensor throws NotPlannable, and so does an operator
/// without a shape-only kernel.
class MetaScope {
 public:
  /// Begins the scope. The first scope of the process registers fallbacks for LibTorch's dispatch
  /// keys "Fake" and "AutocastIPU", which nothing else includes; dispatch outside of a MetaScope
  /// stays as it is. Throws c10::Error if another library (torchdistx) has registered one.
  MetaScope();
  ~MetaScope();
  MetaScope(const MetaScope&) = delete;
  MetaScope& operator=(const MetaScope&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
  uint64_t nodes_;
};

/// Opens a scope of a trace of a card in which tensors are made on the host, so that they and what
/// they take are not in the trace. In a trace of the host it does nothing. Scopes may not nest.
class OffCard {
 public:
  OffCard();
  ~OffCard();
  OffCard(const OffCard&) = delete;
  OffCard& operator=(const OffCard&) = delete;
};

/// Runs `body` in a MetaScope and returns what it allocated on the meta device. Tensors that are to
/// be counted must be made inside, the model included; phases are those that `body` sets
/// (memory::Phase). Blocks may outlive the recording and be freed on any thread. Threads that
/// `body` starts are recorded too, but are not in the scope.
///
/// One recording at a time: a second one, nested or on another thread, throws StateError.
/// LibTorch's allocator of the meta device is replaced meanwhile, so no other thread may work on
/// meta tensors of its own. Throws what `body` throws; the recording is dropped and the allocator
/// restored.
///
/// A trace of a card has recurrent layers as cuDNN computes them; where it would not, they throw
/// NotPlannable.
[[nodiscard]] Trace trace(const std::function<void()>& body, Machine machine = Machine::host);

}  // namespace tare::plan
