// Writes the periodic checkpoints of a fit under two names in turn.
#include "tare/callback/autosave.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/save_failure.h"

namespace tare {

Autosave::Autosave(int64_t every) : every_(every) {
  if (every < 0) throw ConfigError("autosave", "every must be >= 0, got " + std::to_string(every));
}

std::vector<std::string> Autosave::names() { return {"autosave-0", "autosave-1"}; }

size_t Autosave::begin_save() {
  return std::exchange(turn_, (turn_ + 1) % names().size());  // the checkpoint holds its own name
}

void Autosave::end_save(size_t turn_before, const std::exception_ptr& error) {
  failed_ = error != nullptr;
  if (failed_) {
    turn_ = turn_before;
    log::warning("no checkpoint was written: " + failure_text(error) +
                 (has_one_ ? "; the one before stays, training continues"
                           : "; there is none yet, training continues"));
  } else {
    has_one_ = true;
  }
}

bool Autosave::write(const std::function<void(const std::string&)>& save) {
  const size_t before = begin_save();
  std::exception_ptr error;
  try {
    save(names()[turn_]);
  } catch (...) {  // it is handed on
    error = std::current_exception();
  }
  end_save(before, error);
  return !failed_;
}

void Autosave::save(LearnerView& learner) {
  learner.finish_saves();  // one that fails gives its name back
  const size_t before = begin_save();
  learner.try_save(names()[turn_],
                   [this, before](const std::exception_ptr& error) { end_save(before, error); });
}

Action Autosave::before_fit(FitContext& context) {
  seen_step_ = context.step;  // a fit that continues has the checkpoint of its first step
  return Action::proceed;
}

Action Autosave::after_batch(FitContext& context) {
  // seen_step_: a batch without a step does not save again.
  if (every_ == 0 || context.step % every_ != 0 || context.step == seen_step_)
    return Action::proceed;
  seen_step_ = context.step;
  save(context.learner);
  return Action::proceed;
}

std::string Autosave::state() const { return nlohmann::json{{"turn", turn_}}.dump(); }

void Autosave::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("turn") || !value["turn"].is_number_unsigned() ||
      value["turn"].get<size_t>() >= names().size()) {
    throw FormatError("autosave.load_state", name(), "turn", "is not in the checkpoint's state");
  }
  turn_ = value["turn"].get<size_t>();
  has_one_ = true;
}

}  // namespace tare
