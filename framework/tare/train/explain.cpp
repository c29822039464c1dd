// Explains an error of LibTorch in one line that names the module and its operands.

// LibTorch's libraries are release builds, which leave unset what a check of this header reads.
#ifndef NDEBUG
#define NDEBUG
#endif
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <typeinfo>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/oom.h"
#include "tare/metric/check.h"
#include "tare/model/generators.h"
#include "tare/train/fit_loop.h"
#include "tare/train/layer_shapes.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

using Operation = ComputeError::Operation;

// "torch::nn::Conv2dImpl" -> "Conv2d".
std::string type_of(const torch::nn::Module& module) {
  std::string name = module.name();
  if (const auto colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

/// Watches the operators that the calling thread calls, and describes the one that fails.
class Observer {
 public:
  explicit Observer(const Model& model) : model_(model) {
    current = this;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&started, &ended)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~Observer() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Returns the operator that ended with an exception; it has no name if none did.
  [[nodiscard]] Operation failed() const { return failed_; }
  /// Returns the last submodule whose parameters were used; empty: none.
  [[nodiscard]] const std::string& last_module() const { return last_module_; }

 private:
  static std::unique_ptr<at::ObserverContext> started(const at::RecordFunction& function) {
    if (current->depth_++ == 0) current->open(function);
    return nullptr;
  }
  static void ended(const at::RecordFunction&, at::ObserverContext*) {
    if (--current->depth_ > 0) return;
    if (std::uncaught_exceptions() > 0)
      current->failed_ = current->open_;
    else if (!current->open_.module.empty())
      current->last_module_ = current->open_.module;
  }

  void open(const at::RecordFunction& function) {
    open_ = {};
    open_.name = function.name();
    if (open_.name.starts_with("aten::")) open_.name.erase(0, 6);
    int64_t others = 0;
    for (const c10::IValue& input : function.inputs()) {
      if (input.isTensorList()) {  // the weights of a recurrent layer
        for (const at::Tensor& tensor : input.toTensorVector()) own(name_of(tensor));
      } else if (input.isTensor() && input.toTensor().defined()) {
        const std::string name = name_of(input.toTensor());
        own(name);
        if (!open_.operands.empty()) open_.operands += ", ";
        if (name.empty()) {
          open_.operands += others++ == 0 ? "input " : "operand ";
        } else {
          open_.operands += name.substr(name.rfind('.') + 1) + ' ';
        }
        open_.operands += describe(input.toTensor());
      }
    }
  }

  // The operator belongs to the module of its parameter.
  void own(const std::string& parameter) {
    if (parameter.empty() || !open_.module.empty()) return;
    const std::string module = module_of(parameter);
    open_.module_type = type_of(module.empty() ? *model_.module() : model_.submodule(module));
    open_.module = module.empty() ? "model" : module;
  }

  [[nodiscard]] std::string name_of(const at::Tensor& tensor) const {
    for (const auto& parameter : model_.parameters())
      if (parameter.tensor.is_same(tensor)) return parameter.name;
    return {};
  }

  static thread_local Observer* current;

  const Model& model_;
  at::CallbackHandle handle_ = 0;
  int64_t depth_ = 0;
  Operation open_, failed_;
  std::string last_module_;
};

thread_local Observer* Observer::current = nullptr;

// Batch norm refuses one value per channel before it calls an operator: then it is the first one
// behind the last module that was used.
Operation refused_by_batch_norm(const Model& model, const std::string& after) {
  bool behind = after.empty();
  for (const auto& item : model.module()->named_modules("", /*include_self=*/false)) {
    if (behind && type_of(*item.value()).find("BatchNorm") != std::string::npos)
      return {.name = "batch_norm", .module = item.key(), .module_type = type_of(*item.value())};
    behind = behind || item.key() == after;
  }
  return {.name = "batch_norm", .after = after};
}

// LibTorch lets errors of oneDNN through, whose header it does not install.
bool is_of_libraries(const std::exception& error) {
  return dynamic_cast<const c10::Error*>(&error) ||
         std::string_view(typeid(error).name()) == "N4dnnl5errorE";
}

/// Whether a card has failed; a kernel that refuses its operands (cudaErrorAssert) is no such
/// failure.
bool is_of_lost_card(const std::exception& error) {
  constexpr int kAssert = 710;
  const auto* const failed = dynamic_cast<const c10::AcceleratorError*>(&error);
  return failed && failed->get_error_code() != kAssert;
}

// Computes once more, as nobody watches operators while all is well. What that changes, the failed
// step's snapshot restores.
Operation find_operation(const Model& model, const std::vector<c10::Device>& devices,
                         const std::function<void()>& forward, const std::string& problem) {
  const GeneratorScope generators(devices);
  const c10::AutoGradMode no_grad(false);
  const Observer observer(model);
  try {
    forward();
  } catch (const std::exception& again) {
    if (!is_of_libraries(again)) {  // the first error is the one to report
      log::debug("computing again failed otherwise: " + printable(again.what()));
      return {};
    }
    if (!observer.failed().name.empty()) {
      Operation found = observer.failed();
      if (found.module.empty()) found.after = observer.last_module();
      return found;
    }
    if (problem.find("more than 1 value per channel") != std::string::npos)
      return refused_by_batch_norm(model, observer.last_module());
    return {.after = observer.last_module()};
  }
  return {};
}

// LibTorch's first line: where CUDA's and a backtrace begin, others follow.
std::string first_line(const std::exception& error) {
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&error);
  std::string text = of_libtorch ? of_libtorch->what_without_backtrace() : error.what();
  text.resize(std::min(text.size(), text.find('\n')));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return printable(text, 400);
}

/// Returns the leaves that a loss depends on.
std::vector<at::Tensor> leaves_of(const at::Tensor& loss) {
  std::vector<at::Tensor> leaves;
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> open{loss.grad_fn().get()};
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node))
      leaves.push_back(leaf->variable);
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return leaves;
}

}  // namespace

