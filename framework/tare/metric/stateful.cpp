// Implements what metrics with a state have in common.
#include "tare/metric/stateful.h"

#include "tare/metric/check.h"

namespace tare {

void StatefulMetric::check(const std::string& where, const at::Tensor& output,
                           const at::Tensor& target) const {
  check_batch_size(where, output, target);
}

void StatefulMetric::merge(const StatefulMetric& other) {
  const auto own = state();
  const auto more = other.tensors();
  for (size_t i = 0; i < own.size(); ++i)
    if (more[i]->defined()) add(*own[i], *more[i]);
}

// state() is not const because update() changes what it lists.
std::vector<const at::Tensor*> StatefulMetric::tensors() const {
  const auto all = const_cast<StatefulMetric*>(this)->state();
  return {all.begin(), all.end()};
}

void StatefulMetric::add(at::Tensor& sum, const at::Tensor& more) {
  if (!sum.defined()) {
    sum = more;
    return;
  }
  sum.add_(more);
}

double StatefulMetric::number(const at::Tensor& scalar) { return scalar.item<double>(); }

std::vector<double> StatefulMetric::numbers(const at::Tensor& tensor) {
  const at::Tensor on_host = tensor.to(at::kCPU, at::kDouble).contiguous();
  const double* first = on_host.const_data_ptr<double>();
  return {first, first + on_host.numel()};
}

}  // namespace tare
