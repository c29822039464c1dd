// tare-predict: links what predicting needs and nothing else.
#include <filesystem>

#include "tare/cli/predict.h"
#include "tare/config/field.h"
#include "tare/runtime/leave.h"

int main(int argc, char** argv) {
  tare::config::hint_at_own_programs();
  const auto called = std::filesystem::path(argc > 0 ? argv[0] : "tare-predict").filename();
  tare::leave(tare::cli::predict_program(argc, argv, called.string()));
}
