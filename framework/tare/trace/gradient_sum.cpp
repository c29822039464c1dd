// Finds which sums of gradients a backward makes in place.
#include "tare/trace/gradient_sum.h"

#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <memory>
#include <vector>

namespace tare::plan {
namespace {

// The backward pass of each node at work, from the outermost in: a node may run one of its own.
thread_local std::vector<int> passes;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction&) {
  passes.push_back(torch::autograd::get_current_graph_task_id());
  return nullptr;
}

void leave(const at::RecordFunction&, at::ObserverContext*) {
  if (!passes.empty()) passes.pop_back();
}

bool between_nodes() {
  const int pass = torch::autograd::get_current_graph_task_id();
  return pass != -1 && (passes.empty() || passes.back() != pass);
}

bool may_be_overwritten(const at::Tensor& tensor, size_t holders) {
  return !c10::GradMode::is_enabled() && tensor.use_count() == holders &&
         tensor.storage().use_count() == 1;
}

}  // namespace

uint64_t watch_nodes() {
  return at::addThreadLocalCallback(
      at::RecordFunctionCallback(&enter, &leave).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

void stop_watching_nodes(uint64_t handle) { at::removeCallback(handle); }

bool sums_in_place(const at::Tensor& gradient) {
  constexpr size_t kHolders = 2;  // autograd and the stack
  return between_nodes() && may_be_overwritten(gradient, kHolders) &&
         gradient.is_non_overlapping_and_dense();
}

bool is_own_of_formula(const at::Tensor& operand, size_t holders) {
  if (passes.empty() || !may_be_overwritten(operand, holders)) return false;
  const auto node = torch::autograd::get_current_node();
  return dynamic_cast<torch::autograd::TraceableFunction*>(node.get()) != nullptr;
}

bool is_loss_gradient(const at::Tensor& operand) {
  return is_own_of_formula(operand) &&
         torch::autograd::get_current_node()->name() == "BinaryCrossEntropyWithLogitsBackward0";
}

bool is_gradient_of_extreme() {
  const auto node = torch::autograd::get_current_node();
  if (!node) return false;
  const std::string name = node->name();
  return name == "MaximumBackward0" || name == "MinimumBackward0";
}

}  // namespace tare::plan
