// Computes what the kernels of the CUDA stand-in would write. Every operator that has a kernel for
// CUDA gets one more, put over it: it calls the real one, whose launches do nothing, so that
// outputs and temporaries are those of a card, and then the host's operator on the same bytes. The
// stand-in loads this library where STAND_IN_VALUES names it; nothing refers to it.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

const bool trace = std::getenv("STAND_IN_TRACE") != nullptr;

/// Inside the real kernel of an operator whose parts need no values.
thread_local int silent = 0;

struct Silence {
  explicit Silence(bool on) : on_(on) { silent += on_; }
  ~Silence() { silent -= on_; }
  bool on_;
};

/// The host's view of one call's tensors: the same bytes, strides and identity.
class Views {
 public:
  Tensor of(const Tensor& t) {
    if (!t.defined() || !t.is_cuda()) return t;
    for (auto& [card, host] : pairs_)
      if (card.is_same(t)) return host;
    auto& storage = storages_[t.storage().unsafeGetStorageImpl()];
    if (!storage)
      storage = c10::Storage(c10::Storage::use_byte_size_t{}, t.storage().nbytes(),
                             at::DataPtr(const_cast<void*>(t.storage().data()), c10::kCPU),
                             c10::GetAllocator(c10::kCPU), true);
    auto host = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
    host.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
    if (t.is_conj()) host._set_conj(true);
    if (t.is_neg()) host._set_neg(true);
    if (t.unsafeGetTensorImpl()->is_wrapped_number())
      host.unsafeGetTensorImpl()->set_wrapped_number(true);
    pairs_.emplace_back(t, host);
    return host;
  }
  std::vector<std::pair<Tensor, Tensor>>& pairs() { return pairs_; }

 private:
  std::vector<std::pair<Tensor, Tensor>> pairs_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> storages_;
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

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ULL + b + 0x7f4a7c15ULL;
  x ^= x >> 30, x *= 0xbf58476d1ce4e5b9ULL, x ^= x >> 27, x *= 0x94d049bb133111ebULL;
  return (x ^ (x >> 31)) & 0xffffffffULL;  // mt19937 takes 32 bits
}

/// Holds the seed and the offset of a card's generator before the real kernel advances it.
struct Random {
  uint64_t seed = 0, offset = 0;
  at::Generator generator() const { return at::detail::createCPUGenerator(mix(seed, offset)); }
};

struct Call {
  Views views;
  c10::Device device{c10::kCUDA, -1};
  Random random;
  const Stack* real = nullptr;
};

/// Puts results where the arguments were; None keeps what the real kernel returned.
using Serve = void (*)(Call&, Stack&);

std::optional<Tensor> optional(const IValue& v) {
  return v.isTensor() && v.toTensor().defined() ? std::optional(v.toTensor()) : std::nullopt;
}
std::vector<int64_t> ints(const IValue& v) { return v.toIntVector(); }
std::vector<int64_t> zeros_like(const std::vector<int64_t>& v) {
  return std::vector<int64_t>(v.size(), 0);
}
template <class... T>
void give(Stack& s, T&&... values) {
  s.clear();
  (s.emplace_back(std::forward<T>(values)), ...);
}

// ---- convolutions and normalisation of cuDNN

