// Counts the weights of recurrent layers, and says which of them cuDNN computes.
#include "tare/trace/recurrent_call.h"

#include <ATen/Context.h>

#include "tare/memory/compute_capability.h"
#include "tare/trace/recording.h"

namespace tare::plan {

int64_t CardRecurrent::gates() const {
  switch (mode) {
    case RecurrentMode::relu:
    case RecurrentMode::tanh:
      return 1;
    case RecurrentMode::lstm:
      return 4;
    case RecurrentMode::gru:
      return 3;
  }
  return 0;
}

int64_t CardRecurrent::weights() const {
  int64_t all = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t from = layer == 0 ? inputs : directions() * features();
    all += gates() * hidden * (from + features() + 2) + projected * hidden;
  }
  return all * directions();
}

bool cudnn_takes_recurrent(const at::Tensor& input) {
  const auto type = input.scalar_type();
  const bool takes_type =
      type == at::kFloat || type == at::kDouble || type == at::kHalf ||
      (type == at::kBFloat16 && recorded_machine().capability >= memory::kAmpere);
  return at::globalContext().userEnabledCuDNN() && takes_type && input.numel() > 0;
}

}  // namespace tare::plan
