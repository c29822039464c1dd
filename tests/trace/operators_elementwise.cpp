// Functions of single elements, and softmax.
#include "trace/operator_cases.h"

namespace tare::plan {
void add_elementwise(Cases& each) {
  each.function("relu", kRows, [](const Tensor& x) { return torch::relu(x); });
  each.function("relu6", kRows, [](const Tensor& x) { return torch::relu6(x); });
  each.function("elu", kRows, [](const Tensor& x) { return torch::elu(x); });
  each.function("selu", kRows, [](const Tensor& x) { return torch::selu(x); });
  each.function("celu", kRows, [](const Tensor& x) { return torch::celu(x); });
  each.function("gelu", kRows, [](const Tensor& x) { return torch::gelu(x); });
  each.function("silu", kRows, [](const Tensor& x) { return torch::silu(x); });
  each.function("mish", kRows, [](const Tensor& x) { return torch::mish(x); });
  each.function("tanh", kRows, [](const Tensor& x) { return torch::tanh(x); });
  each.function("sigmoid", kRows, [](const Tensor& x) { return torch::sigmoid(x); });
  each.function("hardtanh", kRows, [](const Tensor& x) { return torch::hardtanh(x); });
  each.function("hardswish", kRows, [](const Tensor& x) { return torch::hardswish(x); });
  each.function("hardsigmoid", kRows, [](const Tensor& x) { return torch::hardsigmoid(x); });
  each.function("softplus", kRows, [](const Tensor& x) { return torch::softplus(x); });
  each.function("log_sigmoid", kRows, [](const Tensor& x) { return torch::log_sigmoid(x); });
  each.function("softshrink", kRows, [](const Tensor& x) { return torch::softshrink(x); });
  each.function("hardshrink", kRows, [](const Tensor& x) { return torch::hardshrink(x); });
  each.function("leaky_relu", kRows, [](const Tensor& x) { return torch::leaky_relu(x); });
  each.function("abs", kRows, [](const Tensor& x) { return torch::abs(x); });
  each.function("exp", kRows, [](const Tensor& x) { return torch::exp(x); });
  each.function("log", kRows, [](const Tensor& x) { return torch::log(x); });
  each.function("sqrt", kRows, [](const Tensor& x) { return torch::sqrt(x); });
  each.function("rsqrt", kRows, [](const Tensor& x) { return torch::rsqrt(x); });
  each.function("square", kRows, [](const Tensor& x) { return torch::square(x); });
  each.function("reciprocal", kRows, [](const Tensor& x) { return torch::reciprocal(x); });
  each.function("sin", kRows, [](const Tensor& x) { return torch::sin(x); });
  each.function("cos", kRows, [](const Tensor& x) { return torch::cos(x); });
  each.function("erf", kRows, [](const Tensor& x) { return torch::erf(x); });
  each.function("neg", kRows, [](const Tensor& x) { return torch::neg(x); });
  each.function("log1p", kRows, [](const Tensor& x) { return torch::log1p(x); });
  each.function("expm1", kRows, [](const Tensor& x) { return torch::expm1(x); });
  each.function("log2", kRows, [](const Tensor& x) { return torch::log2(x); });
  each.function("atan", kRows, [](const Tensor& x) { return torch::atan(x); });
  each.function("sign", kRows, [](const Tensor& x) { return torch::sign(x); });
  each.function("gelu_tanh", kRows, [](const Tensor& x) { return torch::gelu(x, "tanh"); });
  each.function("softsign", kRows, [](const Tensor& x) { return F::softsign(x); });
  each.function("tanhshrink", kRows, [](const Tensor& x) { return F::tanhshrink(x); });
  each.function("threshold", kRows, [](const Tensor& x) { return torch::threshold(x, 0.1, 20); });
  each.function("glu", kRows, [](const Tensor& x) { return torch::glu(x, 1); });
  each.function("prelu", kRows, [](const Tensor& x) { return nn::PReLU()(x); });
  each.function("clamp", kRows, [](const Tensor& x) { return torch::clamp(x, 0.1, 0.5); });
  each.function("clamp_min", kRows, [](const Tensor& x) { return torch::clamp_min(x, 0.1); });
  each.function("pow2", kRows, [](const Tensor& x) { return torch::pow(x, 2); });
  each.function("pow3", kRows, [](const Tensor& x) { return torch::pow(x, 3); });
  each.function("pow_half", kRows, [](const Tensor& x) { return torch::pow(x, 0.5); });
  each.function("pow_t", kRows, [](const Tensor& x) {
    return torch::pow(x, torch::rand({7, 12}));
  });
  each.function("relu_", kRows, [](const Tensor& x) { return (x * 2).relu_(); });
  each.function("leaky_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return torch::leaky_relu_(y);
  });
  each.function("silu_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return torch::silu_(y);
  });
  each.function("hardtanh_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return torch::hardtanh_(y);
  });
  each.function("hardswish_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return torch::hardswish_(y);
  });
  each.function("relu6_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return torch::relu6_(y);
  });
  each.function("elu_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return torch::elu_(y);
  });
  each.function("sigmoid_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return y.sigmoid_();
  });
  each.function("tanh_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return y.tanh_();
  });
  each.function("exp_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return y.exp_();
  });
  each.function("add1", kRows, [](const Tensor& x) { return x + 1; });
  each.function("rsub", kRows, [](const Tensor& x) { return 1 - x; });
  each.add("mul_out", [] {  // as gradients are put into the buckets of ranks
    const c10::NoGradGuard no_grad;
    auto place = torch::empty({90}).narrow(0, 3, 84).view({7, 12});
    at::mul_out(place, in({7, 12}), at::scalar_tensor(0.5));
  });
  each.function("mul2", kRows, [](const Tensor& x) { return x * 2; });
  each.function("div2", kRows, [](const Tensor& x) { return x / 2; });
  each.function("rdiv", kRows, [](const Tensor& x) { return 2 / x; });
  each.function("bcast_add", kRows, [](const Tensor& x) { return x + in({12}); });
  each.function("bcast_mul", kRows, [](const Tensor& x) { return x * in({7, 1}); });
  each.function("bcast_div", kRows, [](const Tensor& x) { return x / in({12}); });
  each.function("sub_t", kRows, [](const Tensor& x) { return x - in({7, 12}); });
  each.add("ge", [] { auto y = in({7, 12}).ge(0.5); });
  each.add("le", [] { auto y = in({7, 12}).le(0.5); });
  each.function("maximum", kRows, [](const Tensor& x) { return torch::maximum(x, in({7, 12})); });
  each.function("minimum", kRows, [](const Tensor& x) { return torch::minimum(x, in({7, 12})); });
  each.function("lerp", kRows, [](const Tensor& x) { return torch::lerp(x, in({7, 12}), 0.3); });
  each.function("addcmul", kRows, [](const Tensor& x) {
    return torch::addcmul(x, in({7, 12}), in({7, 12}), 0.3);
  });
  each.function("addcdiv", kRows, [](const Tensor& x) {
    return torch::addcdiv(x, in({7, 12}), in({7, 12}), 0.3);
  });
  each.function("eq_scalar", kRows, [](const Tensor& x) { return x * (x == 0); });
  each.function("gt_scalar", kRows, [](const Tensor& x) { return x * (x > 0); });
  each.function("to_double", kRows, [](const Tensor& x) { return x.to(torch::kDouble); });
  each.function("to_bf16", kRows, [](const Tensor& x) { return x.to(torch::kBFloat16); });
  each.function("clone", kRows, [](const Tensor& x) { return x.clone(); });
  each.function("softmax1", kRows, [](const Tensor& x) { return torch::softmax(x, 1); });
  each.function("softmax0", kRows, [](const Tensor& x) { return torch::softmax(x, 0); });
  each.function("softmax_mid", kImages, [](const Tensor& x) { return torch::softmax(x, 1); });
  each.function("log_softmax1", kRows, [](const Tensor& x) { return torch::log_softmax(x, 1); });
  each.function("log_softmax_mid", kImages,
                [](const Tensor& x) { return torch::log_softmax(x, 1); });
  each.function("log_softmax_t", {3, 5, 7},
                [](const Tensor& x) { return torch::log_softmax(x.transpose(1, 2), 1); });
  each.function("softmax_t", {3, 5, 7},
                [](const Tensor& x) { return torch::softmax(x.transpose(1, 2), 1); });
  each.function("softmax_dtype", kRows,
                [](const Tensor& x) { return torch::softmax(x, 1, torch::kDouble); });
  each.function("softmin", kRows, [](const Tensor& x) { return F::softmin(x, 1); });
  each.function("logsumexp", kRows, [](const Tensor& x) { return torch::logsumexp(x, 1); });
}

}  // namespace tare::plan