void cudnn_convolution(Call&, Stack& s) {  // self weight padding stride dilation groups ...
  const auto padding = ints(s[2]);
  give(s, at::convolution(s[0].toTensor(), s[1].toTensor(), {}, ints(s[3]), padding, ints(s[4]),
                          false, zeros_like(padding), s[5].toInt()));
}
void cudnn_convolution_transpose(
    Call&, Stack& s) {  // self weight padding output_padding stride dilation groups ...
  give(s, at::convolution(s[0].toTensor(), s[1].toTensor(), {}, ints(s[4]), ints(s[2]), ints(s[5]),
                          true, ints(s[3]), s[6].toInt()));
}
void cudnn_convolution_relu(Call&, Stack& s) {  // self weight bias stride padding dilation groups
  const auto padding = ints(s[4]);
  give(s, at::convolution(s[0].toTensor(), s[1].toTensor(), optional(s[2]), ints(s[3]), padding,
                          ints(s[5]), false, zeros_like(padding), s[6].toInt())
              .relu());
}
void depthwise(Call&, Stack& s) {  // self weight kernel bias stride padding dilation
  const auto padding = ints(s[5]);
  give(s, at::convolution(s[0].toTensor(), s[1].toTensor(), optional(s[3]), ints(s[4]), padding,
                          ints(s[6]), false, zeros_like(padding), s[0].toTensor().size(1)));
}
void cudnn_batch_norm(Call&, Stack& s) {  // input weight bias mean var training momentum eps
  auto [out, mean, invstd] =
      at::native_batch_norm(s[0].toTensor(), optional(s[1]), optional(s[2]), optional(s[3]),
                            optional(s[4]), s[5].toBool(), s[6].toDouble(), s[7].toDouble());
  give(s, out, mean, invstd, IValue());
}
void cudnn_batch_norm_backward(
    Call&, Stack& s) {  // input grad weight mean var save_mean save_var eps reserve
  auto [a, b, c] = at::native_batch_norm_backward(
      s[1].toTensor(), s[0].toTensor(), optional(s[2]), optional(s[3]), optional(s[4]),
      optional(s[5]), optional(s[6]), true, s[7].toDouble(), {true, true, true});
  give(s, a, b, c);
}

void rms_norm_backward(Call&, Stack& s) {  // grad input normalized_shape rstd weight mask
  const Tensor grad = s[0].toTensor().to(at::kFloat), input = s[1].toTensor().to(at::kFloat),
               rstd = s[3].toTensor();
  const auto shape = ints(s[2]);
  std::vector<int64_t> inner, outer;
  for (int64_t d = 0; d < input.dim(); ++d)
    (d < input.dim() - static_cast<int64_t>(shape.size()) ? outer : inner).push_back(d);
  const auto weight = optional(s[4]);
  const Tensor x = input * rstd, g = weight ? grad * weight->to(at::kFloat) : grad;
  give(s, (g - x * (g * x).mean(inner, true)) * rstd,
       weight ? (outer.empty() ? grad * x : (grad * x).sum(outer)) : Tensor());
}

// ---- dropout

void native_dropout(Call& call, Stack& s) {  // input p train
  const Tensor input = s[0].toTensor();
  const double p = s[1].toDouble();
  if (!s[2].isNone() && !s[2].toBool())
    return give(s, input.clone(), at::ones(input.sizes(), at::kBool));
  const Tensor mask =
      at::empty(input.sizes(), at::kBool).bernoulli_(1 - p, call.random.generator());
  give(s, input.mul(mask).mul_(p == 1 ? 0 : 1 / (1 - p)), mask);
}
void fused_dropout(Call& call, Stack& s) {  // self p (what is kept) generator
  const Tensor input = s[0].toTensor();
  const double p = s[1].toDouble();
  const Tensor mask = at::empty(input.sizes(), at::kByte).bernoulli_(p, call.random.generator());
  give(s, input.mul(mask).mul_(1 / p), mask);
}
void masked_scale(Call&, Stack& s) {
  give(s, s[0].toTensor().mul(s[1].toTensor()).mul_(s[2].toDouble()));
}

// ---- recurrent cells where cuDNN is off

