// Prints the results of a Learner.
#include "tare/learner/options.h"

#include "tare/base/bytes.h"

namespace tare {

double FitResult::samples_per_s() const {
  double samples = 0, time = 0;
  for (const auto& row : epochs) {
    samples += static_cast<double>(row.samples);
    time += row.seconds;
  }
  return time > 0 ? samples / time : 0;
}

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
  }
  return "?";
}

std::string FreezeReport::str() const {
  std::string text =
      format_count(trainable) + " parameters train, " + format_count(frozen) + " are frozen";
  if (gradient_bytes > 0) text += "; freed gradients " + format_bytes(gradient_bytes);
  if (state_bytes > 0) text += "; freed optimizer state " + format_bytes(state_bytes);
  if (state_kept > 0) text += "; kept the state of " + std::to_string(state_kept) + " tensors";
  if (held_bytes && frozen > 0)
    text += "; of the frozen " + format_bytes(*held_bytes) + " as fp8 and " +
            format_bytes(other_bytes) + " as they are";
  return text;
}

std::string LoadReport::str() const {
  std::string text = optimizer_loaded ? "loaded weights and optimizer" : "loaded weights";
  const auto list = [&text](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += std::string("; ") + what;
    for (const auto& name : names) text += ' ' + name;
  };
  list("fresh:", fresh);
  list("ignored:", ignored);
  list("optimizer state fresh:", optimizer_fresh);
  if (resumable) text += "; resume() continues inside its fit";
  return text;
}

}  // namespace tare
