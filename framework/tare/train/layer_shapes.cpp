// Watches the operators of a forward and notes the results of those that take parameters.
#include "tare/train/layer_shapes.h"

// LibTorch's libraries are release builds, which leave unset what a check of this header reads.
#ifndef NDEBUG
#define NDEBUG
#endif
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include "tare/model/generators.h"

namespace tare {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

/// Watches the operators that the calling thread calls itself, not those that they call.
class ShapeObserver {
 public:
  explicit ShapeObserver(const Model& model) : model_(model) {
    current = this;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&started, &ended)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~ShapeObserver() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  ShapeObserver(const ShapeObserver&) = delete;
  ShapeObserver& operator=(const ShapeObserver&) = delete;

  [[nodiscard]] Shapes shapes() const { return shapes_; }

 private:
  static std::unique_ptr<at::ObserverContext> started(const at::RecordFunction& function) {
    if (current->depth_++ == 0) current->find_modules(function);
    return nullptr;
  }
  static void ended(const at::RecordFunction& function, at::ObserverContext*) {
    if (--current->depth_ == 0) current->note(function);
  }

  void find_modules(const at::RecordFunction& function) {
    modules_.clear();
    for (const c10::IValue& input : function.inputs()) {
      if (input.isTensor()) add(input.toTensor());
      if (input.isTensorList())
        for (const at::Tensor& tensor : input.toTensorVector()) add(tensor);
    }
  }
  void add(const at::Tensor& tensor) {
    for (const Parameter& parameter : model_.parameters())
      if (parameter.tensor.is_same(tensor)) modules_.push_back(module_of(parameter.name));
  }
  // The first result of an operator with several, such as a recurrent layer's, is its output.
  void note(const at::RecordFunction& function) {
    if (modules_.empty() || function.outputs().empty()) return;
    const c10::IValue& output = function.outputs().front();
    if (!output.isTensor() || !output.toTensor().defined()) return;
    for (const std::string& module : modules_) shapes_[module] = output.toTensor().sizes().vec();
  }

  static thread_local ShapeObserver* current;

  const Model& model_;
  at::CallbackHandle handle_ = 0;
  int64_t depth_ = 0;
  std::vector<std::string> modules_;  // whose parameters the operator under way takes
  Shapes shapes_;
};

thread_local ShapeObserver* ShapeObserver::current = nullptr;

}  // namespace

std::string module_of(const std::string& parameter) {
  const auto dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

Shapes layer_shapes(Model& model, const std::vector<c10::Device>& devices,
                    const std::function<void()>& forward) {
  const GeneratorScope generators(devices);
  const EvaluationScope evaluating(model);
  const c10::AutoGradMode no_grad(false);
  const ShapeObserver observer(model);
  forward();
  return observer.shapes();
}

}  // namespace tare
