// Writes the periodic checkpoints of a fit under two names in turn.
#include "tare/callback/autosave.h"

#include <c10/util/Exception.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/log.h"

namespace tare {

Autosave::Autosave(int64_t every) : every_(every) {
  if (every < 0) throw ConfigError("autosave", "every must be >= 0, got " + std::to_string(every));
}

std::vector<std::string> Autosave::names() { return {"autosave-0", "autosave-1"}; }

bool Autosave::write(const std::function<void(const std::string&)>& save) {
  const size_t before = turn_;
  turn_ = (turn_ + 1) % names().size();  // the checkpoint holds it: its own name
  try {
    save(names()[turn_]);
    failed_ = false;
    has_one_ = true;
  } catch (const c10::Error& error) {  // its what() has a stack
    fail(before, error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(before, error.what());
  }
  return !failed_;
}

void Autosave::fail(size_t turn_before, const std::string& reason) {
  turn_ = turn_before;
  failed_ = true;
  log::warning("no checkpoint was written: " + printable(reason) +
               (has_one_ ? "; the one before stays, training continues"
                         : "; there is none yet, training continues"));
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
  write([&](const std::string& name) { context.learner.save(name); });
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
