// Checks the phases of a recipe against their data.
#include "tare/recipe/phase_data.h"
#include "tare/parallel/stages.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/scalar.h"
#include "tare/data/picture_list.h"
#include "tare/data/sampling.h"
#include "tare/interchange/export_file.h"
#include "tare/metric/check.h"
#include "tare/plan/recompute.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/column_check.h"
#include "tare/recipe/figure_check.h"
#include "tare/recipe/refused_value.h"
#include "tare/recipe/target_metrics.h"
#include "tare/train/bundle_data.h"
#include "tare/train/last_batch.h"

namespace tare {
namespace {

/// Calls `call`, and adds the place of the field below `path` to its errors.
template <class Call>
auto at_fields(const RecipeOptions& recipe, const std::string& path, const Call& call) {
  try {
    return call();
  } catch (const ConfigError& error) {
    throw error.within(path, recipe.file.place(path + '.' + error.field()));
  }
}

void check_batch_size(const RecipeOptions& recipe, size_t phase, const DataFacts& data) {
  const PhaseOptions& options = recipe.phases[phase];
  const int64_t batch = batch_of(recipe, options, data), samples = data.training_samples;
  if (batch > samples)
    refuse(recipe, batch_path(recipe, phase), "is larger than the training split",
           "at most its " + std::to_string(samples) + " samples", std::to_string(batch));
  const auto micro_batch = micro_batch_of(recipe, options);
  if (micro_batch && *micro_batch > batch)
    refuse(recipe, path_of("micro_batch", options.micro_batch.has_value(), phase),
           "is larger than the batch of " + phase_number(phase) +
               ", which the size of the data decides",
           "auto, or at most " + std::to_string(batch), std::to_string(*micro_batch));
}

/// Refuses labels of the parts of a sample, such as the pixels of a mask, for which the model has
/// no output. A training would meet them in the batch that has them, and perhaps never.
void check_parts_labels(const RecipeOptions& recipe, size_t phase, const Splits& splits,
                        int64_t classes) {
  int64_t highest = -1;
  for (const DatasetPtr& set : {splits.train, splits.valid, splits.test}) {
    if (!set) continue;
    const at::Tensor labels = set->targets();
    if (labels.defined() && labels.scalar_type() == at::kLong && labels.dim() > 1 &&
        labels.numel() > 0)
      highest = std::max(highest, labels.max().item<int64_t>());
  }
  if (highest < classes) return;
  refuse(recipe, "model.classes",
         "is less than the classes of the labels of " + name_of(recipe, phase) +
             ", of which one is " + std::to_string(highest),
         "at least " + std::to_string(highest + 1) + ", or other labels", std::to_string(classes));
}

/// Refuses `export` if a bundle cannot describe the data of the last phase.
void check_export(const RecipeOptions& recipe, const DataFacts& data) {
  if (recipe.export_tolerance && !data.has_valid)
    refuse(recipe, "export_tolerance", "needs a validation split in the data of the last phase",
           "omit it, or data.valid", config::number_text(*recipe.export_tolerance));
  if (export_name(recipe).empty() || !data.bundle) return;
  try {
    check_describable(*data.bundle, "recipe.run");
  } catch (const Error& error) {
    refuse(recipe, "export", std::string("is not possible: ") + error.what(),
           "other data, or no `export`", export_name(recipe));
  }
}

}  // namespace

void check_formats(const RecipeOptions& recipe, const DataFacts& data, const ModelSpec& model) {
  BundleManifest manifest{.model = model};
  if (data.bundle && !recipe.export_formats.empty()) describe(manifest, *data.bundle, "recipe.run");
  for (size_t i = 0; i < recipe.export_formats.size(); ++i) {
    const std::string path = "export_formats." + std::to_string(i);
    const std::string& format = recipe.export_formats[i];
    try {
      interchange::check_file(
          format, manifest,
          {.fold_norms = folds_norms(recipe, format), .opset = opset_of(recipe, format)});
    } catch (const ConfigError& error) {
      refuse(recipe, path, "is not possible: " + std::string(error.what()),
             "another format, or none", format);
    }
  }
}

bool is_open(const RecipeOptions& recipe, size_t phase, const RecipeData& data) {
  const PhaseOptions& options = recipe.phases[phase];
  return data.is_open(data_of(recipe, options), cut_of(recipe, &options));
}

OpenData& open_data(const RecipeOptions& recipe, RecipeData& data) {
  return *at_fields(recipe, "data",
                    [&] { return &data.open(recipe.data, cut_of(recipe, nullptr)); });
}

OpenData& open_data(const RecipeOptions& recipe, size_t phase, RecipeData& data) {
  const PhaseOptions& options = recipe.phases[phase];
  try {
    return data.open(data_of(recipe, options), cut_of(recipe, &options));
  } catch (const ConfigError& error) {
    const std::string parent = options.size > 0 && error.field() == "size"
                                   ? "phases." + std::to_string(phase)
                                   : path_of("data", options.data.has_value(), phase);
    throw error.within(parent, recipe.file.place(parent + '.' + error.field()));
  }
}

namespace {

/// A global `valid_every` may suit other phases.
void warn_of_no_validation_inside(const RecipeOptions& recipe, size_t phase,
                                  const DataFacts& facts) {
  const int64_t every = recipe.learner.valid_every;
  const int64_t steps = all_batches(recipe, recipe.phases[phase], facts);
  if (every == 0 || every < steps) return;
  const std::string& name = recipe.phases[phase].name;
  log::warning_once("valid_every is " + std::to_string(every) + ", and " +
                    (name.empty() ? phase_number(phase) : "phase '" + printable(name) + '\'') +
                    " has " + std::to_string(steps) + (steps == 1 ? " step" : " steps") +
                    ": it validates at the end of an epoch only; set a lower valid_every, or 0");
}

}  // namespace

// Reports the errors that the fit would find at its first batch, and classes that no label of a
// batch has shown yet.
void check_data(const RecipeOptions& recipe, size_t phase, const OpenData& data) {
  const PhaseOptions& options = recipe.phases[phase];
  const DataFacts& facts = data.facts;
  if (facts.training_samples == 0) {
    refuse(recipe, path_of("data.train", options.data.has_value(), phase),
           "leaves no training split", "a part above 0", "0");
  }
  check_batch_size(recipe, phase, facts);
  if (!facts.has_valid && !options.best.empty() && options.best != "train_loss")
    refuse(recipe, path_of("best", true, phase), "needs a validation split", "train_loss",
           options.best);
  if (!facts.has_valid && recipe.learner.valid_every > 0)
    refuse(recipe, "valid_every", "needs a validation split", "0, or a data.valid above 0",
           std::to_string(recipe.learner.valid_every));
  warn_of_no_validation_inside(recipe, phase, facts);
  check_callbacks(recipe, phase, facts);
  at_value(recipe, "sampling", [&] {
    if (recipe.learner.sampling == "balanced")
      (void)balancing_weights(data.named.splits.train, "recipe.run");
  });
  at_value(recipe, "class_sampling", [&] {
    if (const auto& weights = recipe.learner.class_sampling.weights; !weights.empty())
      (void)class_weights(data.named.splits.train, weights, "recipe.run");
  });
  at_value(recipe, "group_by_length", [&] {
    if (recipe.learner.group_by_length)
      (void)sample_lengths(*data.named.splits.train, "recipe.run");
  });
  const int64_t classes = classes_of(recipe, facts), labels = facts.labels.classes;
  const std::string loss = loss_name(recipe);
  const bool by_class = loss == "cross_entropy" || loss == "nll";
  if (by_class && classes < labels) {
    refuse(recipe, "model.classes",
           "is less than the " + std::to_string(labels) + " classes of the data" +
               (options.data ? " of " + name_of(recipe, phase) : ""),
           "at least " + std::to_string(labels), std::to_string(classes));
  }
  if (by_class && !facts.untrained_classes.empty())
    log::warning_once("no sample of the training split" +
                      (options.data ? " of " + name_of(recipe, phase) : std::string()) + " is of " +
                      (facts.untrained_classes.size() == 1 ? "the class " : "the classes ") +
                      listed(facts.untrained_classes, 10) +
                      ", which the validation or the test split has: no model learns what it is");
  const bool new_outputs = phase == 0 || options.reset_head;  // else check_same_targets() refuses
  if (by_class && options.data && new_outputs && labels > 0 && labels < classes)
    log::warning_once("the data of " + name_of(recipe, phase) + " have " + std::to_string(labels) +
                      " classes, and the model has " + std::to_string(classes) +
                      " outputs: the phase trains the others never to be chosen; for a model of " +
                      std::to_string(labels) +
                      " outputs give these data to a recipe of their own, whose model.weights is "
                      "the bundle of this one");
  if (by_class && labels == 0 && data_of(recipe, options).name == "npy")
    check_parts_labels(recipe, phase, data.named.splits, classes);
  check_one_score(recipe, facts, classes);
  check_targets(recipe, phase, data.named.splits, classes);
  check_columns(recipe, data);
  warn_of_units(recipe, phase, data.named.splits);
  if (phase + 1 == recipe.phases.size()) check_export(recipe, facts);
}

namespace {

/// Checks the data of a model of tokens, whose sample_shape is the longest that it takes.
void check_tokens(const RecipeOptions& recipe, const DataFacts& first) {
  const auto &given = recipe.model.options.sample_shape, &found = first.sample_shape;
  const at::Tensor input = first.sample.input();
  if (input.defined() && (input.is_floating_point() || input.dim() != 2))
    refuse(recipe, "model.name",
           "takes tokens, and a sample of the data is " + tare::describe(input[0]),
           "data whose samples are lists of whole numbers, or another model", recipe.model.name);
  if (given.size() == 1 && found.size() == 1 && given[0] < found[0])
    refuse(recipe, "model.sample_shape", "is less than the longest sample of the data",
           "at least [" + std::to_string(found[0]) + "]", c10::str(at::IntArrayRef(given)));
}

}  // namespace

void check_sample_shape(const RecipeOptions& recipe, const DataFacts& first) {
  if (models::family(recipe.model.name).tokens) return check_tokens(recipe, first);
  const auto &given = recipe.model.options.sample_shape, &found = first.sample_shape;
  if (!given.empty() && given != found)
    refuse(recipe, "model.sample_shape", "is not the shape of the samples of the first phase",
           "omit it, or " + c10::str(at::IntArrayRef(found)), c10::str(at::IntArrayRef(given)));
}

void check_batches(const RecipeOptions& recipe, size_t phase, const DataFacts& data, int64_t ranks,
                   const std::function<bool()>& refuses) {
  const PhaseOptions& options = recipe.phases[phase];
  const BatchSizes sizes{.samples = data.training_samples,
                         .batch = batch_of(recipe, options, data),
                         .micro_batch = micro_batch_of(recipe, options),
                         .drop_last = recipe.learner.drop_last,
                         .ranks = ranks};
  const bool every = single_part(sizes) == SinglePart::every_batch;
  try {
    check_single_samples("recipe.run", sizes, refuses);
  } catch (const ConfigError& error) {
    refuse(recipe, every ? samples_path(recipe, phase) : "drop_last",
           "is refused: " + error.problem(), error.allowed(), error.got());
  }
}

bool refuses_one_of(const DataFacts& data, Model& model) {
  return refuses_single_sample(model, {model.device()}, data.sample,
                               [&](const Batch& batch) { return model.forward(batch); });
}

void check_files(const RecipeOptions& recipe) {
  const std::string& weights = recipe.model.options.weights;
  std::error_code ignored;  // a file that may not be looked at is refused when it is read
  if (!weights.empty() && !std::filesystem::exists(weights, ignored) && !ignored)
    refuse(recipe, "model.weights", "is not there",
           "a bundle, a safetensors file or a state dict of PyTorch", weights);
  at_fields(recipe, "data", [&] { datasets::check_files(recipe.data); });
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    if (recipe.phases[i].data)
      at_fields(recipe, path_of("data", true, i),
                [&] { datasets::check_files(*recipe.phases[i].data); });
}

void make_for(const RecipeOptions& recipe, const DataFacts& data,
              const std::function<void()>& make) {
  try {
    make();
  } catch (const ConfigError& error) {
    const bool given = !recipe.model.options.sample_shape.empty();
    if (given || (!error.field().empty() && error.field() != "sample_shape"))
      throw error.within("model", recipe.file.place("model." + error.field()));
    const bool of_shape = !error.field().empty() && !error.allowed().empty();
    refuse(recipe, "model.name",
           "cannot be made for samples of shape " + c10::str(at::IntArrayRef(data.sample_shape)) +
               ": " + (of_shape ? "the sample_shape " + error.problem() : error.what()),
           of_shape ? "data whose shape is " + error.allowed() + ", or another model"
                    : "other options of the model, another model, or other data",
           of_shape ? recipe.model.name : "");
  }
}

void check_model(const RecipeOptions& recipe, const DataFacts& data, Model& model) {
  const auto& inputs = data.sample.inputs;
  if (!inputs.empty() && !model.takes(inputs.size())) {
    std::string names;
    for (const NamedTensor& input : inputs) names += (names.empty() ? "" : ", ") + input.name;
    refuse(recipe, "model.name",
           "takes another number of inputs than the data give, which is " +
               std::to_string(inputs.size()) + ": " + printable(names),
           "another model, or other data (sequences: another data.collate)", recipe.model.name);
  }
  if (const auto& stages = recipe.learner.stages; !stages.empty())
    at_value(recipe, "stages", [&] {
      (void)parallel::Stages(model, stages, std::vector<c10::Device>(stages.size(), c10::kMeta), {},
                             "recipe");
    });
  const auto groups = static_cast<int64_t>(model.layer_groups().size());
  const models::Family family = models::family(recipe.model.name);
  const bool has_head =
      family.head_for ? !family.head_for(recipe.model.options).empty() : !family.head.empty();
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    const PhaseOptions& phase = recipe.phases[i];
    if (phase.reset_head && !has_head)
      refuse(recipe, path_of("reset_head", true, i),
             "needs a head, and the model " + recipe.model.name + " has none of its own", "false",
             "true");
    if (phase.freeze_to < -groups || phase.freeze_to >= groups)
      refuse(recipe, path_of("freeze_to", true, i),
             "is not a layer group of the model, which has " + std::to_string(groups),
             "from " + std::to_string(-groups) + " to " + std::to_string(groups - 1),
             std::to_string(phase.freeze_to));
    auto recompute = recompute_of(recipe, phase);
    if (is_auto(recompute)) recompute = {"all"};  // it needs at least one
    at_value(recipe, path_of("recompute", phase.recompute.has_value(), i),
             [&] { model.set_recompute(recompute); });
    at_value(recipe, path_of("offload", phase.offload.has_value(), i),
             [&] { model.set_offload(offload_of(recipe, phase)); });
  }
  if (recipe.learner.frozen_weights == "fp8")
    at_value(recipe, "frozen_weights", [&] { model.hold_frozen(true); });  // nothing is frozen yet
  model.set_recompute({});
  model.set_offload({});
}

