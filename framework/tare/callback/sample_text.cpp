// Lets a language model write between its epochs.
#include "tare/callback/sample_text.h"

#include <c10/core/GradMode.h>

#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"
#include "tare/model/vocabulary.h"

namespace tare {
namespace {

constexpr const char* kFolder = "samples";

}  // namespace

SampleText::SampleText(SampleTextOptions options) : options_(std::move(options)) {
  config::validate(options_, "sample_text");
}

void SampleText::check_data(const Batch& sample) const {
  const at::Tensor input = sample.inputs.empty() ? at::Tensor() : sample.input();
  if (!input.defined() || input.dim() != 2 || input.is_floating_point())
    throw ConfigError("sample_text",
                      "needs texts, and a sample of the data is no list of whole numbers");
}

Action SampleText::before_fit(FitContext& context) {
  const DatasetPtr data = context.learner.training_data();
  const Batch sample = data ? data->first_sample() : Batch{};
  check_data(sample);
  labels_ = data->labels();
  context_ = sample.input().size(1);
  prompt_ = prompt_tokens(labels_);
  return Action::proceed;
}

void SampleText::check_prompt(const std::vector<std::string>& labels) const {
  (void)prompt_tokens(labels);
}

std::vector<int64_t> SampleText::prompt_tokens(const std::vector<std::string>& labels) const {
  if (options_.prompt.empty()) return {0};
  return tokens_of(options_.prompt, labels, [&](std::string_view character) {
    std::string all;
    for (const std::string& label : labels) all += label;
    throw ConfigError("sample_text", "prompt",
                      "has '" + printable(character) + "', which is no character of the data",
                      "a text of the characters " + printable(all, 300), options_.prompt);
  });
}

Action SampleText::after_epoch(FitContext& context) {
  if ((context.epoch + 1) % options_.every != 0) return Action::proceed;
  text_ = options_.prompt + generated(context);
  const std::string epoch = std::to_string(context.row.epoch);
  context.texts.push_back({"sample_text", text_});
  log::info("a text after epoch " + epoch + ": " + text_);
  const auto folder = context.learner.folder() / kFolder;
  try {
    io::make_directories(folder);
    io::write_atomically(folder / ("epoch-" + epoch + ".txt"), text_ + '\n', io::Flush::no);
  } catch (const IoError& error) {
    log::warning(std::string("the text of the model was not written: ") + error.what() +
                 "; training continues");
  }
  return Action::proceed;
}

std::string SampleText::generated(FitContext& context) const {
  Model& model = context.learner.model();
  const c10::Device device = context.learner.device();
  const EvaluationScope evaluating(model);
  const c10::NoGradGuard no_graph;
  const auto forward = [&](const at::Tensor& tokens) { return model.forward(tokens.to(device)); };
  return text_of(generate(forward, prompt_, context_, options_.generate), labels_);
}

namespace callbacks {
void add_sample_text(Registry& all) {
  all.add<SampleTextOptions>(
      "sample_text", "lets a language model write a text after each epoch",
      [](const SampleTextOptions& o) { return std::make_shared<SampleText>(o); });
}
}  // namespace callbacks

}  // namespace tare
