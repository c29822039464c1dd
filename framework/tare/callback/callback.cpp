// Names the answers of callbacks, and reads the loss of a step.
#include "tare/callback/callback.h"

#include <algorithm>
#include <vector>

#include "tare/base/error.h"

namespace tare {

void move_logs_back(std::vector<CallbackPtr>& callbacks) {
  const auto only_saves = [](const CallbackFacts& facts) {
    return facts.saves_epochs && facts.columns.empty();
  };
  const auto may_add = [&](const CallbackPtr& callback) {
    const CallbackFacts facts = callback->facts();
    return !facts.logs && !only_saves(facts);
  };
  const auto end = std::find_if(callbacks.rbegin(), callbacks.rend(), may_add).base();
  std::vector<CallbackPtr> first, moved;
  for (auto it = callbacks.begin(); it != end; ++it) {
    const CallbackFacts facts = (*it)->facts();
    // What saves behind a log stays behind it: a checkpoint has the log's row of its epoch.
    const bool moves = facts.logs || (!moved.empty() && only_saves(facts));
    (moves ? moved : first).push_back(*it);
  }
  std::ranges::copy(moved, std::ranges::copy(first, callbacks.begin()).out);
}

const char* to_string(Event event) {
  switch (event) {
    case Event::before_fit:
      return "before_fit";
    case Event::before_epoch:
      return "before_epoch";
    case Event::before_batch:
      return "before_batch";
    case Event::after_forward:
      return "after_forward";
    case Event::after_loss:
      return "after_loss";
    case Event::after_backward:
      return "after_backward";
    case Event::after_step:
      return "after_step";
    case Event::on_micro_batch:
      return "on_micro_batch";
    case Event::after_batch:
      return "after_batch";
    case Event::before_validate:
      return "before_validate";
    case Event::after_validate:
      return "after_validate";
    case Event::after_epoch:
      return "after_epoch";
    case Event::after_fit:
      return "after_fit";
    case Event::on_exception:
      return "on_exception";
  }
  return "?";
}

void LearnerView::try_save(const std::string& name, const SaveDone& done) {
  std::exception_ptr error;
  try {
    save(name);
  } catch (...) {  // it is handed on
    error = std::current_exception();
  }
  done(error);
}

std::string_view FitContext::advice_on_divergence() const {
  if (!bfloat16_on_host) return DivergedError::kAdvice;
  return "use precision fp32, because convolutions of small pictures go wrong in bfloat16 on a "
         "CPU, as docs/needing-less.md says; else lower the learning rate, or look for NaN in the "
         "data";
}

double FitContext::loss_value() const {
  if (!loss.defined())
    throw StateError("loss_value", "without a loss", "read it in after_loss to after_batch");
  // item() dispatches; a host float is one load away.
  if (loss.device().is_cpu() && loss.scalar_type() == c10::kFloat)
    return *loss.const_data_ptr<float>();
  return loss.item<double>();
}

}  // namespace tare
