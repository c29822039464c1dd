// Finds the place and advice for an error of LibTorch.
#include "tare/train/compute_error.h"

#include <array>

namespace tare {
namespace {

constexpr const char* kSingleSample = "more than 1 value per channel";

struct Hint {
  const char* part;  // of LibTorch's message
  const char* advice;
};

constexpr const char* kBytes =
    "the input holds bytes: with transformed(data, {}) the pictures of a data set come as float32 "
    "in [0, 1]; else convert the input with .to(torch::kFloat)";

// The first that fits counts.
constexpr std::array<Hint, 23> kHints{{
    {"mat1 and mat2 shapes cannot be multiplied",
     "make the layer's number of input features that of its input's last dimension"},
    {kSingleSample,
     "batch norm needs more than one value per channel to train on: set drop_last = true, or take "
     "a batch that leaves no single sample"},
    {"channels, but got", "make the layer's number of input channels that of its input"},
    {"must be equal to input_size",
     "make the layer's input size that of its input's last dimension"},
    {"normalized_shape", "make the layer's normalised shape that of its input's last dimensions"},
    {"running_mean should contain", "make the layer's number of features that of its input"},
    {"index out of range in self", "a token is not below the embedding's number of rows"},
    {"'indices' to have", "an embedding takes whole numbers: convert them with .to(torch::kLong)"},
    {"expected m1 and m2 to have the same dtype",
     "convert the input with .to(torch::kFloat), in the data set or its transforms"},
    {"expected scalar type Byte", kBytes},
    {"Input type (unsigned char)", kBytes},
    {"same dtype", "convert the operands to one dtype, such as .to(torch::kFloat)"},
    {"should be the same", "convert the input with .to(torch::kFloat), or the model to its dtype"},
    {"expected scalar type", "convert the operand with .to(torch::kFloat) or .to(torch::kLong)"},
    {"not implemented for",
     "convert the operand to a dtype that has it, such as .to(torch::kFloat)"},
    {"on the same device",
     "register_module() each submodule and register_buffer() each constant, so that they move with "
     "the model"},
    {"does not require grad",
     "the loss depends on no trainable parameter: register_module() each submodule, and neither "
     "detach() nor freeze what is to be trained"},
    {"modified by an inplace operation",
     "replace the in-place operation (name_) behind the model's layers by one that copies"},
    {"through the graph a second time",
     "a tensor with its graph was kept from the step before: detach() it"},
    {"is invalid for input of size", "derive the sizes from the input's, such as x.flatten(1)"},
    {"could not create a primitive",
     "this processor cannot compute the operator in the dtype of its operands: use the precision "
     "fp32"},
    {"does not have a deterministic implementation",
     "set kernels.deterministic to false, or replace the operator by one that has"},
    {"must match the size of tensor", "make the operands' sizes equal, or 1 where they broadcast"},
}};

bool is_score(ComputeError::Stage stage) {
  return stage == ComputeError::Stage::loss || stage == ComputeError::Stage::metric;
}

std::string advice_for(ComputeError::Stage stage, const std::string& problem) {
  for (const Hint& hint : kHints)
    if (problem.find(hint.part) != std::string::npos) return hint.advice;
  if (is_score(stage))
    return "compare the output and the target with what the function takes; the log at debug level "
           "has LibTorch's stack";
  return "compare the operands with what the layer was made for; the log at debug level has "
         "LibTorch's stack";
}

std::string place(ComputeError::Stage stage, const ComputeError::Operation& o) {
  if (stage == ComputeError::Stage::metric) return " '" + printable(o.name) + "'";
  if (!o.module.empty()) return " of '" + o.module + "' (" + o.module_type + ")";
  if (o.after.empty()) return o.name.empty() ? "" : " in " + o.name;
  return (o.name.empty() ? "" : " in " + o.name) + ", after '" + o.after + "'";
}

std::string message(std::string_view call, ComputeError::Stage stage,
                    const ComputeError::Operation& operation, const std::string& problem) {
  return "[" + std::string(call) + "] " + to_string(stage) + place(stage, operation) + " failed" +
         (operation.operands.empty() ? "" : " for " + operation.operands) + ": " + problem + "; " +
         advice_for(stage, problem);
}

}  // namespace

ComputeError::ComputeError(std::string_view call, Stage stage, Operation operation,
                           std::string problem)
    : Error(message(call, stage, operation, problem)),
      stage_(stage),
      operation_(std::move(operation)),
      problem_(std::move(problem)) {}

bool ComputeError::is_of_single_sample() const {
  return problem_.find(kSingleSample) != std::string::npos;
}

const char* to_string(ComputeError::Stage stage) {
  switch (stage) {
    case ComputeError::Stage::forward:
      return "forward";
    case ComputeError::Stage::loss:
      return "loss";
    case ComputeError::Stage::metric:
      return "metric";
    case ComputeError::Stage::backward:
      return "backward";
    case ComputeError::Stage::step:
      return "optimizer step";
  }
  return "?";
}

}  // namespace tare
