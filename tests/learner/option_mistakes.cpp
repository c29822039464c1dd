// Options that a Learner must refuse, and calls at the wrong time.
#include "learner/mistakes.h"
#include "tare/model/registry.h"
#include "tare/train/interrupt.h"

namespace tare::testing {

std::vector<Mistake> mistakes_in_options() {
  return {
      {"UnknownLoss",
       "ConfigError",
       {"no loss is named 'cross_entropi' (did you mean \"cross_entropy\"?); allowed: bce",
        "smooth_l1"},
       [](Bench& b) {
         b.options.loss = "cross_entropi";
         b.fit(points(48, 1));
       }},
      {"UnknownMetric",
       "ConfigError",
       {"no metric is named 'acuracy' (did you mean \"accuracy\"?); allowed: ", "rmse"},
       [](Bench& b) {
         b.options.metrics = {"acuracy"};
         b.fit(points(48, 1));
       }},
      {"UnknownModel",
       "ConfigError",
       {"no model is named 'resnet81' (did you mean \"resnet18\"?); allowed: convnet, gpt"},
       [](Bench&) { (void)models::make("resnet81"); }},
      {"NoEpochs",
       "ConfigError",
       {"[learner.fit] epochs must be > 0, got 0"},
       [](Bench& b) { Learner(make_net(), {.train = points(48, 1)}, b.options).fit(0); }},
      {"NoBatch",
       "ConfigError",
       {"batch must be >= 1, got 0"},
       [](Bench& b) {
         b.options.batch = 0;
         b.fit(points(48, 1));
       }},
      {"ResumeWithoutAFit",
       "StateError",
       {"[learner.resume]", "without an unfinished fit"},
       [](Bench& b) { Learner(make_net(), {.train = points(48, 1)}, b.options).resume(); }},
      {"NullCallback",
       "ConfigError",
       {"[learner] a callback is null"},
       [](Bench& b) {
         b.options.callbacks = {nullptr};
         b.fit(points(48, 1));
       }},
      {"NullCallbackOfAFit",
       "ConfigError",
       {"[learner.fit] a callback is null"},
       [](Bench& b) { b.fit(points(48, 1), {nullptr}); }},
      {"NoBatchOfNewData",
       "ConfigError",
       {"[learner.set_data] batch must be >= 1, got 0"},
       [](Bench& b) { Learner(make_net(), {}, b.options).set_data(split_points(), 0); }},
      {"LossesOfALossFunction",
       "StateError",
       {"[learner.get_preds]", "without a loss per sample", "a named loss has one"},
       [](Bench& b) {
         b.options.loss = LossFunction([](const at::Tensor& out, const at::Tensor& target) {
           return torch::cross_entropy_loss(out, target);
         });
         Learner learner(make_net(), {.valid = points(48, 1)}, b.options);
         (void)learner.get_preds(Split::valid, {.losses = true});
       }},
      {"InterruptScopeInAnother",
       "StateError",
       {"[InterruptScope]", "active already", "one scope around the whole run"},
       [](Bench&) {
         const InterruptScope outer;
         const InterruptScope inner;
       }},
  };
}

}  // namespace tare::testing
