// Refuses outputs and targets that do not fit each other.
#include "tare/metric/check.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <sstream>

#include "tare/base/error.h"

namespace tare {
namespace {

std::string str(at::IntArrayRef sizes) {
  std::ostringstream out;
  out << sizes;
  return out.str();
}

const char* dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(type);
  }
}

}  // namespace

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "no tensor";
  return std::string(dtype_name(tensor.scalar_type())) + " " + str(tensor.sizes());
}

void check_batch_size(const std::string& where, const at::Tensor& output,
                      const at::Tensor& target) {
  if (!output.defined() || !target.defined() || output.dim() == 0 || target.dim() == 0) {
    throw ShapeError(where, "output [batch, ...] and target [batch, ...]",
                     "output " + describe(output) + ", target " + describe(target));
  }
  if (output.size(0) != target.size(0)) {
    throw ShapeError(where, "as many targets as outputs (" + std::to_string(output.size(0)) + ")",
                     "target " + describe(target) + " for output " + describe(output));
  }
  if (output.device() != target.device()) {
    throw DeviceError(where, "output on " + output.device().str(),
                      "target on " + target.device().str());
  }
}

void check_classes(const std::string& where, const at::Tensor& output, const at::Tensor& target,
                   int64_t least) {
  check_batch_size(where, output, target);
  if (output.dim() < 2 || output.size(1) < least) {
    throw ShapeError(
        where, "output [batch, classes, ...] with at least " + std::to_string(least) + " classes",
        describe(output));
  }
  std::vector<int64_t> wanted = output.sizes().vec();
  wanted.erase(wanted.begin() + 1);
  if (target.scalar_type() != at::kLong || target.sizes() != at::IntArrayRef(wanted)) {
    throw ShapeError(
        where, "target of class labels int64 " + str(wanted) + " for output " + describe(output),
        describe(target) + (target.dim() == output.dim() && target.size(-1) == 1
                                ? "; target.squeeze(-1) removes its last dimension"
                                : ""));
  }
}

bool is_one_score(const at::Tensor& output, const at::Tensor& target) {
  return output.defined() && target.defined() && output.dim() == 2 && output.size(1) == 1 &&
         target.dim() == 1 && target.scalar_type() == at::kLong;
}

at::Tensor two_scores(const at::Tensor& score) {
  return at::cat({at::zeros_like(score), score}, /*dim=*/1);
}

void check_dimensions(const std::string& where, const at::Tensor& output, int64_t most) {
  if (output.dim() <= most) return;
  throw ShapeError(where, "output of at most " + std::to_string(most) + " dimensions",
                   describe(output));
}

void check_same_shape(const std::string& where, const at::Tensor& output,
                      const at::Tensor& target) {
  check_batch_size(where, output, target);
  if (target.sizes() != output.sizes() || !target.is_floating_point()) {
    const bool lacks_the_last = output.dim() == target.dim() + 1 && output.size(-1) == 1 &&
                                output.numel() == target.numel();
    throw ShapeError(
        where, "floating-point target of the output's shape " + str(output.sizes()),
        describe(target) +
            (lacks_the_last ? "; target.unsqueeze(-1) adds the output's last dimension" : ""));
  }
}

}  // namespace tare