void lstm_cell(Call&, Stack& s) {  // input_gates hidden_gates cx input_bias hidden_bias
  Tensor gates = s[0].toTensor() + s[1].toTensor();
  if (auto b = optional(s[3])) gates = gates + *b + *optional(s[4]);
  auto g = gates.chunk(4, 1);
  const Tensor i = g[0].sigmoid(), f = g[1].sigmoid(), c = g[2].tanh(), o = g[3].sigmoid();
  const Tensor cy = f * s[2].toTensor() + i * c;
  give(s, o * cy.tanh(), cy, at::cat({i, f, c, o}, 1));
}
void lstm_cell_backward(Call&, Stack& s) {  // grad_hy grad_cy cx cy workspace has_bias
  const auto g = s[4].toTensor().chunk(4, 1);
  const Tensor cx = s[2].toTensor(), t = s[3].toTensor().tanh();
  const Tensor hy = optional(s[0]).value_or(at::zeros_like(cx)),
               of_cy = optional(s[1]).value_or(at::zeros_like(cx));
  const Tensor c = hy * g[3] * (1 - t * t) + of_cy;
  const Tensor gates = at::cat({c * g[2] * g[0] * (1 - g[0]), c * cx * g[1] * (1 - g[1]),
                                c * g[0] * (1 - g[2] * g[2]), hy * t * g[3] * (1 - g[3])},
                               1);
  const bool bias = s[5].toBool();
  give(s, gates, c * g[1], bias ? gates.sum(0) : Tensor());
}
void gru_cell(
    Call&,
    Stack& s) {  // input_gates hidden_gates hx input_bias hidden_bias; workspace: r z n hx hn
  Tensor a = s[0].toTensor(), b = s[1].toTensor();
  const Tensor hx = s[2].toTensor();
  if (auto bias = optional(s[3])) a = a + *bias, b = b + *optional(s[4]);
  auto x = a.chunk(3, 1), h = b.chunk(3, 1);
  const Tensor r = (x[0] + h[0]).sigmoid(), z = (x[1] + h[1]).sigmoid(),
               n = (x[2] + r * h[2]).tanh();
  give(s, n + z * (hx - n), at::cat({r, z, n, hx, h[2]}, 1));
}
void gru_cell_backward(Call&, Stack& s) {  // grad_hy workspace has_bias
  const Tensor g = s[0].toTensor();
  const auto w = s[1].toTensor().chunk(5, 1);
  const Tensor z = g * (w[3] - w[2]) * w[1] * (1 - w[1]), n = g * (1 - w[1]) * (1 - w[2] * w[2]),
               r = n * w[4] * w[0] * (1 - w[0]);
  const Tensor input = at::cat({r, z, n}, 1), hidden = at::cat({r, z, n * w[0]}, 1);
  const bool bias = s[2].toBool();
  give(s, input, hidden, g * w[1], bias ? input.sum(0) : Tensor(), bias ? hidden.sum(0) : Tensor());
}

// ---- attention: all of a card's kernels by the host's flash attention, or by plain products

struct Attention {
  Tensor q, k, v;
  std::optional<Tensor> bias;
  double p = 0;
  bool causal = false;
  std::optional<double> scale;
  Random random;

  bool flash() const { return p == 0 && q.size(3) == v.size(3) && !(bias && causal); }
  Tensor plain() const {
    std::optional<Tensor> mask;
    if (p > 0)
      mask = at::empty({q.size(0), q.size(1), q.size(2), k.size(2)}, at::kBool)
                 .bernoulli_(1 - p, random.generator());
    auto out =
        std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, bias, p, causal, mask, scale));
    return out;
  }
  std::pair<Tensor, Tensor> forward() const {
    if (flash()) {
      auto [out, sum] =
          at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, bias, scale);
      return {out, sum};
    }
    return {plain(), Tensor()};
  }
  /// Of q, k, v and the bias.
  std::array<Tensor, 4> backward(const Tensor& grad, const Tensor& out, const Tensor& sum,
                                 bool of_bias) const {
    if (flash() && !of_bias && sum.defined()) {
      auto [a, b, c] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          grad, q, k, v, out, sum, 0, causal, bias, scale);
      return {a, b, c, Tensor()};
    }
    c10::impl::ForceDispatchKeyGuard all(
        c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{}));
    at::AutoGradMode on(true);
    Attention again = *this;
    again.q = q.detach().requires_grad_(), again.k = k.detach().requires_grad_(),
    again.v = v.detach().requires_grad_();
    std::vector<Tensor> inputs{again.q, again.k, again.v};
    if (of_bias && bias)
      again.bias = bias->detach().requires_grad_(), inputs.push_back(*again.bias);
    auto grads = torch::autograd::grad({again.plain()}, inputs, {grad.detach()});
    return {grads[0], grads[1], grads[2], grads.size() > 3 ? grads[3] : Tensor()};
  }
};
Tensor rows(const Tensor& sum,
            int64_t count) {  // log sums as the card keeps them: padded, or with one more dimension
  if (!sum.defined() || sum.numel() == 0) return {};
  return (sum.dim() == 4 ? sum.squeeze(3) : sum).narrow(2, 0, count);
}
IValue padded(const Tensor& sum, const IValue& like) {
  if (!sum.defined() || !like.isTensor() || !like.toTensor().defined() ||
      like.toTensor().numel() == 0)
    return IValue();
  Tensor result = at::zeros(like.toTensor().sizes(), sum.options());
  rows(result, sum.size(2)).copy_(sum);
  return result;
}
std::optional<double> number(const IValue& v) {
  return v.isNone() ? std::nullopt : std::optional(v.toDouble());
}
Random random_of(Call& call, const IValue& seed, const IValue& offset) {
  const auto one = [&](const IValue& v) -> uint64_t {
    if (!v.isTensor() || !v.toTensor().defined() || v.toTensor().numel() == 0) return 0;
    return static_cast<uint64_t>(
        call.views.of(v.toTensor()).reshape(-1)[0].to(at::kLong).item<int64_t>());
  };
  return {one(seed), one(offset)};
}

