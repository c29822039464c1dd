// Watches operators and adds up what each needs by the sizes of its operands.
#include "tare/callback/flop_count.h"

// LibTorch's libraries are release builds, which leave unset what a check of this header reads.
#ifndef NDEBUG
#define NDEBUG
#endif
#include <ATen/record_function.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "tare/callback/operator_flops.h"
#include "tare/memory/phase.h"
#include "tare/model/recomputing.h"

namespace tare {
namespace {

// Outside of forward and backward are the callbacks, and the optimizer's step may have products.
bool is_of_model() {
  const uint32_t phase = memory::current_phase();
  return phase != static_cast<uint32_t>(memory::PhaseKind::none) &&
         phase != static_cast<uint32_t>(memory::PhaseKind::step) && !Recomputing::is_under_way();
}

/// Holds what an operator needs, while it works; those that it calls do not count again.
struct Work final : at::ObserverContext {
  const FlopFormula* formula = nullptr;
  int64_t flops = 0;
  int64_t Flops::*type = nullptr;
};

thread_local Work* work = nullptr;

}  // namespace

struct FlopCount::Counts {
  static std::unique_ptr<at::ObserverContext> started(const at::RecordFunction& function) {
    const FlopFormula* const formula = flop_formula_of(function.name());
    if (!formula || !is_of_model()) return nullptr;
    const auto inputs = function.inputs();
    const auto type = flop_type_of(*formula, inputs[formula->operand].toTensor());
    if (work) {  // autocast calls the operator again with operands of another type
      if (work->formula == formula) work->type = type;
      return nullptr;
    }
    auto begun = std::make_unique<Work>();
    begun->formula = formula;
    begun->flops = formula->flops(inputs);
    begun->type = type;
    work = begun.get();
    return begun;
  }

  static void ended(const at::RecordFunction&, at::ObserverContext* context) {
    const bool failed = std::uncaught_exceptions() > 0;
    if (context) work = nullptr;
    Counts* const counts = current;
    if (!counts || (!failed && !context)) return;
    const std::lock_guard lock(counts->mutex);
    if (failed) counts->failed = true;
    if (failed || !context) return;
    const auto& done = static_cast<const Work&>(*context);
    counts->all.*done.type += done.flops;
  }

  static std::atomic<Counts*> current;  // threads of a backward find it

  std::mutex mutex;
  Flops all;
  bool failed = false;
};

std::atomic<FlopCount::Counts*> FlopCount::Counts::current{nullptr};

std::unique_ptr<FlopCount> FlopCount::begin() {
  auto counts = std::make_unique<Counts>();
  Counts* none = nullptr;
  if (!Counts::current.compare_exchange_strong(none, counts.get())) return nullptr;
  return std::unique_ptr<FlopCount>(new FlopCount(std::move(counts)));
}

FlopCount::FlopCount(std::unique_ptr<Counts> counts)
    : counts_(std::move(counts)),
      handle_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(&Counts::started, &Counts::ended)
                                         .needsInputs(true)
                                         .scopes({at::RecordScope::FUNCTION}))) {}

FlopCount::~FlopCount() {
  at::removeCallback(handle_);
  Counts::current = nullptr;
}

std::optional<Flops> FlopCount::flops() const {
  const std::lock_guard lock(counts_->mutex);
  if (counts_->failed) return std::nullopt;
  return counts_->all;
}

}  // namespace tare
