// Recipes: a training run, phase by phase, as a YAML file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/config/field.h"
#include "tare/config/node.h"
#include "tare/config/registry.h"
#include "tare/data/datasets.h"
#include "tare/data/limit.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/optim/schedule.h"
#include "tare/train/options.h"

namespace tare {

/// Names a model and its options; in YAML one mapping: `model: {name: resnet9, width: 16}`. `model:
/// {torchscript: net.pt, trust: true}` stands for the model torchscript with these options.
struct ModelChoice {
  std::string name = "resnet9";  ///< of the registry, see `tare ls models`
  /// Classes (0, in YAML `auto`: as many as the labels of the recipe's data) and sample_shape,
  /// where not given, come from the data.
  ModelOptions options{.classes = 0};
  bool operator==(const ModelChoice&) const = default;
};
void from_node(const config::Node& node, ModelChoice& value);
[[nodiscard]] config::Node to_node(const ModelChoice& value);

/// Names a callback of callbacks::registry(), with its options.
struct CallbackChoice : config::Choice {};
/// Reads the name and completes the options. Throws ConfigError for a name or option that the
/// registry does not have.
void from_node(const config::Node& node, CallbackChoice& value);
[[nodiscard]] config::Node to_node(const CallbackChoice& value);

/// Configures one phase: data, what is frozen, epochs and learning rate. Each phase is measured by
/// an Experiment and purged at its end.
struct PhaseOptions {
  std::string name{};                       ///< empty: "phase N", counted from 1
  std::optional<DataOptions> data{};        ///< unset: the recipe's
  int64_t size = 0;                         ///< height and width of the images; 0: as in `data`
  int64_t batch = 0;                        ///< samples per step; 0: the recipe's, see there
  std::optional<MicroBatch> micro_batch{};  ///< unset: the recipe's
  std::optional<BlockNames> recompute{};    ///< unset: the recipe's
  std::optional<BlockNames> offload{};      ///< unset: the recipe's
  std::string load{};       ///< checkpoint of an earlier phase to start from, weights only
  bool reset_head = false;  ///< initialise the model's head again
  int64_t freeze_to = 0;    ///< first trainable layer group; negative: from the end; 0: all train
  int64_t epochs = 1;       ///< passes over the training split, 1 to kMostEpochs
  /// In place of `epochs`: steps, samples or minutes.
  std::optional<Duration> duration{};
  /// Sets the peak rate; {from, to}: over the layer groups; unset: the recipe's optimizer.lr.
  std::optional<LearningRate> lr{};
  Schedule schedule{.kind = "one_cycle"};  ///< of the learning rate
  HyperSchedules schedules{};              ///< of momentum, beta2 and weight decay
  /// The phase ends with the weights of the epoch in which this figure was best: train_loss,
  /// valid_loss or a metric; empty: with those of its last epoch.
  std::string best{};
  std::vector<CallbackChoice> callbacks{};  ///< of this phase, after those of the recipe
  bool clear_opt = true;  ///< also free the optimizer's state at the end of the phase
  std::string save{};     ///< name of a checkpoint to write at the end; empty: none
  bool operator==(const PhaseOptions&) const = default;
};
void visit_fields(auto& visit, PhaseOptions& o) {
  visit("name", o.name);
  visit("data", o.data);
  visit("size", o.size, config::between(0, 16384));
  visit("batch", o.batch, config::at_least(0));
  visit("micro_batch", o.micro_batch, config::at_least(1));
  visit("recompute", o.recompute);
  visit("offload", o.offload);
  visit("load", o.load, config::text_or_null());
  visit("reset_head", o.reset_head);
  visit("freeze_to", o.freeze_to);
  visit("epochs", o.epochs, config::between(1, kMostEpochs));
  visit("duration", o.duration);
  visit("lr", o.lr, config::above(0));
  visit("schedule", o.schedule);
  visit("schedules", o.schedules);
  visit("best", o.best, config::text_or_null());
  visit("callbacks", o.callbacks);
  visit("clear_opt", o.clear_opt);
  visit("save", o.save, config::text_or_null());
}

/// Locates the values of a recipe in its file, for messages. A value.
class RecipeFile {
 public:
  RecipeFile() = default;
  /// Takes the root of the parsed file, with its sources.
  explicit RecipeFile(config::Node root);
  /// Returns the place in the file of the value at a dotted path ("phases.0.batch") or, if there is
  /// none, of what would contain it; empty for a recipe made in code.
  [[nodiscard]] Source place(const std::string& path) const;
  /// Whether the recipe was read from a file.
  explicit operator bool() const { return root_ != nullptr; }
  /// Whether the recipe gives a value at this path.
  [[nodiscard]] bool has(const std::string& path) const;

