// Products of matrices, and embeddings.
#include "trace/operator_cases.h"

namespace tare::plan {
void add_products(Cases& each) {
  each.function("linear", kRows, [](const Tensor& x) { return nn::Linear(12, 5)(x); });
  each.function("linear3", kSeries, [](const Tensor& x) { return nn::Linear(12, 5)(x); });
  each.function("linear3nb", kSeries, [](const Tensor& x) {
    return nn::Linear(nn::LinearOptions(12, 5).bias(false))(x);
  });
  each.function("linear1", {12}, [](const Tensor& x) { return nn::Linear(12, 5)(x); });
  each.function("linear_t", {3, 12, 5},
                [](const Tensor& x) { return nn::Linear(12, 5)(x.transpose(1, 2)); });
  each.function("linear_of_rows", kSeries, [](const Tensor& x) {
    return torch::linear(x, in({5, 12}), in({5}));
  });
  each.function("linear_of_columns", {3, 12, 5}, [](const Tensor& x) {
    return torch::linear(x.transpose(1, 2), in({5, 12}), in({5}));
  });
  each.function("linear_of_swapped", kSeries, [](const Tensor& x) {
    return torch::linear(x.transpose(0, 1), in({5, 12}), in({5}));
  });
  each.function("linear_of_volumes", {2, 3, 4, 12}, [](const Tensor& x) {
    return torch::linear(x.transpose(1, 2), in({5, 12}), in({5}));
  });
  each.function("bilinear", kRows, [](const Tensor& x) { return nn::Bilinear(12, 12, 5)(x, x); });
  each.function("mm", kRows, [](const Tensor& x) { return torch::mm(x, in({12, 3})); });
  each.function("mm_t", kRows, [](const Tensor& x) { return torch::mm(x, in({3, 12}).t()); });
  each.function("matmul3x2", kSeries, [](const Tensor& x) {
    return torch::matmul(x, in({12, 3}));
  });
  each.function("matmul2x3", kRows, [](const Tensor& x) {
    return torch::matmul(x, in({4, 12, 3}));
  });
  each.function("matmul4", {2, 3, 5, 12},
                [](const Tensor& x) { return torch::matmul(x, x.transpose(-1, -2)); });
  each.function("matmul4b", {2, 3, 5, 12}, [](const Tensor& x) {
    return torch::matmul(x, in({3, 12, 4}));
  });
  each.function("bmm", kSeries, [](const Tensor& x) { return torch::bmm(x, in({3, 12, 4})); });
  each.function("bmm_t", kSeries, [](const Tensor& x) {
    return torch::bmm(x, in({3, 4, 12}).transpose(1, 2));
  });
  each.function("baddbmm", kSeries, [](const Tensor& x) {
    return torch::baddbmm(in({3, 5, 4}), x, in({3, 12, 4}));
  });
  each.function("addmm", kRows, [](const Tensor& x) {
    return torch::addmm(in({4}), x, in({12, 4}));
  });
  each.function("addmm2", kRows, [](const Tensor& x) {
    return torch::addmm(in({7, 4}), x, in({12, 4}));
  });
  each.function("mv", kRows, [](const Tensor& x) { return torch::mv(x, in({12})); });
  each.function("dot", {12}, [](const Tensor& x) { return torch::dot(x, in({12})); });
  each.function("outer", {12}, [](const Tensor& x) { return torch::outer(x, in({5})); });
  each.function("einsum", kSeries, [](const Tensor& x) {
    return torch::einsum("bik,bjk->bij", {x, in({3, 4, 12})});
  });
  each.function("einsum2", kSeries, [](const Tensor& x) {
    return torch::einsum("bik,kj->bij", {x, in({12, 4})});
  });
  each.add("embedding", [] {
    auto e = nn::Embedding(10, 6);
    back(e(classes({3, 5})));
  });
  each.add("embedding_big", [] {
    auto e = nn::Embedding(1000, 64);
    back(e(classes({30, 50})));
  });
  each.add("embedding_pad", [] {
    auto e = nn::Embedding(nn::EmbeddingOptions(10, 6).padding_idx(0));
    back(e(classes({3, 5})));
  });
  each.add("embedding_without_gradient", [] {
    torch::NoGradGuard g;
    auto e = nn::Embedding(10, 6);
    auto y = e(classes({3, 5}));
  });
}

}  // namespace tare::plan
