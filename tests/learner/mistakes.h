// The table of bad input to the C++ interface: what a row holds, and what rows are made on.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "learner/fixture.h"

namespace tare::testing {

/// Provides the folder, the options and the fits in which the mistakes are made.
struct Bench {
  TempDir folder;
  LearnerOptions options = quiet(folder);

  /// Fits one epoch on `train`.
  void fit(const DatasetPtr& train, std::vector<CallbackPtr> callbacks = {}) const {
    Learner learner(make_net(), {.train = train}, options);
    learner.fit(1, {.callbacks = std::move(callbacks)});
  }
  void fit_labels(const torch::Tensor& labels) const {
    fit(tensor_dataset(torch::randn({labels.size(0), kFeatures}), labels));
  }
};

struct Mistake {
  std::string name{};
  std::string type{};
  std::vector<std::string> pieces{};  ///< of the message
  std::function<void(Bench&)> make{};
};

inline void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

/// Does something to the context of step `step`, at one event.
class At final : public Callback {
 public:
  using Act = std::function<void(FitContext&)>;
  At(Event event, int64_t step, Act act) : event_(event), step_(step), act_(std::move(act)) {}
  [[nodiscard]] std::string name() const override { return "at"; }
  Action before_batch(FitContext& c) override { return when(Event::before_batch, c); }
  Action after_forward(FitContext& c) override { return when(Event::after_forward, c); }

 private:
  Action when(Event event, FitContext& c) const {
    if (event == event_ && c.step == step_) act_(c);
    return Action::proceed;
  }
  Event event_;
  int64_t step_;
  Act act_;
};

inline CallbackPtr at(Event event, int64_t step, At::Act act) {
  return std::make_shared<At>(event, step, std::move(act));
}

std::vector<Mistake> mistakes_about_devices();
std::vector<Mistake> mistakes_about_data();
std::vector<Mistake> mistakes_about_models();
std::vector<Mistake> mistakes_in_options();
std::vector<Mistake> mistakes_with_files();

}  // namespace tare::testing
