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
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tare/base/error.h"
#include "tare/memory/accountable.h"

namespace tare::plan {

/// The work needs what shapes alone cannot give: an operator without a shape-only kernel, or the
/// values of a tensor (`item()`, a condition on data). The plan never guesses instead.
class CannotTell : public Error {
 public:
  CannotTell(std::string op, std::string_view reason, std::string_view advice);
  /// The operator, e.g. "aten::foo".
  [[nodiscard]] const std::string& op() const { return op_; }

 private:
  std::string op_;
};

/// The kernels whose memory a trace records.
enum class Machine {
  host,  ///< this processor, with the present number of threads
  card   ///< CUDA; the workspaces of cuDNN's convolutions, which only a card knows, are not in it
};

/// A block was born or freed.
struct Event {
  int64_t block = 0;   ///< blocks are numbered from 0 in order of birth
  int64_t bytes = 0;   ///< > 0: born with that many bytes, as requested; 0: freed
  uint32_t phase = 0;  ///< id of the phase in force, see memory/phase.h
  uint32_t op = 0;     ///< index into Trace::ops: the operator at work
};

/// A moment that the traced work has named.
struct Mark {
  std::string name{};
  size_t event = 0;  ///< how many events had happened
};

/// What was allocated and freed, in order; a value. A block that is never freed is alive at the
/// end. Empty tensors make no event.
struct Trace {
  std::vector<Event> events{};
  std::vector<std::string> ops{};     ///< names of operators; ops[0] is "": outside of any
  std::vector<std::string> called{};  ///< every operator that was called, with its overload; sorted
  std::vector<Mark> marks{};          ///< see mark()
  /// What note() said of a block, by its number; the others are not in it.
  std::unordered_map<int64_t, Category> categories{};

  /// Where the first mark of that name is. Throws ConfigError without one.
  [[nodiscard]] size_t at(std::string_view mark) const;
};

/// The operators of a trace that nobody has compared with the host, event by event (the others are
/// in proven.cpp, which the tests hold up): what they take there beyond their results is not known,
/// so that a plan with one of them may be too small.
[[nodiscard]] std::vector<std::string> unproven(const Trace& trace);

/// Names this moment of the trace that is being recorded; does nothing outside of one.
void mark(std::string name);
/// Tells the trace that is being recorded what the storages of a ledger are used for; the first
/// word on a block counts. Storages that are not of the trace are left out.
void note(const Ledger& ledger);

/// While one is alive on a thread, that thread's factory calls make meta tensors whatever device
/// they name, so that `models::make(...)` gives a model without memory, and operators on meta
/// tensors allocate what they would on the host. Backward passes started on the thread inherit it.
/// Other threads are not affected. Reading a value of a meta tensor throws CannotTell, and so does
/// an operator without a shape-only kernel.
class MetaScope {
 public:
  /// The first of the process registers a fallback for LibTorch's dispatch key "Fake", which
  /// nothing else includes; dispatch outside of a MetaScope stays as it is. Throws c10::Error if
  /// another library (torchdistx) has registered one.
  MetaScope();
  ~MetaScope();
  MetaScope(const MetaScope&) = delete;
  MetaScope& operator=(const MetaScope&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
  uint64_t nodes_;
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
/// In a trace of a card recurrent layers of cuDNN throw CannotTell: their memory is known on a card
/// only.
[[nodiscard]] Trace trace(const std::function<void()>& body, Machine machine = Machine::host);

}  // namespace tare::plan
