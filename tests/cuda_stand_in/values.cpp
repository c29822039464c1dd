// Computes what the kernels of the CUDA stand-in would write. Every operator that has a kernel for
// CUDA gets one more, put over it: it calls the real one, whose launches do nothing, so that
// outputs and temporaries are those of a card, and then the host's operator on the same bytes. The
// stand-in loads this library where STAND_IN_VALUES names it; nothing refers to it.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/cuda/PhiloxCudaState.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "served.h"
#include "uncounted.h"

namespace {

using at::Tensor;
using c10::IValue;
using stand_in::Call;
using stand_in::Serve;
using stand_in::Views;
using torch::jit::Stack;

const bool trace = std::getenv("STAND_IN_TRACE") != nullptr;

/// Counts the real kernels that this thread is in, and those whose parts need no values.
thread_local int inside = 0, silent = 0;

struct Inside {
  explicit Inside(bool quiet) : quiet_(quiet) { ++inside, silent += quiet_; }
  ~Inside() { --inside, silent -= quiet_; }
  bool quiet_;
};

/// Calls `each` for every tensor in a value; it may replace it.
template <class Each>
IValue map_tensors(const IValue& value, const Each& each) {
  if (value.isTensor()) return each(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& t : value.toTensorVector()) list.push_back(each(t));
    return list;
  }
  if (value.isList() && value.toListRef().size() > 0) {
    const auto list = value.toList();
    if (list.elementType()->kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<Tensor>> result;
      for (const IValue& item : value.toListRef())
        result.push_back(item.isTensor() ? std::optional<Tensor>(each(item.toTensor()))
                                         : std::nullopt);
      return result;
    }
  }
  return value;
}

/// Lists the operators that allocate, describe or read, and are right as they are.
const std::unordered_set<std::string_view> kept = {"aten::empty",
                                                   "aten::empty_strided",
                                                   "aten::resize_",
                                                   "aten::resize_as_",
                                                   "aten::_resize_output_",
                                                   "aten::set_",
                                                   "aten::as_strided",
                                                   "aten::view",
                                                   "aten::_reshape_alias",
                                                   "aten::record_stream",
                                                   "aten::is_pinned",
                                                   "aten::_pin_memory",
                                                   "aten::_local_scalar_dense",
                                                   "aten::_fused_sdp_choice",
                                                   "aten::is_set_to",
                                                   "aten::_cudnn_init_dropout_state",
                                                   "aten::_efficientzerotensor",
                                                   "aten::_nested_tensor_from_tensor_list",
                                                   "aten::_use_cudnn_ctc_loss",
                                                   "aten::_use_miopen_ctc_loss"};
/// Real kernels that take a size from what a kernel has written: not called; the results alone are
/// allocated.
const std::unordered_set<std::string_view> unreal = {
    "aten::nonzero",
    "aten::nonzero_static",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
    "aten::embedding_dense_backward",
    "aten::_embedding_bag_dense_backward",
    "aten::masked_select",
    "aten::equal",
    "aten::triangular_solve",
    "aten::ormqr",
    "aten::geqrf",
    "aten::cholesky",
    "aten::cholesky_inverse",
    "aten::_cholesky_solve_helper",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward"};
/// The same of cuSOLVER's and cuFFT's workspaces, whose sizes stubs leave as they were.
bool is_unreal(std::string_view name) {
  return unreal.contains(name) || name.starts_with("aten::linalg_") ||
         name.starts_with("aten::_linalg_") || name.starts_with("aten::_fft_");
}
/// Operators of which the real kernels wait for the card, which captured work must not.
const std::unordered_set<std::string_view> waiting = {
    "aten::nonzero",       "aten::_unique",
    "aten::_unique2",      "aten::unique_dim",
    "aten::masked_select", "aten::unique_consecutive",
    "aten::equal",         "aten::unique_dim_consecutive"};
/// Real kernels whose parts would be computed for nothing.
const std::unordered_set<std::string_view> quiet = {
    "aten::convolution_backward", "aten::_slow_conv2d_forward", "aten::_slow_conv2d_backward"};

/// Finds what a library of the process exports.
template <class Function>
Function* function_of(const char* library, const char* name) {
  void* const found = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return found ? reinterpret_cast<Function*>(dlsym(found, name)) : nullptr;
}

/// Whether a stream is captured: then operators compute when its graph is launched.
bool is_captured() {
  static auto* const captures = function_of<bool()>("libcudart.so.13", "stand_in_captures");
  return captures && captures();
}
void keep_for_launch(const std::function<void()>& work) {
  static auto* const keep =
      function_of<void(const std::function<void()>&)>("libcudart.so.13", "stand_in_keep");
  keep(work);
}

/// Returns a tensor of the same memory that does not own it.
Tensor alias_of(const Tensor& t) {
  if (!t.defined() || !t.is_cuda()) return t;
  c10::Storage storage(c10::Storage::use_byte_size_t{}, t.storage().nbytes(),
                       at::DataPtr(const_cast<void*>(t.storage().data()), t.device()));
  auto alias = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), t.dtype());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
  if (t.is_conj()) alias._set_conj(true);
  if (t.is_neg()) alias._set_neg(true);
  if (t.unsafeGetTensorImpl()->is_wrapped_number())
    alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  return alias;
}
Stack aliases_of(const Stack& values) {
  Stack result;
  for (const IValue& v : values) result.push_back(map_tensors(v, alias_of));
  return result;
}

