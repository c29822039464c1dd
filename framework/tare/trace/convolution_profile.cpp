// Runs a convolution on the host on few images, and extrapolates what it allocates.
#include "tare/trace/convolution_profile.h"

#include <ATen/NativeFunctions.h>
#include <ATen/Parallel.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "tare/memory/host_allocator.h"
#include "tare/trace/measurements.h"
#include "tare/trace/not_plannable.h"

namespace tare::plan {
namespace {

using at::Tensor;

constexpr const char* kForward = "aten::convolution";
constexpr const char* kBackward = "aten::convolution_backward";
// LibTorch leaves 1x1 convolutions of fewer images to another kernel when there is one thread.
constexpr int64_t kSmallBatch = 16;

/// Returns everything that the host's choice depends on.
std::vector<int64_t> key_of(const Convolution& call) {
  std::vector<int64_t> key{call.backward()};
  for (const Layout* layout : {&call.input, &call.weight, &call.bias, &call.grad_output})
    append(key, *layout);
  for (const auto* list : {&call.stride, &call.padding, &call.dilation, &call.output_padding})
    append(key, *list);
  for (const bool wanted : call.mask) key.push_back(wanted);
  key.insert(key.end(), {call.transposed, call.groups, call.needs_grad, at::get_num_threads()});
  return key;
}

Convolution with_batch(Convolution call, int64_t batch) {
  call.input.sizes.front() = batch;
  if (call.backward()) call.grad_output.sizes.front() = batch;
  return call;
}

/// Whether the strides stay what they are for another batch.
bool batch_is_outermost(const Layout& layout) {
  for (size_t i = 1; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] > 1 && layout.strides[i] >= layout.strides.front() &&
        layout.strides.front() != 0)
      return false;
  }
  return true;
}

at::OptionalSymIntArrayRef sizes_of_bias(const Layout& bias) {
  if (bias.sizes.empty()) return std::nullopt;
  return c10::fromIntArrayRefSlow(bias.sizes);
}

/// Returns a host tensor without memory, for questions about its shape.
Tensor tensor_of(const Layout& layout) {
  if (layout.sizes.empty()) return {};
  return at::from_blob(nullptr, layout.sizes, layout.strides, at::TensorOptions(layout.type));
}

at::native::ConvBackend backend_of(const Convolution& call) {
  const auto ints = [](const std::vector<int64_t>& list) { return c10::fromIntArrayRefSlow(list); };
  const Tensor bias = call.backward() ? Tensor() : tensor_of(call.bias);
  return at::native::select_conv_backend(tensor_of(call.input), tensor_of(call.weight), bias,
                                         ints(call.stride), ints(call.padding), ints(call.dilation),
                                         call.transposed, ints(call.output_padding), call.groups,
                                         sizes_of_bias(call.bias));
}

Tensor zeros(const Layout& layout, bool needs_grad = false) {
  if (layout.sizes.empty()) return {};
  int64_t last = 0;
  for (size_t i = 0; i < layout.sizes.size(); ++i)
    last += (layout.sizes[i] - 1) * layout.strides[i];
  const Tensor memory = at::zeros({last + 1}, at::TensorOptions(layout.type));
  Tensor tensor = memory.as_strided(layout.sizes, layout.strides);
  return needs_grad ? tensor.requires_grad_() : tensor;
}

struct Operands {
  explicit Operands(const Convolution& call)
      : input(zeros(call.input, call.needs_grad)),
        weight(zeros(call.weight)),
        bias(call.backward() ? Tensor() : zeros(call.bias)),
        grad_output(zeros(call.grad_output)) {}
  Tensor input, weight, bias, grad_output;
};

std::vector<Tensor> run(const Convolution& call, const Operands& on) {
  if (!call.backward())
    return {at::convolution(on.input, on.weight, on.bias, call.stride, call.padding, call.dilation,
                            call.transposed, call.output_padding, call.groups)};
  const auto bias_sizes = call.bias.sizes.empty() ? at::OptionalIntArrayRef()
                                                  : at::OptionalIntArrayRef(call.bias.sizes);
  auto [input, weight, bias] = at::convolution_backward(
      on.grad_output, on.input, on.weight, bias_sizes, call.stride, call.padding, call.dilation,
      call.transposed, call.output_padding, call.groups, call.mask);
  return {input, weight, bias};
}

constexpr size_t kMaxEvents = 4096;  // a convolution has some twenty

AllocationTrace measure(const Convolution& call) {
  const OnTheHost on_the_host;
  const Operands operands(call);
  return record([&] { return run(call, operands); }, kMaxEvents);
}

[[noreturn]] void refuse(const Convolution& call, std::string_view reason) {
  throw NotPlannable(call.backward() ? kBackward : kForward, reason,
                     "plan with a batch that can be run on the host");
}

/// Returns a small batch for which LibTorch takes the kernel of the call; the call is measured with
/// it and with one sample more. 0: the call is measured with its own batch.
int64_t probing_batch(const Convolution& call) {
  if (!batch_is_outermost(call.input) || (call.backward() && !batch_is_outermost(call.grad_output)))
    return 0;
  const auto wanted = backend_of(call);
  for (const int64_t batch : {std::max<int64_t>(2, at::get_num_threads()), kSmallBatch}) {
    if (call.batch() <= batch + 1) return 0;
    if (backend_of(with_batch(call, batch)) == wanted) return batch;
  }
  return 0;
}

}  // namespace

AllocationTrace profile(const Convolution& call) {
  if (!memory::host_allocator::installed())
    refuse(call, "can be measured only while Tare's host allocator is in force");
  const auto at = [&](int64_t batch) {
    const Convolution smaller = with_batch(call, batch);
    return measurements().of(key_of(smaller), [&] { return measure(smaller); });
  };
  const int64_t batch = probing_batch(call);
  if (batch == 0) return at(call.batch());
  const AllocationTrace first = at(batch), second = at(batch + 1);
  if (!same_steps(first, second))
    refuse(call, "allocates differently for batches of " + std::to_string(batch) + " and " +
                     std::to_string(batch + 1));
  return extrapolate(first, batch, second, batch + 1, call.batch());
}

}  // namespace tare::plan
