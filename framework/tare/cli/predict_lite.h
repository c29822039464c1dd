// `tare predict` without LibTorch, which takes longer to start than most predictions take.
#pragma once

#include <optional>

namespace tare::cli {

/// Runs `tare predict` with the engine of tare::lite, which predicts pictures in files by models of
/// a few families. argv[0] is ignored. Returns the exit status; unset: nothing has been printed but
/// why not, with --verbose, and the program with LibTorch has to predict. It also reports what is
/// wrong with an argument, a bundle or a picture. With --engine lite an error is printed here.
[[nodiscard]] std::optional<int> predict_lite(int argc, char** argv);

}  // namespace tare::cli
