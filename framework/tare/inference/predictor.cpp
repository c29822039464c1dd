// Transforms samples, runs a bundle's model and names the classes.
#include "tare/inference/predictor.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/highest.h"
#include "tare/checkpoint/match.h"
#include "tare/inference/one_score.h"
#include "tare/memory/backend.h"
#include "tare/model/held_weights.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/runtime/device_name.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

constexpr const char* kPredict = "predictor.predict";

// Built without its weights, which the Predictor puts in.
Model build(const Bundle& bundle) {
  if (bundle.manifest().model.name.empty()) {
    throw ConfigError("predictor",
                      "'" + printable(bundle.file().path().string()) +
                          "' holds a model that is not in the registry; give its module too");
  }
  return models::make(bundle.manifest().model);
}

// Returns the size of the vocabulary of a registry model; 0 for a model that takes no tokens.
int64_t vocabulary_of(const ModelSpec& spec) {
  const auto known = models::names();
  if (std::ranges::find(known, spec.name) == known.end()) return 0;
  const models::Family family = models::family(spec.name);
  return family.tokens ? class_count({.model = spec}).value_or(0) : family.vocabulary;
}

// Lets every tensor of the model be the one on the mapped file; what it was goes back to the
// allocator.
void use_mapped(const Model& model, const Bundle& bundle) {
  const auto& path = bundle.file().path();
  const auto match = compare_stored(model, bundle.tensors(), "predictor", path);
  if (!match.complete()) {
    throw FormatError("predictor", path.string(), "model",
                      "the weights do not fit; " + match.str());
  }
  for (const auto& target : model.state()) {
    const at::Tensor mapped = bundle.file().tensor(target.name);
    at::Tensor parameter = target.tensor;
    if (!mapped.is_floating_point()) parameter.set_requires_grad(false);  // int8 cannot have one
    parameter.set_data(mapped);
  }
}

/// The type of a model that was trained in 16 bits, whose inputs are converted to it; else unset.
std::optional<c10::ScalarType> half_type_of(const Model& model) {
  for (const Parameter& parameter : model.parameters())
    if (const auto type = parameter.tensor.scalar_type();
        type == c10::kBFloat16 || type == c10::kHalf)
      return type;
  return std::nullopt;
}

at::Tensor activated(const at::Tensor& output, const std::string& activation) {
  if (activation == "softmax") return at::softmax(output, 1);
  if (activation == "exp") return at::exp(output);
  if (activation == "sigmoid") return at::sigmoid(output);
  return output;
}

/// Holds the shape that an input has without the batch; kAny where it may have any size.
using Pattern = std::vector<int64_t>;
constexpr int64_t kAny = -1;

Pattern pattern_of(std::vector<int64_t> shape, const std::vector<int64_t>& any_size) {
  for (const int64_t dimension : any_size) shape[static_cast<size_t>(dimension)] = kAny;
  return shape;
}

/// The first input: images and features as in training, tokens of any length.
Pattern pattern_of(const BundleManifest& manifest) {
  return pattern_of(manifest.sample_shape, any_size(manifest));
}

/// An input after the first. Bundles of earlier versions do not say what is of any size; masks and
/// further tokens beside tokens are.
Pattern pattern_of(const BundleInput& input, bool beside_tokens) {
  const bool any_length = beside_tokens && !input.sample_shape.empty() &&
                          input.dtype != "float32" && input.dtype != "float64";
  if (input.any_size.empty() && any_length) return pattern_of(input.sample_shape, {0});
  return pattern_of(input.sample_shape, input.any_size);
}

/// Whether a tensor [batch, ...] has the shape.
bool fits(const at::Tensor& input, const Pattern& pattern) {
  return std::ranges::equal(input.sizes().slice(1), pattern, [](int64_t size, int64_t wanted) {
    return wanted == kAny ? size > 0 : size == wanted;
  });
}

std::string batch_of(const Pattern& pattern) {
  std::string text = "[batch";
  for (const int64_t size : pattern)
    text += ", " + (size == kAny ? "any size" : std::to_string(size));
  return text + "]";
}

}  // namespace

Predictor::Predictor(const Bundle& bundle, Model model, const PredictorOptions& options)
    : manifest_(bundle.manifest()),
      own_(std::make_shared<Model>(std::move(model))),
      model_(own_),
      device_(runtime::open_device(options.device)),
      dtype_(bundle_dtype(manifest_.input)),
      forward_(options.forward),
      vocabulary_(vocabulary_of(manifest_.model)) {
  check_forward(*own_);
  const bool widens = manifest_.weights == "bf16" || manifest_.weights == "fp16";
  if (!widens && (device_.is_cpu() || !bundle.scales().empty())) {
    use_mapped(*own_, bundle);
    outside_ = own_->hold_stored(bundle.scales());
  } else {
    load_weights(*own_, bundle);
  }
  own_->to(device_);
  own_->train(false);
  half_ = half_type_of(*own_);
}

