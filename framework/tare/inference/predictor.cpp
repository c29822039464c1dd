#include "tare/inference/predictor.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

#include "tare/base/error.h"
#include "tare/checkpoint/match.h"
#include "tare/memory/backend.h"
#include "tare/memory/device.h"
#include "tare/model/registry.h"
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

// Lets every tensor of the model be the one on the mapped file; what it was goes back to the
// allocator.
void use_mapped(const Model& model, const Bundle& bundle) {
  const auto source = bundle.tensors();
  const auto match = checkpoint::compare(model.state(), source);
  if (!match.complete()) {
    throw FormatError("predictor", bundle.file().path().string(), "model",
                      "the weights do not fit; " + match.str());
  }
  for (const auto& target : model.state())
    target.tensor.set_data(bundle.file().tensor(target.name));
}

at::Tensor activated(const at::Tensor& output, const std::string& activation) {
  if (activation == "softmax") return at::softmax(output, 1);
  if (activation == "exp") return at::exp(output);
  if (activation == "sigmoid") return at::sigmoid(output);
  return output;
}

std::string batch_of(const std::vector<int64_t>& shape) {
  std::string text = "[batch";
  for (const int64_t size : shape) text += ", " + std::to_string(size);
  return text + "]";
}

std::vector<int64_t> most_probable(const std::vector<float>& scores, int64_t top) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min(order.size(), static_cast<size_t>(std::max<int64_t>(top, 1)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](int64_t a, int64_t b) {
                      const float left = scores[static_cast<size_t>(a)],
                                  right = scores[static_cast<size_t>(b)];
                      return left > right || (left == right && a < b);
                    });
  order.resize(count);
  return order;
}

}  // namespace

Predictor::Predictor(Bundle bundle, Model model, const PredictorOptions& options)
    : bundle_(std::move(bundle)),
      model_(std::move(model)),
      device_(memory::parse_device(options.device)) {
  if (device_.is_cpu()) {
    use_mapped(model_, bundle_);
  } else {
    load_weights(model_, bundle_);
    model_.to(device_);
  }
  model_.train(false);
}

Predictor::Predictor(const Bundle& bundle, const PredictorOptions& options)
    : Predictor(bundle, build(bundle), options) {}

Predictor::Predictor(const std::filesystem::path& path, const PredictorOptions& options)
    : Predictor(open_bundle(path), options) {}

Predictor::Predictor(const std::filesystem::path& path, Model model,
                     const PredictorOptions& options)
    : Predictor(open_bundle(path), std::move(model), options) {}

at::Tensor Predictor::transformed(const at::Tensor& images) const {
  if (!images.defined() || images.dim() < 2)
    throw ShapeError(kPredict, batch_of(sample_shape()), "no batch");
  const bool is_image = images.dim() == 4;
  if (!is_image && (!manifest().transforms.steps().empty() || images.scalar_type() != at::kFloat)) {
    throw ShapeError(kPredict,
                     "[batch, channels, height, width], or float32 where there are no transforms",
                     checkpoint::describe(images.scalar_type(), images.sizes()));
  }
  at::Tensor input =
      is_image ? manifest().transforms.apply(images.contiguous(), {}, /*training=*/false) : images;
  if (!sample_shape().empty() && input.sizes().slice(1) != c10::IntArrayRef(sample_shape())) {
    throw ShapeError(kPredict, batch_of(sample_shape()) + " after the transforms",
                     checkpoint::describe(input.scalar_type(), input.sizes()));
  }
  return input;
}

at::Tensor Predictor::predict(const at::Tensor& images) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor input = transformed(images);
  const at::Tensor output = model_.forward(input.to(device_)).to(at::kFloat);
  return activated(output, manifest().activation).cpu();
}

std::vector<Prediction> Predictor::classify(const std::filesystem::path& image, int64_t top) {
  const auto& shape = sample_shape();
  if (shape.size() != 3)
    throw StateError("predictor.classify", "the model takes no images", "use predict()");
  at::Tensor pixels = read_png(image, shape[0]);
  if (manifest().transforms.output_shape(pixels.sizes().vec()) != shape) {
    pixels = resize_image(pixels, shape[1], shape[2]);
  }
  const at::Tensor output = predict(pixels.unsqueeze(0)).contiguous();
  if (output.dim() != 2)
    throw StateError("predictor.classify", "the model gives no class scores", "use predict()");
  const float* data = output.const_data_ptr<float>();
  const std::vector<float> scores(data, data + output.numel());
  std::vector<Prediction> result;
  for (const int64_t index : most_probable(scores, top)) {
    const auto at = static_cast<size_t>(index);
    const auto& labels = manifest().labels;
    result.push_back({at < labels.size() ? labels[at] : std::to_string(index), index, scores[at]});
  }
  return result;
}

Ledger Predictor::ledger() const {
  Ledger ledger;
  const bool mapped = device_.is_cpu();
  for (const auto& p : model_.parameters()) {
    ledger.add(mapped ? Category::mapped : Category::parameters, p.name, p.tensor);
  }
  for (const auto& b : model_.buffers())
    ledger.add(mapped ? Category::mapped : Category::buffers, b.name, b.tensor);
  return ledger;
}

PurgeReport Predictor::purge_account(const PurgeOptions&) {
  PurgeReport report;
  report.tracked_before = report.tracked_after = memory::backend(device_).usage().allocated_bytes;
  return report;
}

}  // namespace tare
