// `tare predict`: its options and its arguments.
#include "tare/cli/arguments.h"
#include "tare/cli/trust.h"

namespace tare::cli {

const Command& predict_command() {
  static const Command command{
      "predict",
      "print the most probable class and its probability, or the values, that a bundle predicts",
      "BUNDLE INPUT...",
      2,
      {{"device", "auto|cpu|cuda|cuda:N",
        "where to compute (default: cpu; CUDA is only loaded when asked)"},
       {"top", "K",
        "the K most probable classes of each sample (default: 1; where a sample may have several "
        "labels: all)"},
       {"batch", "auto|N",
        "samples that are predicted together at most (default: auto, as many as fit)"},
       {"text", "", "lines are text: characters by the bundle's labels, or bytes, are the tokens"},
       {"score", "LABELS",
        "the metrics of labelled samples instead: classes of subfolders, columns of a table, or "
        "LABELS, a column of a list or a .npy file",
        "label"},
       {"json", "", "one JSON array instead of a line for each class"},
       {"json-lines", "", "one JSON object a line, as soon as a sample is predicted"},
       {"masks", "DIR",
        "writes the class of each pixel as a PNG file below DIR, and prints the paths"},
       {"csv", "", "a table with a header instead: a row for each class, or for each value"},
       {"engine", "auto|lite|libtorch",
        "what computes (default: auto, without LibTorch where the model and the inputs allow it)"},
       {"verbose", "", "says which engine computes, and why", "", 'v'},
       trust_option()},
      {"tare predict digits.tare seven.png --top 3",
       "ls pictures/*.png | tare predict digits.tare -", "tare predict iris.tare measurements.csv",
       "tare predict digits.tare test --score",
       "echo 'once upon' | tare predict --text gpt.tare -"}};
  return command;
}

}  // namespace tare::cli