void efficient(Call& call, Stack& s) {  // q k v bias lse p causal scale
  Attention a{s[0].toTensor(), s[1].toTensor(), s[2].toTensor(), optional(s[3]),
              s[5].toDouble(), s[6].toBool(),   number(s[7]),    {}};
  if (a.p > 0) a.random = random_of(call, (*call.real)[2], (*call.real)[3]);
  auto [out, sum] = a.forward();
  give(s, out, padded(sum, (*call.real)[1]), IValue(), IValue());
}
void efficient_backward(Call& call,
                        Stack& s) {  // grad q k v bias out lse seed offset p mask causal scale
  Attention a{s[1].toTensor(), s[2].toTensor(), s[3].toTensor(), optional(s[4]),
              s[9].toDouble(), s[11].toBool(),  number(s[12]),   {}};
  if (a.p > 0) a.random = random_of(call, s[7], s[8]);
  const auto g = a.backward(s[0].toTensor(), s[5].toTensor(), rows(s[6].toTensor(), a.q.size(2)),
                            s[10].toBoolList().get(3));
  give(s, g[0], g[1], g[2], g[3]);
}
void flash(Call& call, Stack& s) {  // q k v p causal debug scale
  Attention a{s[0].toTensor(), s[1].toTensor(), s[2].toTensor(), {},
              s[3].toDouble(), s[4].toBool(),   number(s[6]),    call.random};
  auto [out, sum] = a.forward();
  IValue state;
  if (const Tensor& r = (*call.real)[6].toTensor(); a.p > 0 && r.numel() == 2)
    state = at::tensor(
                {static_cast<int64_t>(call.random.seed), static_cast<int64_t>(call.random.offset)})
                .to(r.scalar_type());
  give(s, out, padded(sum, (*call.real)[1]), IValue(), IValue(), IValue(), IValue(), state,
       IValue(), IValue());
}
void flash_backward(Call& call,
                    Stack& s) {  // grad q k v out lse cq ck mq mk p causal seed offset scale
  Attention a{s[1].toTensor(),  s[2].toTensor(), s[3].toTensor(), {},
              s[10].toDouble(), s[11].toBool(),  number(s[14]),   {}};
  if (const Tensor r = s[12].toTensor(); a.p > 0 && r.numel() == 2) {
    const Tensor l = r.to(at::kLong);
    a.random = {static_cast<uint64_t>(l[0].item<int64_t>()),
                static_cast<uint64_t>(l[1].item<int64_t>())};
  }
  (void)call;
  const auto g =
      a.backward(s[0].toTensor(), s[4].toTensor(), rows(s[5].toTensor(), a.q.size(2)), false);
  give(s, g[0], g[1], g[2]);
}
/// Its real kernel is not called (cuDNN's graph has no plan here), so this makes all results.
void cudnn_attention(Call& call, Stack& s) {  // q k v bias lse p causal debug scale
  Attention a{s[0].toTensor(), s[1].toTensor(), s[2].toTensor(), optional(s[3]),
              s[5].toDouble(), s[6].toBool(),   number(s[8]),    call.random};
  if (a.p > 0)
    at::Generator(at::globalContext().defaultGenerator(call.device))
        .set_offset(call.random.offset + 4);
  const bool keep = s[4].toBool();
  auto [out, sum] = a.forward();
  Tensor sums = sum.defined() ? sum.to(at::kFloat).unsqueeze(3)
                              : at::zeros({a.q.size(0), a.q.size(1), a.q.size(2), 1});
  const auto word = [](uint64_t v) {
    return at::scalar_tensor(static_cast<int64_t>(v), at::kLong);
  };
  give(s, out, keep ? sums : Tensor(), Tensor(), Tensor(), a.q.size(2), a.k.size(2),
       word(call.random.seed), word(call.random.offset), Tensor());
}
void cudnn_attention_backward(
    Call& call, Stack& s) {  // grad q k v out lse seed offset bias cq ck mq mk p causal scale
  Attention a{s[1].toTensor(),  s[2].toTensor(), s[3].toTensor(), optional(s[8]),
              s[13].toDouble(), s[14].toBool(),  number(s[15]),   {}};
  if (a.p > 0) a.random = random_of(call, s[6], s[7]);
  const auto g =
      a.backward(s[0].toTensor(), s[4].toTensor(), rows(s[5].toTensor(), a.q.size(2)), false);
  give(s, g[0], g[1], g[2]);
}