Predictor::Predictor(BundleManifest manifest, std::weak_ptr<Model> model, c10::Device device,
                     std::function<Outputs(Model&, const Batch&)> forward)
    : manifest_(std::move(manifest)),
      model_(std::move(model)),
      device_(device),
      dtype_(bundle_dtype(manifest_.input)),
      forward_(std::move(forward)),
      vocabulary_(vocabulary_of(manifest_.model)) {
  const std::shared_ptr<Model> now = the_model("predictor");
  check_forward(*now);
  half_ = half_type_of(*now);
}

std::shared_ptr<Model> Predictor::the_model(const char* call) const {
  if (auto model = model_.lock()) return model;
  throw StateError(call, "after the Learner with the model was destroyed",
                   "export the model first, and predict from the bundle");
}

void Predictor::check_forward(const Model& model) const {
  if (!forward_ && !model.has_forward())
    throw StateError("predictor", "with a model without a forward of tensors or of a Batch",
                     "give PredictorOptions::forward, such as the Task's predict");
}

Predictor::Predictor(const Bundle& bundle, const PredictorOptions& options)
    : Predictor(bundle, build(bundle), options) {}

Predictor::Predictor(const std::filesystem::path& path, const PredictorOptions& options)
    : Predictor(open_bundle(path), options) {}

Predictor::Predictor(const std::filesystem::path& path, Model model,
                     const PredictorOptions& options)
    : Predictor(open_bundle(path), std::move(model), options) {}

SampleKind Predictor::sample_kind() const { return tare::sample_kind(manifest()); }

void Predictor::check_shape(const at::Tensor& input) const {
  const Pattern pattern = pattern_of(manifest());
  if (sample_shape().empty() || fits(input, pattern)) return;
  throw ShapeError(kPredict, batch_of(pattern) + " after the transforms",
                   checkpoint::describe(input.scalar_type(), input.sizes()));
}

void Predictor::check_tokens(const at::Tensor& tokens) const {
  if (vocabulary_ == 0 || tokens.scalar_type() != c10::kLong) return;
  const at::Tensor all = tokens.contiguous();
  const int64_t* token = all.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < all.numel(); ++i) {
    if (token[i] >= 0 && token[i] < vocabulary_) continue;
    throw ConfigError(kPredict, "tokens must be in [0, " + std::to_string(vocabulary_) +
                                    "), the model's vocabulary, got " + std::to_string(token[i]));
  }
}

at::Tensor Predictor::transformed(const at::Tensor& inputs) const {
  if (!inputs.defined() || inputs.dim() < 1 || (inputs.dim() < 2 && !sample_shape().empty()))
    throw ShapeError(kPredict, batch_of(pattern_of(manifest())), "no batch");
  const bool by_transforms = dtype_ == c10::kFloat && inputs.dim() == 4;
  if (!by_transforms &&
      (!manifest().transforms.steps().empty() || inputs.scalar_type() != dtype_)) {
    const bool pictures = dtype_ == c10::kFloat;
    throw ShapeError(kPredict,
                     pictures ? "[batch, channels, height, width], or float32 where there are no "
                                "transforms"
                              : manifest().input + " " + batch_of(pattern_of(manifest())),
                     checkpoint::describe(inputs.scalar_type(), inputs.sizes()));
  }
  at::Tensor input = by_transforms ? manifest().transforms.apply(inputs.contiguous(), {},
                                                                 /*training=*/false)
                                   : inputs;
  check_shape(input);
  if (sample_kind() == SampleKind::tokens) check_tokens(input);
  return input;
}

// An input after the first: an image gets the transforms, any other has to fit as it is.
at::Tensor Predictor::transformed(const at::Tensor& inputs, const BundleInput& as) const {
  const bool by_transforms = as.dtype == "float32" && as.sample_shape.size() == 3;
  const at::Tensor input =
      by_transforms && inputs.dim() == 4
          ? manifest().transforms.apply(inputs.contiguous(), {}, /*training=*/false)
          : inputs;
  const Pattern pattern = pattern_of(as, sample_kind() == SampleKind::tokens);
  const bool is_batch = input.dim() > 0 && input.scalar_type() == bundle_dtype(as.dtype);
  if (is_batch && fits(input, pattern)) return input;
  throw ShapeError(kPredict, printable(as.name) + ": " + as.dtype + " " + batch_of(pattern),
                   checkpoint::describe(inputs.scalar_type(), inputs.sizes()));
}

