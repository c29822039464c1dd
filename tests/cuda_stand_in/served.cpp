// Computes by several of the host's operators what one operator of a card gives.
#include "served.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stand_in {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ULL + b + 0x7f4a7c15ULL;
  x ^= x >> 30, x *= 0xbf58476d1ce4e5b9ULL, x ^= x >> 27, x *= 0x94d049bb133111ebULL;
  return (x ^ (x >> 31)) & 0xffffffffULL;  // mt19937 takes 32 bits
}

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
  /// Holds the gradients of q, k, v and the bias.
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

/// Returns the numbers with which attention's dropout begins, which are results. In a graph the
/// kernel writes them to the card.
Random first_random(Call& call, const IValue& seed, const IValue& offset) {
  if (!seed.isTensor() || !seed.toTensor().is_cuda()) return random_of(call, seed, offset);
  call.views.of(seed.toTensor()).fill_(static_cast<int64_t>(call.random.seed));
  call.views.of(offset.toTensor()).fill_(static_cast<int64_t>(call.random.offset));
  return call.random;
}

void efficient(Call& call, Stack& s) {  // q k v bias lse p causal scale
  Attention a{s[0].toTensor(), s[1].toTensor(), s[2].toTensor(), optional(s[3]),
              s[5].toDouble(), s[6].toBool(),   number(s[7]),    {}};
  if (a.p > 0) a.random = first_random(call, (*call.real)[2], (*call.real)[3]);
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
  if (a.p > 0 && !call.captured)
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

}  // namespace

at::Generator Random::generator() const {
  return at::detail::createCPUGenerator(mix(seed, offset));
}

Serve serve_of(std::string_view name) {
  static const std::unordered_map<std::string_view, Serve> serves = {
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
  const auto found = serves.find(name);
  return found == serves.end() ? nullptr : found->second;
}

}  // namespace stand_in
