// `tare generate`: continues a text by the language model of a bundle.
#include <ATen/core/Tensor.h>
#include <ATen/ops/log.h>

#include <iostream>
#include <string>

#include "tare/base/error.h"
#include "tare/cli/handlers.h"
#include "tare/cli/trust.h"
#include "tare/config/node.h"
#include "tare/inference/bundle_folder.h"
#include "tare/inference/predictor.h"
#include "tare/model/generate.h"
#include "tare/model/vocabulary.h"
#include "tare/runtime/init.h"

namespace tare::cli {
namespace {

constexpr const char* kWhere = "tare generate";

GenerateOptions options_of(const Arguments& arguments) {
  GenerateOptions options;
  config::Node given = config::Node::map();
  for (const char* name : {"length", "temperature", "top_k", "seed"}) {
    std::string option = name;
    if (option == "top_k") option = "top-k";
    if (arguments.has(option)) given.set(name, config::Node::scalar(arguments.get(option)));
  }
  config::read_into(given, options);
  return options;
}

void check_generates(const BundleManifest& manifest) {
  const bool by_token = sample_kind(manifest) == SampleKind::tokens && gives_classes(manifest) &&
                        manifest.more_inputs.empty() && manifest.sample_shape.size() == 1;
  if (!by_token)
    throw ConfigError(kWhere, "the bundle holds no language model: its input is " + manifest.input +
                                  ", and tokens are needed; tare predict takes it");
  // Without names tokens are bytes, of which there are 256.
  const auto classes = class_count(manifest);
  if (manifest.labels.empty() && classes && *classes < 256)
    throw ConfigError(kWhere,
                      "the bundle has no vocabulary, because its model was trained on an "
                      "array of tokens, so that a text cannot be read or written; tare "
                      "predict takes arrays of tokens");
}

}  // namespace

int generate_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const GenerateOptions options = options_of(arguments);
  trust_given(arguments, kWhere);
  const std::string device = arguments.get("device", "cpu");
  init({.threads = 0, .cuda = device == "cpu" ? CudaMode::off : CudaMode::automatic});
  Predictor predictor(bundle_at(words.front()), {.device = device});
  const BundleManifest& manifest = predictor.manifest();
  check_generates(manifest);
  const std::string prompt = words.size() > 1 ? words[1] : "\n";
  const bool gives_probabilities = manifest.activation == "softmax";
  const auto forward = [&](const at::Tensor& tokens) {
    const at::Tensor scores = predictor.predict(tokens);
    return gives_probabilities ? at::log(scores) : scores;
  };
  const auto tokens = generate(forward, tokens_of(prompt, manifest.labels, kWhere),
                               manifest.sample_shape.front(), options);
  std::cout << prompt << text_of(tokens, manifest.labels) << '\n';
  return kSuccess;
}

}  // namespace tare::cli
