// Batches and data sets that a Learner must refuse.
#include "learner/mistakes.h"

namespace tare::testing {

std::vector<Mistake> mistakes_about_devices() {
  return {
      {"DataSetOnAnotherDevice",
       "DeviceError",
       {"[tensor_dataset]", "two devices: meta and cpu"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({3, kFeatures}, torch::kMeta));
       }},
      {"InputOnAnotherDevice",
       "DeviceError",
       {"two devices: input on meta and model on cpu; move one of them"},
       [](Bench& b) {
         b.fit(map(points(48, 1), [](Batch batch) {
           batch.set_input(batch.input().to(torch::kMeta));
           return batch;
         }));
       }},
      {"TargetOnAnotherDevice",
       "DeviceError",
       {"two devices: target on meta and model on cpu"},
       [](Bench& b) {
         b.fit(map(points(48, 1), [](Batch batch) {
           batch.set_target(batch.target().to(torch::kMeta));
           return batch;
         }));
       }},
      {"InputMovedByACallback",
       "DeviceError",
       {"input on meta", "model on cpu"},
       [](Bench& b) {
         b.fit(points(48, 1), {at(Event::before_batch, 1, [](FitContext& c) {
                 c.data.set_input(c.data.input().to(torch::kMeta));
               })});
       }},
      {"OutputMovedByACallback",
       "DeviceError",
       {"output on meta", "target on cpu"},
       [](Bench& b) {
         b.fit(points(48, 1), {at(Event::after_forward, 0,
                                  [](FitContext& c) { c.outputs = c.output().to(torch::kMeta); })});
       }},
      {"UnknownDevice",
       "ConfigError",
       {"device is not known (did you mean \"cuda\"?), got gpu", "auto, cpu, cuda or cuda:N"},
       [](Bench& b) {
         b.options.device = "gpu";
         b.fit(points(48, 1));
       }},
      {"DeviceThatIsNotThere",
       "DeviceError",
       {"cuda:99 is not there", "use device: auto"},
       [](Bench& b) {
         b.options.device = "cuda:99";
         b.fit(points(48, 1));
       }},
  };
}

std::vector<Mistake> mistakes_about_data() {
  return {
      {"EmptyDataSet",
       "ConfigError",
       {"the data set is empty, give at least one sample"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({0, kFeatures}));
       }},
      {"FewerTargetsThanInputs",
       "ShapeError",
       {"as many targets as inputs, 4, got 3"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({4, 2}), torch::zeros({3}));
       }},
      {"LabelsWithoutAName",
       "ConfigError",
       {"must be in [0, 2), got 2 at sample 2", "check the labels"},
       [](Bench&) {
         (void)tensor_dataset(torch::zeros({3, 2}), torch::arange(3), {"a", "b"});
       }},
      {"BatchLargerThanTheSet",
       "ConfigError",
       {"[learner.fit] batch 16 is larger than the training split of 15 samples; lower it"},
       [](Bench& b) { b.fit(points(15, 1)); }},
      {"NoData",
       "StateError",
       {"[learner.fit]", "without data in its train split", "set_data()"},
       [](Bench& b) { b.fit(nullptr); }},
      {"LabelsBeyondTheModel",
       "ConfigError",
       {"[loss.cross_entropy]", "class labels 0 to 6, the model has 3 outputs"},
       [](Bench& b) { b.fit_labels(torch::arange(32) % 7); }},
      {"NegativeLabel",
       "ConfigError",
       {"class labels -1 to -1, the model has 3 outputs"},
       [](Bench& b) { b.fit_labels(torch::full({32}, -1, torch::kLong)); }},
      {"LabelsBeyondTheModelInALaterBatch",
       "ConfigError",
       {"class labels", "to 7, the model has 3 outputs"},
       [](Bench& b) {
         b.fit(points(48, 1), {at(Event::before_batch, 2, [](FitContext& c) {
                 c.data.set_target(c.data.target().clone());
                 c.data.target()[3] = 7;
               })});
       }},
      {"LabelsBeyondTheModelInValidation",
       "ConfigError",
       {"class labels 9 to 9, the model has 3 outputs"},
       [](Bench& b) {
         const auto nines = torch::full({32}, 9, torch::kLong);
         Learner learner(make_net(),
                         {.train = points(48, 1),
                          .valid = tensor_dataset(torch::randn({32, kFeatures}), nines)},
                         b.options);
         learner.fit(1);
       }},
      {"LabelsBeyondTheModelForLosses",
       "ConfigError",
       {"class labels 9 to 9, the model has 3 outputs"},
       [](Bench& b) {
         const auto nines = torch::full({32}, 9, torch::kLong);
         Learner learner(make_net(),
                         {.valid = tensor_dataset(torch::randn({32, kFeatures}), nines)},
                         b.options);
         (void)learner.get_preds(Split::valid, {.losses = true});
       }},
      {"FloatLabels",
       "ShapeError",
       {"[loss.cross_entropy]", "class labels int64 [16]", "got float32 [16]"},
       [](Bench& b) { b.fit_labels(torch::zeros({32})); }},
      {"LabelsWithAnotherDimension",
       "ShapeError",
       {"got int64 [16, 1]; target.squeeze(-1) removes its last dimension"},
       [](Bench& b) {
         b.fit_labels(torch::zeros({32, 1}, torch::kLong));
       }},
      {"IntegerValuesForMse",
       "ShapeError",
       {"[loss.mse] expected floating-point target of the output's shape [16, 3]"},
       [](Bench& b) {
         b.options.loss = "mse";
         b.options.metrics = {};
         b.fit_labels(torch::zeros({32, 3}, torch::kLong));
       }},
      {"NoTargets",
       "ShapeError",
       {"[loss.cross_entropy] expected", "no tensor"},
       [](Bench& b) {
         b.fit(tensor_dataset(torch::randn({32, kFeatures})));
       }},
  };
}

}  // namespace tare::testing