/// Reads the state of a card's generator in a capture: where its numbers begin is known when the
/// graph is launched.
struct CapturedRandom {
  at::PhiloxCudaState state{};
  CapturedRandom(const at::Generator& generator, uint64_t taken) {
    using Function = at::PhiloxCudaState(c10::GeneratorImpl*, uint64_t);
    static auto* const read =
        function_of<Function>("libtorch_cuda.so", "_ZN2at17CUDAGeneratorImpl17philox_cuda_stateEm");
    if (generator.device().is_cuda()) state = read(generator.unsafeGetGeneratorImpl(), taken);
  }
  [[nodiscard]] stand_in::Random now() const {
    if (!state.captured_) return {state.seed_.val, state.offset_.val};
    return {static_cast<uint64_t>(*state.seed_.ptr),
            static_cast<uint64_t>(*state.offset_.ptr) + state.offset_intragraph_};
  }
};

class Values final : public c10::OperatorKernel {
 public:
  Values(c10::SafeKernelFunction real, const c10::OperatorHandle& op) : real_(std::move(real)) {
    const std::string& name = op.operator_name().name;
    if (op.operator_name().overload_name.empty()) serve_ = stand_in::serve_of(name);
    unreal_ = is_unreal(name), quiet_ = quiet.contains(name), copy_ = name == "aten::copy_";
    waits_ = waiting.contains(name);
    draws_ = name == "aten::_scaled_dot_product_cudnn_attention";
    statistics_ = name.find("batch_norm") != std::string::npos;
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite()) written_.push_back(i);
    for (const auto& r : op.schema().returns())
      returns_written_.push_back(r.alias_info() && r.alias_info()->isWrite());
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    const auto first = stack->end() - static_cast<std::ptrdiff_t>(count);
    if (silent > 0 && !unreal_) return real_.callBoxed(op, keys, stack);
    // Between host and card: the real one, which puts bytes in order by copies on the card.
    if (copy_ && !(first[0].toTensor().is_cuda() && first[1].toTensor().is_cuda()))
      return real_.callBoxed(op, keys, stack);