void add_operand(Operation& to, const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  to.operands += (to.operands.empty() ? "" : ", ") + printable(name) + ' ' + describe(tensor);
}

void LearnerState::explain(ComputeError::Stage stage, const Batch* batch,
                           const std::exception& error, Operation operation) {
  if (!is_of_libraries(error) || is_of_lost_card(error)) throw;
  if (memory::classify(std::current_exception())) throw;
  log::debug(error.what());
  const std::string problem = first_line(error);
  // A forward that all ranks have to do together is not done again.
  const bool is_alone = !(loop && loop->sharded()) && !options.data_parallel.sync_batch_norm;
  if (stage == ComputeError::Stage::forward && is_alone && batch &&
      problem.find("CUDA") == std::string::npos) {
    operation = find_operation(
        model, devices(),
        [&] {
          if (options.task) {
            (void)options.task.step(model, *batch);
          } else {
            (void)compute(*batch);
          }
        },
        problem);
    if (operation.operands.empty())
      for (const auto& [name, tensor] : batch->inputs) add_operand(operation, name, tensor);
  }
  std::throw_with_nested(ComputeError(running_call, stage, std::move(operation), problem));
}

at::Tensor LearnerState::explained_loss(const Outputs& outputs, const Batch& batch,
                                        double counted) {
  const auto describe = [&] {
    Operation operation;
    for (const at::Tensor& output : outputs) add_operand(operation, "output", output);
    for (const auto& [name, target] : batch.targets) add_operand(operation, name, target);
    return operation;
  };
  return explained_score(ComputeError::Stage::loss, describe,
                         [&] { return mean_loss(outputs, batch, counted); });
}

void LearnerState::check_graph(const at::Tensor& value, const Batch& batch) {
  checked_graph = true;
  if (!value.grad_fn()) return;
  std::unordered_set<const c10::TensorImpl*> trained;
  for (const auto& group : optimizer->groups())
    for (const auto& parameter : group.parameters)
      trained.insert(parameter.tensor.unsafeGetTensorImpl());
  std::string unknown, untrained;
  const auto list = [](std::string& names, const std::string& name) {
    names += (names.empty() ? "" : ", ") + name;
  };
  const std::vector<at::Tensor> given = batch.tensors();
  const auto is_leaf = [](const at::Tensor& leaf) {
    return [&leaf](const at::Tensor& one) { return one.is_same(leaf); };
  };
  for (const at::Tensor& leaf : leaves_of(value)) {
    if (trained.contains(leaf.unsafeGetTensorImpl()) || std::ranges::any_of(given, is_leaf(leaf)))
      continue;
    const auto& all = model.parameters();
    const auto own = std::ranges::find_if(
        all, [&](const Parameter& parameter) { return parameter.tensor.is_same(leaf); });
    own == all.end() ? list(unknown, describe(leaf)) : list(untrained, own->name);
  }
  if (!unknown.empty())
    log::warning(
        "the loss depends on trainable tensors that are no parameters of the model: " + unknown +
        "; they are not trained, saved or moved: register_module() their module, or "
        "register_parameter() them");
  if (!untrained.empty())
    log::warning("the optimizer does not have these parameters, so they are not trained: " +
                 untrained + "; use freeze_to() or unfreeze() rather than set_requires_grad()");
}

}  // namespace tare