Batch Predictor::transformed(const Batch& batch) const {
  const auto& more = manifest().more_inputs;
  if (batch.inputs.size() != 1 + more.size())
    throw ShapeError(kPredict, std::to_string(1 + more.size()) + " inputs",
                     std::to_string(batch.inputs.size()));
  Batch ready;
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    const auto& [name, tensor] = batch.inputs[i];
    const at::Tensor input = i == 0 ? transformed(tensor) : transformed(tensor, more[i - 1]);
    if (input.size(0) != batch.size())
      throw ShapeError(kPredict, "as many samples of each input, " + std::to_string(batch.size()),
                       std::to_string(input.size(0)) + " of " + printable(name));
    const bool converts = half_ && input.is_floating_point();
    ready.inputs.push_back({name, converts ? input.to(device_, *half_) : input.to(device_)});
  }
  return ready;
}

Outputs Predictor::predict(const Batch& batch) {
  const c10::AutoGradMode no_grad(false);
  const Batch ready = transformed(batch);
  const std::shared_ptr<Model> model = the_model(kPredict);
  std::optional<EvaluationScope> evaluation;
  if (!own_) evaluation.emplace(*model);
  std::optional<OpenWeights> open;
  if (outside_) open.emplace(outside_);
  Outputs outputs = forward_ ? forward_(*model, ready) : model->forward(ready);
  for (at::Tensor& output : outputs)
    output = activated(output.to(at::kFloat), manifest().activation).cpu();
  return outputs;
}

at::Tensor Predictor::predict(const at::Tensor& inputs) {
  if (!inputs.defined()) (void)transformed(inputs);  // throws
  return predict(Batch(inputs)).front();
}

at::Tensor Predictor::picture_input(const at::Tensor& pixels) const {
  if (sample_kind() != SampleKind::image)
    throw StateError("predictor.picture_input", "the model takes no images", "use predict()");
  const auto& shape = sample_shape();
  const bool fits = manifest().transforms.output_shape(pixels.sizes().vec()) == shape;
  if (fits) return pixels.unsqueeze(0);
  return resize_image(pixels, shape[1], shape[2], manifest().antialias).unsqueeze(0);
}

at::Tensor Predictor::predict_picture(const at::Tensor& pixels) {
  return predict(picture_input(pixels));
}

std::vector<Prediction> Predictor::classify(const std::filesystem::path& image, int64_t top) {
  if (sample_kind() != SampleKind::image)
    throw StateError("predictor.classify", "the model takes no images", "use predict()");
  return classes(predict_picture(read_image(image, sample_shape()[0])), top);
}

bool Predictor::has_classes(const at::Tensor& prediction) const {
  const bool scores =
      prediction.dim() == 2 || (prediction.dim() == 3 && sample_kind() == SampleKind::tokens);
  return scores && gives_classes(manifest());
}

std::vector<Prediction> Predictor::classes(const at::Tensor& prediction, int64_t top) const {
  const bool by_token = prediction.dim() == 3 && sample_kind() == SampleKind::tokens;
  if ((prediction.dim() != 2 && !by_token) || prediction.size(0) != 1 || prediction.numel() == 0)
    throw StateError("predictor.classify", "the model gives no class scores", "use predict()");
  const at::Tensor last = by_token ? prediction.select(2, prediction.size(2) - 1) : prediction;
  const at::Tensor row = last.to(at::kFloat).contiguous();
  const float* data = row.const_data_ptr<float>();
  std::vector<float> scores(data, data + row.numel());
  std::vector<Prediction> result;
  const auto& labels = manifest().labels;
  // The probability of labels of 0 and 1 in one column, which have no names.
  if (labels.empty() && manifest().activation == "sigmoid" && scores.size() == 1)
    return {{.label = "1", .index = 1, .probability = scores.front()}};
  if (has_one_score(manifest()) && scores.size() == 1)
    scores = {1 - scores.front(), scores.front()};
  for (const size_t at : highest(scores, static_cast<size_t>(std::max<int64_t>(top, 1))))
    result.push_back({at < labels.size() ? labels[at] : std::to_string(at),
                      static_cast<int64_t>(at), scores[at]});
  return result;
}

Ledger Predictor::ledger() const {
  Ledger ledger;
  if (!own_) return ledger;
  const bool mapped = device_.is_cpu();
  own_->account(ledger, mapped ? Category::mapped : Category::parameters,
                mapped ? Category::mapped : Category::buffers);
  return ledger;
}

PurgeReport Predictor::purge_account(const PurgeOptions&) {
  PurgeReport report;
  report.tracked_before = report.tracked_after = memory::backend(device_).usage().allocated_bytes;
  return report;
}

}  // namespace tare