    Stack arguments(first, stack->end());
    stack->erase(first, stack->end());
    Call call;
    std::optional<at::Generator> generator;
    TORCH_CHECK_NOT_IMPLEMENTED(look(arguments, call, generator),
                                "the CUDA stand-in cannot compute ", op.operator_name(),
                                " of sparse, nested or quantized tensors");
    if (is_captured()) return capture(op, keys, *stack, arguments, call, *generator);
    if (generator->device().is_cuda())
      call.random = {generator->current_seed(), generator->get_offset()};
    Stack real;
    if (unreal_) {
      refuse_other_devices(arguments, call.device);
    } else {
      const auto before = keep(arguments);
      real = arguments;
      try {
        const Inside kernel(quiet_);
        real_.callBoxed(op, keys, &real);
      } catch (...) {
        restore(before);
        throw;
      }
      restore(before);
    }
    call.real = &real;
    const stand_in::Uncounted temporaries;
    Stack host = compute(op, arguments, call);
    take_back(arguments, call);
    give(*stack, arguments, real, host, call);
  }

 private:
  /// Puts the results on the stack.
  void give(Stack& stack, const Stack& arguments, const Stack& real, const Stack& host,
            const Call& call) const {
    for (size_t i = 0; i < returns_written_.size(); ++i) {
      if (returns_written_[i])
        stack.push_back(unreal_ ? arguments[written_.at(i)] : real[i]);
      else
        stack.push_back(merge(unreal_ ? IValue() : real[i], host[i], call));
    }
  }

  /// Keeps the computation for the launch of the graph. What writes nothing is computed now too, so
  /// that the results have their shapes.
  void capture(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack,
               const Stack& arguments, Call& call, const at::Generator& generator) const {
    TORCH_CHECK(!waits_, "CUDA error: operation not permitted when stream is capturing");
    const bool draws = draws_ && arguments[5].toDouble() > 0;
    const CapturedRandom random(generator, draws ? 4 : 0);
    call.captured = true;
    Stack real;
    if (unreal_) {
      refuse_other_devices(arguments, call.device);
    } else {
      real = arguments;
      const Inside kernel(/*quiet=*/true);
      real_.callBoxed(op, keys, &real);
    }
    call.real = &real;
    Stack results;
    {
      const stand_in::Uncounted temporaries;
      const auto before = keep(arguments, /*all=*/statistics_);
      give(results, arguments, real, written_.empty() ? compute(op, arguments, call) : real, call);
      restore(before);
    }
    stack.insert(stack.end(), results.begin(), results.end());
    keep_for_launch([this, op, device = call.device, random, kept = aliases_of(arguments),
                     real = aliases_of(real), results = aliases_of(results)] {
      const stand_in::Uncounted temporaries;
      Call now{.device = device, .random = random.now(), .real = &real, .captured = true};
      const Stack host = compute(op, kept, now);
      for (size_t i = 0; i < returns_written_.size(); ++i) {
        if (returns_written_[i]) continue;
        const IValue made = merge(results[i], host[i], now);
        TORCH_CHECK(!made.isTensor() || made.toTensor().is_same(results[i].toTensor()),
                    "the CUDA stand-in cannot launch ", op.operator_name(),
                    ", whose result has another shape than when it was captured");
      }
    });
  }

  struct Before {
    Tensor tensor;
    const void* data;
    std::vector<char> bytes;
  };

  static size_t span(const Tensor& t) {
    if (t.numel() == 0) return 0;
    int64_t last = 0;
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    return static_cast<size_t>(last + 1) * t.element_size();
  }
  /// A real kernel may fill or copy (cudaMemset does its work), so what it writes is put back
  /// before the host reads it.
  std::vector<Before> keep(const Stack& arguments, bool all = false) const {
    std::vector<Before> result;
    if (copy_) return result;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!all && std::ranges::find(written_, i) == written_.end()) continue;
      map_tensors(arguments[i], [&](const Tensor& t) {
        if (t.defined() && t.is_cuda() && span(t) > 0) {
          const char* const data = static_cast<const char*>(t.const_data_ptr());
          result.push_back({t, data, std::vector<char>(data, data + span(t))});
        }
        return t;
      });
    }
    return result;
  }
  static void restore(const std::vector<Before>& all) {
    for (const auto& b : all)
      if (b.tensor.const_data_ptr() == b.data && span(b.tensor) >= b.bytes.size())
        std::memcpy(const_cast<void*>(b.data), b.bytes.data(), b.bytes.size());
  }

  /// False where a tensor is not plain memory.
  static bool look(const Stack& arguments, Call& call, std::optional<at::Generator>& generator) {
    bool plain = true;
    for (const IValue& v : arguments) {
      map_tensors(v, [&](const Tensor& t) {
        if (t.defined() && (t.layout() != c10::kStrided || t.is_nested() || t.is_quantized()))
          plain = false;
        if (t.defined() && t.is_cuda() && call.device.index() < 0) call.device = t.device();
        return t;
      });
      if (v.isDevice() && call.device.index() < 0 && v.toDevice().is_cuda())
        call.device = v.toDevice();
      if (v.isGenerator()) generator = v.toGenerator();
    }
    if (!generator)
      generator = at::globalContext().defaultGenerator(
          call.device.index() < 0 ? c10::Device(c10::kCUDA) : call.device);
    return plain;
  }

  /// Checks what the real kernel, which is not called, would check.
  static void refuse_other_devices(const Stack& arguments, c10::Device device) {
    for (const IValue& v : arguments)
      map_tensors(v, [&](const Tensor& t) {
        TORCH_CHECK(!t.defined() || t.device() == device,
                    "Expected all tensors to be on the same device, but found at least two "
                    "devices, ",
                    device, " and ", t.defined() ? t.device() : device, "!");
        return t;
      });
  }

  Stack compute(const c10::OperatorHandle& op, const Stack& arguments, Call& call) const {
    const at::AutoDispatchBelowADInplaceOrView below;
    const c10::impl::ExcludeDispatchKeyGuard autocast(c10::autocast_dispatch_keyset);
    const at::DisableRecordFunctionGuard unrecorded;
    const auto& schema = op.schema().arguments();
    const auto convert = [&](const auto& each) {
      Stack result;
      for (size_t i = 0; i < arguments.size(); ++i) {
        const IValue& v = arguments[i];
        if (v.isDevice())
          result.emplace_back(c10::Device(c10::kCPU));
        else if (v.isGenerator() || (v.isNone() && is_generator(schema[i])))
          result.emplace_back(call.random.generator());
        else
          result.push_back(map_tensors(v, each));
      }
      return result;
    };
    const auto run = [&](Stack& stack) {
      if (serve_)
        serve_(call, stack);
      else
        op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    };
    Stack stack = convert([&](const Tensor& t) { return call.views.of(t); });
    try {
      run(stack);
      return stack;
    } catch (const c10::Error&) {
      bool narrow = false;
      for (auto& [card, host] : call.views.pairs())
        narrow |= host.scalar_type() == at::kHalf || host.scalar_type() == at::kBFloat16;
      if (!narrow) throw;
    }
    // The host has no kernel for half, or wants a card's float statistics in half: all in float.
    std::vector<std::pair<Tensor, Tensor>> wide;
    stack = convert([&](const Tensor& t) {
      const Tensor view = call.views.of(t);
      if (!view.defined() ||
          (view.scalar_type() != at::kHalf && view.scalar_type() != at::kBFloat16))
        return view;
      for (auto& [narrow, w] : wide)
        if (narrow.is_same(view)) return w;
      wide.emplace_back(view, view.to(at::kFloat));
      return wide.back().second;
    });
    run(stack);
    for (const size_t i : written_)
      map_tensors(arguments[i], [&](const Tensor& t) {
        for (auto& [narrow, w] : wide)
          if (t.defined() && narrow.is_same(call.views.of(t))) narrow.copy_(w);
        return t;
      });
    return stack;
  }
  static bool is_generator(const c10::Argument& a) {
    const auto type = a.type()->kind() == c10::TypeKind::OptionalType
                          ? a.type()->castRaw<c10::OptionalType>()->getElementType()
                          : a.type();
    return type->kind() == c10::TypeKind::GeneratorType;
  }

  /// Results that the host's operator made larger than they were.
  void take_back(const Stack& arguments, Call& call) const {
    for (const size_t i : written_)
      map_tensors(arguments[i], [&](const Tensor& t) {
        if (!t.defined() || !t.is_cuda()) return t;
        for (auto& [card, host] : call.views.pairs())
          if (card.is_same(t) &&
              (host.sizes() != card.sizes() || host.storage().data() != card.storage().data())) {
            const at::AutoDispatchBelowADInplaceOrView below;
            card.resize_(host.sizes());
            write(card, host);
          }
        return t;
      });
  }

  static void write(const Tensor& card, const Tensor& host) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::DisableRecordFunctionGuard unrecorded;
    Views views;
    const Tensor to = views.of(card);
    if (to.const_data_ptr() != host.const_data_ptr() || to.strides() != host.strides())
      to.copy_(host);
  }
  static Tensor merge(const Tensor& real, const Tensor& host, const Call& call) {
    if (!host.defined()) return real;
    if (real.defined() && !real.is_cuda())
      return real;  // a result that a card too keeps on the host
    if (real.defined() && real.sizes() == host.sizes()) return write(real, host), real;
    const at::AutoDispatchBelowADInplaceOrView below;
    const Tensor made =
        at::empty_strided(host.sizes(), host.strides(), host.options().device(call.device));
    return write(made, host), made;
  }
  static IValue merge(const IValue& real, const IValue& host, const Call& call) {
    if (host.isNone()) return real;
    if (host.isTensor())
      return merge(real.isTensor() ? real.toTensor() : Tensor(), host.toTensor(), call);
    if (host.isTensorList()) {
      const auto values = host.toTensorVector();
      const auto reals =
          real.isTensorList() ? real.toTensorVector() : std::vector<Tensor>(values.size());
      c10::List<Tensor> list;
      for (size_t i = 0; i < values.size(); ++i)
        list.push_back(merge(reals.at(i), values[i], call));
      return list;
    }
    return host;
  }

  c10::SafeKernelFunction real_;
  Serve serve_ = nullptr;
  bool unreal_ = false, quiet_ = false, copy_ = false, waits_ = false;
  bool draws_ = false;       // random numbers, without its real kernel
  bool statistics_ = false;  // its schema does not say that it writes running statistics
  std::vector<size_t> written_;
  std::vector<bool> returns_written_;
};