namespace {

/// Returns a batch on the meta device of `samples` samples like the one that is given.
Batch widened(const Batch& sample, int64_t samples) {
  Batch batch = sample;
  for (auto* list : {&batch.inputs, &batch.targets})
    for (auto& [name, tensor] : *list) {
      std::vector<int64_t> sizes = tensor.sizes().vec();
      sizes[0] = samples;
      tensor = tensor.new_empty(sizes);
    }
  return batch;
}

}  // namespace

void check_forward(const RecipeOptions& recipe, size_t phase, const DataFacts& data, Model& model) {
  if (data.sample.inputs.empty()) return;
  const PhaseOptions& options = recipe.phases[phase];
  const int64_t samples = micro_batch_of(recipe, options).value_or(batch_of(recipe, options, data));
  const Batch batch = widened(data.sample, samples);
  const auto refuse_data = [&](const std::string& why) {
    const bool resized = options.size > 0;
    refuse(recipe, resized ? path_of("size", true, phase) : "model",
           (resized ? "gives samples of shape " : "does not take the data, samples of shape ") +
               c10::str(at::IntArrayRef(data.sample_shape)) +
               (resized ? ", which the model does not take: " : ": ") + why,
           resized ? "another size, or another model" : "a model for such data",
           resized ? std::to_string(options.size) : recipe.model.name);
  };
  const c10::AutoGradMode no_grad(false);
  const EvaluationScope evaluation(model);
  Outputs outputs;
  try {
    outputs = model.forward(batch);
  } catch (const ShapeError& error) {
    refuse_data(error.what());
  } catch (const c10::Error& error) {
    // A traced program names the device that it was traced on: the run tells whether it computes.
    if (recipe.model.name == "torchscript")
      return log::debug("the forward is not checked: " + std::string(error.what()));
    refuse_data(printable(error.what_without_backtrace(), 400));
  }
  if (outputs.size() != 1 || batch.targets.size() != 1) return;
  const at::Tensor& target = batch.target();
  const auto on_host = at::TensorOptions(target.scalar_type()).device(c10::kCPU);
  try_figures(recipe, outputs.front().sizes(), at::zeros(target.sizes(), on_host),
              "outputs of shape " + c10::str(outputs.front().sizes()), "");
}