const std::unordered_map<std::string_view, Serve> serves = {
    {"aten::cudnn_convolution", cudnn_convolution},
    {"aten::cudnn_convolution_transpose", cudnn_convolution_transpose},
    {"aten::cudnn_convolution_relu", cudnn_convolution_relu},
    {"aten::_conv_depthwise2d", depthwise},
    {"aten::conv_depthwise3d", depthwise},
    {"aten::cudnn_batch_norm", cudnn_batch_norm},
    {"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward},
    {"aten::_fused_rms_norm_backward", rms_norm_backward},
    {"aten::native_dropout", native_dropout},
    {"aten::_fused_dropout", fused_dropout},
    {"aten::_masked_scale", masked_scale},
    {"aten::_thnn_fused_lstm_cell", lstm_cell},
    {"aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward},
    {"aten::_thnn_fused_gru_cell", gru_cell},
    {"aten::_thnn_fused_gru_cell_backward", gru_cell_backward},
    {"aten::_scaled_dot_product_efficient_attention", efficient},
    {"aten::_scaled_dot_product_efficient_attention_backward", efficient_backward},
    {"aten::_scaled_dot_product_flash_attention", flash},
    {"aten::_scaled_dot_product_flash_attention_backward", flash_backward},
    {"aten::_scaled_dot_product_cudnn_attention", cudnn_attention},
    {"aten::_scaled_dot_product_cudnn_attention_backward", cudnn_attention_backward},
};
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
                                                   "aten::_use_cudnn_ctc_loss"};
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
    "aten::_cudnn_rnn",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward"};
/// The same of cuSOLVER's and cuFFT's workspaces, whose sizes stubs leave as they were.
bool is_unreal(std::string_view name) {
  return unreal.contains(name) || name.starts_with("aten::linalg_") ||
         name.starts_with("aten::_linalg_") || name.starts_with("aten::_fft_");
}
/// Real kernels whose parts would be computed for nothing.
const std::unordered_set<std::string_view> quiet = {
    "aten::convolution_backward", "aten::_slow_conv2d_forward", "aten::_slow_conv2d_backward"};

class Values final : public c10::OperatorKernel {
 public:
  Values(c10::SafeKernelFunction real, const c10::OperatorHandle& op) : real_(std::move(real)) {
    const std::string& name = op.operator_name().name;
    if (op.operator_name().overload_name.empty() && serves.contains(name)) serve_ = serves.at(name);
    unreal_ = is_unreal(name), quiet_ = quiet.contains(name), copy_ = name == "aten::copy_";
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
    if (!look(arguments, call)) {  // sparse, nested, ...
      real_.callBoxed(op, keys, &arguments);
      for (auto& v : arguments) stack->push_back(std::move(v));
      return;
    }
    Stack real;
    if (!unreal_) {
      const auto before = keep(arguments);
      real = arguments;
      try {
        const Silence s(quiet_);
        real_.callBoxed(op, keys, &real);
      } catch (...) {
        restore(before);
        throw;
      }
      restore(before);
    }
    call.real = &real;
    Stack host = compute(op, arguments, call);
    take_back(arguments, call);
    for (size_t i = 0; i < returns_written_.size(); ++i) {
      if (returns_written_[i])
        stack->push_back(unreal_ ? arguments[written_.at(i)] : real[i]);
      else
        stack->push_back(merge(unreal_ ? IValue() : real[i], host[i], call));
    }
  }

 private:
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
  std::vector<Before> keep(const Stack& arguments) const {
    std::vector<Before> result;
    if (copy_) return result;
    for (const size_t i : written_)
      map_tensors(arguments[i], [&](const Tensor& t) {
        if (t.defined() && t.is_cuda() && span(t) > 0) {
          const char* const data = static_cast<const char*>(t.const_data_ptr());
          result.push_back({t, data, std::vector<char>(data, data + span(t))});
        }
        return t;
      });
    return result;
  }
  static void restore(const std::vector<Before>& all) {
    for (const auto& b : all)
      if (b.tensor.const_data_ptr() == b.data && span(b.tensor) >= b.bytes.size())
        std::memcpy(const_cast<void*>(b.data), b.bytes.data(), b.bytes.size());
  }

  /// False where a tensor is not plain memory.
  static bool look(const Stack& arguments, Call& call) {
    bool plain = true;
    std::optional<at::Generator> generator;
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
    if (generator->device().is_cuda())
      call.random = {generator->current_seed(), generator->get_offset()};
    return plain;
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
  bool unreal_ = false, quiet_ = false, copy_ = false;
  std::vector<size_t> written_;
  std::vector<bool> returns_written_;
};

/// An operator that the host has no kernel for.
class Unserved final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack*) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "the CUDA stand-in cannot compute ", op.operator_name());
  }
};