/// Throws for an operator that the host has no kernel for, unless it is a part of one that has:
/// that one's numbers are computed as a whole.
class Unserved final : public c10::OperatorKernel {
 public:
  explicit Unserved(c10::SafeKernelFunction real) : real_(std::move(real)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    TORCH_CHECK_NOT_IMPLEMENTED(inside > 0, "the CUDA stand-in cannot compute ", op.operator_name(),
                                " of these tensors: no operator of the host gives its numbers");
    real_.callBoxed(op, keys, stack);
  }

 private:
  c10::SafeKernelFunction real_;
};

/// Whether an operator exchanges tensors between processes: the stand-in's NCCL does, with values.
bool is_exchange(const std::string& name) { return name.starts_with("c10d::"); }

bool is_view(const c10::FunctionSchema& schema) {
  for (const auto& r : schema.returns())
    if (r.alias_info() && !r.alias_info()->isWrite()) return true;
  return false;
}

struct Quiet final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// Puts a kernel over the operator's own, for the life of the process.
void put(const c10::OperatorName& name, c10::DispatchKey key, c10::KernelFunction kernel) {
  static auto* const handles = new std::vector<c10::RegistrationHandleRAII>;
  handles->push_back(c10::Dispatcher::singleton().registerImpl(
      name, key, std::move(kernel), std::nullopt, nullptr, "values of the stand-in"));
}

