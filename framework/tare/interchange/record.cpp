// Listens to LibTorch's dispatcher.
#include "tare/interchange/record.h"

#include <ATen/record_function.h>

#include <memory>
#include <utility>

#include "tare/base/error.h"

namespace tare::interchange {
namespace {

// The recording of this thread, and how many calls are under way in it.
thread_local std::vector<Call>* recording = nullptr;
thread_local int depth = 0;

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  const auto op = function.operator_name();
  if (!op || depth++ > 0) return nullptr;
  const auto arguments = function.inputs();
  Call call{.op = *op};
  call.arguments.assign(arguments.begin(), arguments.end());
  recording->push_back(std::move(call));
  return nullptr;
}

void add_sizes(const c10::IValue& value, std::vector<std::vector<int64_t>>& sizes) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    sizes.push_back(tensor.defined() ? tensor.sizes().vec() : std::vector<int64_t>());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) sizes.push_back(tensor.sizes().vec());
  }
}

void end(const at::RecordFunction& function, at::ObserverContext*) {
  if (!function.operator_name() || --depth > 0) return;
  Call& call = recording->back();
  for (const c10::IValue& result : function.outputs()) {
    add_sizes(result, call.sizes);
    call.results.push_back(result);
  }
}

class Listening {
 public:
  explicit Listening(std::vector<Call>& calls) {
    if (recording)
      throw StateError("interchange.record_calls", "while another recording is in progress",
                       "record one after the other");
    recording = &calls;
    depth = 0;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~Listening() {
    at::removeCallback(handle_);
    recording = nullptr;
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  at::CallbackHandle handle_ = 0;
};

}  // namespace

std::vector<Call> record_calls(const std::function<void()>& body) {
  std::vector<Call> calls;
  {
    const Listening listening(calls);
    body();
  }
  return calls;
}

}  // namespace tare::interchange