bool is_view(const c10::FunctionSchema& schema) {
  for (const auto& r : schema.returns())
    if (r.alias_info() && !r.alias_info()->isWrite()) return true;
  return false;
}

struct Quiet final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

bool put_over() {
  auto& dispatcher = c10::Dispatcher::singleton();
  static auto* const handles = new std::vector<c10::RegistrationHandleRAII>;  // never taken back
  auto names = dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CUDA);
  names.push_back({"aten::copy_", ""});
  Quiet nothing;
  const c10::WarningUtils::WarningHandlerGuard guard(&nothing);
  int made = 0, unserved = 0;
  for (const auto& name : names) {
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || !name.name.starts_with("aten::") || kept.contains(name.name) ||
        is_view(op->schema()))
      continue;
    const bool served = serves.contains(name.name) && name.overload_name.empty();
    if (!served && !op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
      ++unserved;
      if (trace)
        std::fprintf(stderr, "no values: %s.%s\n", name.name.c_str(), name.overload_name.c_str());
      handles->push_back(dispatcher.registerImpl(
          name, c10::DispatchKey::CUDA,
          c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Unserved>()), std::nullopt,
          nullptr, "values of the stand-in"));
      continue;
    }
    auto real = op->getComputedKernelForDispatchKey(c10::DispatchKey::CUDA);
    handles->push_back(dispatcher.registerImpl(
        name, c10::DispatchKey::CUDA,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Values>(std::move(real), *op)),
        std::nullopt, nullptr, "values of the stand-in"));
    ++made;
  }
  if (trace) std::fprintf(stderr, "values: %d operators, %d without\n", made, unserved);
  return true;
}
// Not a constructor function: those run before the tables above are made.
[[maybe_unused]] const bool done = put_over();

}  // namespace
