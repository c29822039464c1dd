// Predicts by a network of the engine, and applies the activation.
#include "tare/lite/lite.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tare::lite {
namespace {

constexpr int64_t kMostThreads = 4096;

int64_t checked_threads(int64_t threads) {
  if (threads < 1 || threads > kMostThreads)
    throw ConfigError("lite.open", "threads must be 1 to 4096, got " + std::to_string(threads));
  return threads;
}

void activate(const Kernels& kernels, const std::string& activation, Output& output) {
  const auto all = static_cast<int64_t>(output.values.size());
  float* values = output.values.data();
  if (activation == "exp") kernels.exponential(values, all);
  if (activation == "sigmoid") kernels.sigmoid(values, all);
  if (activation != "softmax") return;
  const int64_t batch = output.shape[0], classes = output.shape[1];
  if (all == 0) return;
  const int64_t columns = all / (batch * classes);
  for (int64_t n = 0; n < batch; ++n, values += classes * columns) {
    if (columns == 1)
      kernels.softmax(values, classes, 1);
    else
      kernels.softmax_columns(values, classes, columns);
  }
}

std::string text_of(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

bool is_known(const std::string& activation) {
  return activation == "softmax" || activation == "exp" || activation == "sigmoid" ||
         activation == "none";
}

}  // namespace

Model::Model(const std::filesystem::path& path, const ModelOptions& options)
    : bundle_(path),
      preparation_(bundle_),
      engine_(options.kernels ? *options.kernels : best_kernels(),
              checked_threads(options.threads)),
      network_(make_network(bundle_)) {
  if (!is_known(manifest().activation))
    throw FormatError("lite.open", path.string(), "activation",
                      "must be softmax, exp, sigmoid or none");
  if (manifest().input != "float32" && !takes_tokens())
    throw Unsupported("takes no input of " + printable(manifest().input));
  if (!preparation_.empty() && !takes_pictures())
    throw Unsupported("transforms pictures alone, of 1 or 3 channels");
}

bool Model::takes_pictures() const {
  const auto& shape = manifest().sample_shape;
  return manifest().input == "float32" && shape.size() == 3 && (shape[0] == 1 || shape[0] == 3);
}

bool Model::takes_tokens() const { return manifest().input == "int64"; }

bool Model::gives_classes() const {
  return manifest().activation != "none" || !manifest().labels.empty();
}

void Model::check(const std::vector<int64_t>& shape) const {
  const Manifest& manifest = this->manifest();
  const size_t rank = manifest.sample_shape.size();
  const auto any_size = [&](size_t dimension) {
    return takes_tokens() ||
           std::ranges::find(manifest.any_size, static_cast<int64_t>(dimension)) !=
               manifest.any_size.end();
  };
  bool fits = !shape.empty() && shape[0] >= 0 && (rank == 0 || shape.size() == rank + 1);
  for (size_t i = 0; fits && i < rank; ++i)
    fits = any_size(i) ? shape[i + 1] > 0 : shape[i + 1] == manifest.sample_shape[i];
  if (fits) return;
  throw ShapeError("lite.predict",
                   std::string("[batch") + (rank > 0 ? ", " : "") + text_of(manifest.sample_shape) +
                       "] after the transforms",
                   "[" + text_of(shape) + "]");
}

std::vector<float> Model::transformed(const Input& input, std::vector<int64_t>& shape) const {
  std::vector<float> all;
  const int64_t size = input.shape[1] * input.shape[2] * input.shape[3];
  for (int64_t n = 0; n < input.shape[0]; ++n) {
    const Planes planes = input.bytes ? preparation_(input.bytes + n * size, input.shape[1],
                                                     input.shape[2], input.shape[3])
                                      : preparation_(input.numbers + n * size, input.shape[1],
                                                     input.shape[2], input.shape[3]);
    all.insert(all.end(), planes.values.get(),
               planes.values.get() + planes.channels * planes.pixels());
  }
  const PictureSize made = preparation_.size_of({input.shape[2], input.shape[3]});
  shape = {input.shape[0], input.shape[1], made.height, made.width};
  return all;
}

Output Model::predict(const Input& input) {
  Input ready = input;
  std::vector<float> numbers;
  if (takes_pictures() && input.shape.size() == 4 && !input.tokens) {
    if (input.shape[1] != manifest().sample_shape[0] || input.shape[2] < 1 || input.shape[3] < 1)
      check(input.shape);
    numbers = transformed(input, ready.shape);
    ready.numbers = numbers.data();
  } else if (input.bytes) {
    throw ShapeError("lite.predict", manifest().input, "bytes, which are for pictures");
  }
  check(ready.shape);
  Output output = network_->forward(engine_, ready);
  activate(engine_.kernels, manifest().activation, output);
  return output;
}

BytePlanes Model::picture_input(const Picture& picture) const {
  if (!takes_pictures()) throw ShapeError("lite.predict", manifest().input, "a picture");
  return preparation_.fitted(picture);
}

}  // namespace tare::lite
