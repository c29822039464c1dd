// SampleText: texts that a language model writes while it trains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/model/generate.h"

namespace tare {

/// Configures SampleText.
struct SampleTextOptions {
  /// The text that each one continues, of characters in the vocabulary; empty: the first of them.
  std::string prompt{};
  int64_t every = 1;                             ///< epochs between two texts, >= 1
  GenerateOptions generate{.temperature = 0.8};  ///< of the text
};
void visit_fields(auto& visit, SampleTextOptions& o) {
  visit("prompt", o.prompt);
  visit("every", o.every, config::at_least(1));
  visit_fields(visit, o.generate);
}

/// Lets the model continue a prompt after an epoch, logs the text, and writes it into the file
/// samples/epoch-N.txt of the Learner's folder. Tokens are characters by the labels of the training
/// data or, without labels, bytes. Changes neither weights, mode nor random generators. A text that
/// cannot be written is logged as a warning, and training continues. Throws ConfigError before the
/// fit for a prompt that the vocabulary does not have, and for data that are no tokens.
class SampleText final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit SampleText(SampleTextOptions options = {});
  [[nodiscard]] std::string name() const override { return "sample_text"; }
  Action before_fit(FitContext& context) override;
  /// Throws ConfigError for data that are no lists of whole numbers.
  void check_data(const Batch& sample) const override;
  /// Throws ConfigError for a prompt with a character that `labels` lacks. They are the characters
  /// of the training data; without labels tokens are bytes, which every prompt has.
  void check_prompt(const std::vector<std::string>& labels) const;
  Action after_epoch(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override {
    return {.files = {"samples"}, .only_writes = true};
  }
  /// Returns the newest text, with its prompt; empty before the first.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  [[nodiscard]] std::string generated(FitContext& context) const;
  [[nodiscard]] std::vector<int64_t> prompt_tokens(const std::vector<std::string>& labels) const;

  SampleTextOptions options_;
  std::vector<int64_t> prompt_;
  std::vector<std::string> labels_;  // of the training data
  int64_t context_ = 0;              // tokens of a sample
  std::string text_;
};

}  // namespace tare
