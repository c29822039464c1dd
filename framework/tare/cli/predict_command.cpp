#include "tare/cli/arguments.h"

namespace tare::cli {

const Command& predict_command() {
  static const Command command{
      "predict",
      "print the most probable class of PNG images and its probability, by a bundle",
      "BUNDLE IMAGE...",
      2,
      {{"device", "cpu|cuda|cuda:N",
        "where to compute (default: cpu; CUDA is only loaded when asked)"},
       {"top", "K", "the K most probable classes of each image (default: 1)"},
       {"json", "", "one JSON array instead of a line for each class"}},
      {"tare predict digits.tare seven.png --top 3"},
      nullptr};
  return command;
}

}  // namespace tare::cli