 private:
  /// Returns the value, or the last of the mappings and lists that lead to it, and whether it is
  /// the value.
  [[nodiscard]] std::pair<const config::Node*, bool> find(const std::string& path) const;

  std::shared_ptr<const config::Node> root_;
};

/// Holds a whole recipe; docs/recipes.md explains every key.
struct RecipeOptions {
  std::string name = "run";               ///< of the run's folder, a single path component
  std::filesystem::path folder = "runs";  ///< the run's folder is folder/name
  std::optional<int64_t> batch{};         ///< samples per step, >= 1; unset: see default_batch()
  /// The options of every phase's Learner. Its keys stand beside the others in a file. `batch` and
  /// `folder` stand here instead, and what a file cannot contain, such as a function, is refused.
  LearnerOptions learner{.metrics = {"accuracy"}};
  int64_t save_every = 500;  ///< steps between two automatic checkpoints; 0: only between phases
  DataOptions data{};        ///< of all phases, where a phase has none of its own
  LimitOptions limit{};      ///< of every phase, see limited()
  int64_t overfit = 0;       ///< batches that every phase learns by heart, see overfitted(); 0: off
  ModelChoice model{};       ///< by name
  std::vector<CallbackChoice> callbacks{};  ///< of every phase, made once for the run
  std::vector<PhaseOptions> phases{};       ///< at least one
  bool test = true;  ///< evaluate the test split at the end, or the validation split without one
  std::optional<std::string> export_to{};    ///< file name of the bundle, in the run's folder
  std::string export_weights = "as_is";      ///< see ExportOptions::weights
  std::optional<double> export_tolerance{};  ///< see ExportOptions::tolerance
  /// Formats of files for other programs, beside the bundle, see interchange::file_formats().
  std::vector<std::string> export_formats{};
  bool export_fold_norms = false;  ///< in those files, see ExportOptions::fold_norms
  int64_t export_opset = 18;       ///< of the onnx file, see ExportOptions::opset
  RecipeFile file{};               ///< set by read_recipe()
  /// Whether loss and metrics are those for the targets of the data; see set_target_defaults().
  bool targets_known = false;
};
void visit_fields(auto& visit, RecipeOptions& o) {
  visit("name", o.name);
  visit.select(o.learner, {"seed", "device", "stages"});
  visit("folder", o.folder);
  visit("batch", o.batch, config::at_least(1));
  visit.select(o.learner,
               {"micro_batch", "recompute", "offload", "precision", "step_in_backward", "graph",
                "frozen_weights", "kernels", "shuffle", "sampling", "class_sampling",
                "group_by_length", "drop_last", "stop_on_nan", "workers", "valid_every"});
  visit("save_every", o.save_every, config::at_least(0));
  visit.select(o.learner, {"save_in_background"});
  visit("data", o.data);
  visit("limit", o.limit);
  visit("overfit", o.overfit, config::at_least(0));
  visit("model", o.model);
  visit.select(o.learner, {"loss", "metrics", "optimizer", "clip", "data_parallel"});
  visit("callbacks", o.callbacks);
  visit("phases", o.phases);
  visit("test", o.test);
  visit("export", o.export_to);
  visit("export_weights", o.export_weights, config::one_of(weight_storages()));
  visit("export_tolerance", o.export_tolerance, config::at_least(0));
  visit("export_formats", o.export_formats);
  visit("export_fold_norms", o.export_fold_norms);
  visit("export_opset", o.export_opset, config::at_least(1));
}
/// Whether both have equal dumps; where they were read from does not count.
[[nodiscard]] bool operator==(const RecipeOptions& one, const RecipeOptions& other);

/// Returns the name of the recipe's loss; empty for a function, which is refused with the recipe.
[[nodiscard]] std::string loss_name(const RecipeOptions& recipe);
/// Returns the columns of the recipe's metrics, see column_of(), in their order; empty for
/// functions.
[[nodiscard]] std::vector<std::string> chosen_metrics(const RecipeOptions& recipe);

/// Returns the samples of a step where a recipe names no batch: the highest power of two, from 8 to
/// 128, that gives at least 12 steps an epoch, and never more than there are samples.
[[nodiscard]] int64_t default_batch(int64_t training_samples);

}  // namespace tare