/// Sparse, nested and quantized tensors are not plain memory: their operators are refused.
void refuse_other_tensors() {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto key : {c10::DispatchKey::SparseCUDA, c10::DispatchKey::SparseCsrCUDA,
                         c10::DispatchKey::NestedTensorCUDA, c10::DispatchKey::QuantizedCUDA})
    for (const auto& name : dispatcher.getRegistrationsForDispatchKey(key)) {
      const auto op = dispatcher.findOp(name);
      if (op && op->hasSchema())
        put(name, key,
            c10::KernelFunction::makeFromBoxedFunctor(
                std::make_unique<Unserved>(op->getComputedKernelForDispatchKey(key))));
    }
}

/// cuDNN's recurrent layers have no counterpart on the host, LibTorch's own for a card have. Only
/// the choice between the two asks whether cuDNN accepts a tensor.
bool no_recurrent_cudnn(const Tensor&) { return false; }

bool put_over() {
  auto& dispatcher = c10::Dispatcher::singleton();
  auto names = dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CUDA);
  names.push_back({"aten::copy_", ""});
  Quiet nothing;
  const c10::WarningUtils::WarningHandlerGuard guard(&nothing);
  for (const auto& name : names) {
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || kept.contains(name.name) || is_exchange(name.name) ||
        is_view(op->schema()))
      continue;
    const bool served = (name.overload_name.empty() && stand_in::serve_of(name.name)) ||
                        op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
    if (trace && !served)
      std::fprintf(stderr, "no values: %s.%s\n", name.name.c_str(), name.overload_name.c_str());
    auto real = op->getComputedKernelForDispatchKey(c10::DispatchKey::CUDA);
    put(name, c10::DispatchKey::CUDA,
        served ? c10::KernelFunction::makeFromBoxedFunctor(
                     std::make_unique<Values>(std::move(real), *op))
               : c10::KernelFunction::makeFromBoxedFunctor(
                     std::make_unique<Unserved>(std::move(real))));
  }
  put({"aten::cudnn_is_acceptable", ""}, c10::DispatchKey::CUDA,
      c10::KernelFunction::makeFromUnboxedRuntimeFunction(&no_recurrent_cudnn));
  refuse_other_tensors();
  stand_in::hide_temporaries();
  return true;
}
// Not a constructor function: those run before the tables above are made.
[[maybe_unused]] const bool done = put_over();

}  // namespace