namespace {

/// Returns how many numbers a sample has as its only target; 0: it is something else.
int64_t numbers_to_predict(const Batch& sample) {
  if (sample.targets.size() != 1) return 0;
  const at::Tensor& target = sample.target();
  if (!target.defined() || !target.is_floating_point() || target.dim() > 2) return 0;
  return target.dim() == 2 ? target.size(1) : 1;
}

/// Returns how data of this kind get labels, as the end of a sentence.
std::string where_labels_are(const DataOptions& data) {
  if (data.name == "image_folder" || data.name == "text_folder")
    return "; give each class a subfolder of '" + printable(data.folder) + "'";
  if (data.name == "image_list")
    return "; give '" + printable(data.file) + "' a column `label` (" + columns_text(data.file) +
           "), or name columns of numbers in data.targets";
  if (data.name == "text_list")
    return "; name the column of '" + printable(data.file) + "' that has them in data.target";
  return "";
}

}  // namespace

int64_t classes_of(const RecipeOptions& recipe, const DataFacts& data) {
  if (recipe.model.options.classes > 0) return recipe.model.options.classes;
  const LabelCount labels = data.labels;
  if (const int64_t numbers = numbers_to_predict(data.sample); numbers > 0) return numbers;
  if (labels.classes == 0 && recipe.data.name == "npy" && data.sample.targets.size() == 1 &&
      data.sample.target().scalar_type() == c10::kLong)
    refuse(recipe, "model.classes",
           "is missing: a label of '" + printable(recipe.data.labels) +
               "' is an array of whole numbers " + c10::str(data.sample.target().sizes().slice(1)) +
               ", in which no classes are counted",
           "the number of the model's outputs; or, where each number is 0 or 1, labels of float32, "
           "by numpy.save(FILE, labels.astype('float32'))",
           "auto");
  constexpr int64_t kBytes = 256;
  if (labels.classes == 0 && recipe.data.name == "text" && recipe.data.tokenizer == "bytes")
    return kBytes;
  if (labels.classes == 0)
    refuse(recipe, "model.classes",
           "is missing: the data has no class labels to count" + where_labels_are(recipe.data),
           "the number of the model's outputs", "auto");
  if (labels.classes == 1)
    refuse(recipe, "data", "has one class only, from which a model learns nothing",
           "samples of another class too, or model.classes: the number of classes", "");
  if (has_one_score(recipe, data)) return 1;
  // A stray label, such as 255 for "nothing", must not decide how many outputs a model has.
  if (labels.seen * 2 < labels.classes)
    refuse(recipe, "model.classes",
           "cannot be counted: only " + std::to_string(labels.seen) + " of the classes 0 to " +
               std::to_string(labels.classes - 1) +
               " have a sample; where the highest label is a stray one, mend the data",
           "the number of classes", "auto");
  return labels.classes;
}

ModelOptions model_options(const RecipeOptions& recipe, const DataFacts& data) {
  ModelOptions model = recipe.model.options;
  model.classes = classes_of(recipe, data);
  if (model.sample_shape.empty()) model.sample_shape = data.sample_shape;
  add_columns(model.options, recipe.model.name, data);
  return model;
}

}  // namespace tare
