// Indexing, shapes and reductions.
#include "trace/operator_cases.h"

namespace tare::plan {
void add_shapes(Cases& each) {
  each.function("index_select", kRows,
                [=](const Tensor& x) { return torch::index_select(x, 0, classes({3})); });
  each.function("index_select1", kRows,
                [=](const Tensor& x) { return torch::index_select(x, 1, classes({3})); });
  each.function("index", kRows, [=](const Tensor& x) { return x.index({classes({3})}); });
  each.function("index2", kRows, [=](const Tensor& x) {
    return x.index({classes({3}), classes({3})});
  });
  each.function("gather", kRows, [=](const Tensor& x) {
    return torch::gather(x, 1, classes({7, 2}));
  });
  each.function("scatter", kRows, [=](const Tensor& x) {
    // Of two values for one place a card keeps any.
    return torch::scatter(x, 1, torch::arange(2).expand({7, 2}), in({7, 2}));
  });
  each.function("scatter_v", kRows, [=](const Tensor& x) {
    return torch::scatter(x, 1, classes({7, 2}), 0.5);
  });
  each.function("scatter_add", kRows, [=](const Tensor& x) {
    return torch::scatter_add(x, 1, classes({7, 2}), in({7, 2}));
  });
  each.function("index_add", kRows, [=](const Tensor& x) {
    return torch::index_add(x, 0, classes({3}), in({3, 12}));
  });
  each.function("masked_fill", kRows, [=](const Tensor& x) {
    return torch::masked_fill(x, torch::ones({7, 12}, torch::kBool), 0.5);
  });
  each.function("masked_fill_b", kRows, [=](const Tensor& x) {
    return torch::masked_fill(x, torch::ones({12}, torch::kBool), 0.5);
  });
  each.function("where", kRows, [=](const Tensor& x) {
    return torch::where(torch::ones({7, 12}, torch::kBool), x, in({7, 12}));
  });
  each.function("where_s", kRows, [=](const Tensor& x) {
    return torch::where(torch::ones({7, 12}, torch::kBool), x, 0.5);
  });
  each.function("cat", kRows, [](const Tensor& x) { return torch::cat({x, in({3, 12})}, 0); });
  each.function("cat1", kImages, [](const Tensor& x) { return torch::cat({x, x}, 1); });
  each.function("stack", kRows, [](const Tensor& x) { return torch::stack({x, in({7, 12})}, 1); });
  each.function("split", kRows, [](const Tensor& x) {
    auto p = x.split(4, 1);
    return p[0] * p[1] + p[2];
  });
  each.function("chunk", kRows, [](const Tensor& x) {
    auto p = x.chunk(2, 1);
    return p[0] * p[1];
  });
  each.function("unbind", kRows, [](const Tensor& x) {
    auto p = x.unbind(0);
    return p[0] * p[1];
  });
  each.function("narrow", kRows, [](const Tensor& x) { return x.narrow(1, 2, 3); });
  each.function("slice", kRows, [](const Tensor& x) { return x.slice(1, 0, 10, 2); });
  each.function("select", kRows, [](const Tensor& x) { return x.select(1, 2); });
  each.function("flip", kRows, [](const Tensor& x) { return x.flip({1}); });
  each.function("roll", kRows, [](const Tensor& x) { return x.roll({1}, {1}); });
  each.function("cumsum", kRows, [](const Tensor& x) { return x.cumsum(1); });
  each.function("tril", {6, 6}, [](const Tensor& x) { return x.tril(); });
  each.function("triu", {6, 6}, [](const Tensor& x) { return x.triu(1); });
  each.function("repeat_interleave", kRows,
                [](const Tensor& x) { return x.repeat_interleave(2, 1); });
  each.function("expand", {7, 1}, [](const Tensor& x) { return x.expand({7, 12}); });
  each.function("permute_c", kSeries, [](const Tensor& x) {
    return x.permute({2, 0, 1}).contiguous();
  });
  each.function("reshape", kSeries, [](const Tensor& x) {
    return x.transpose(1, 2).reshape({3, 60});
  });
  each.function("topk", kRows, [](const Tensor& x) { return std::get<0>(x.topk(3)); });
  each.function("max_dim", kRows, [](const Tensor& x) { return std::get<0>(x.max(1)); });
  each.function("min_dim", kRows, [](const Tensor& x) { return std::get<0>(x.min(1)); });
  each.function("amax", kRows, [](const Tensor& x) { return x.amax({1}); });
  each.function("amin", kRows, [](const Tensor& x) { return x.amin({1}); });
  each.function("sum", kRows, [](const Tensor& x) { return x.sum(); });
  each.function("sum1", kRows, [](const Tensor& x) { return x.sum(1); });
  each.function("sum_keep", kRows, [](const Tensor& x) { return x.sum(1, true); });
  each.function("mean", kRows, [](const Tensor& x) { return x.mean(); });
  each.function("mean1", kRows, [](const Tensor& x) { return x.mean(1); });
  each.function("mean_hw", kImages, [](const Tensor& x) { return x.mean({2, 3}); });
  each.function("var", kRows, [](const Tensor& x) { return x.var(1); });
  each.function("std", kRows, [](const Tensor& x) { return x.std(1); });
  each.function("var_all", kRows, [](const Tensor& x) { return x.var(); });
  each.function("var_mean", kRows,
                [](const Tensor& x) { return std::get<0>(torch::var_mean(x, 1)); });
  each.function("norm", kRows, [](const Tensor& x) { return x.norm(); });
  each.function("norm1", kRows, [](const Tensor& x) { return x.norm(2, 1); });
  each.add("argmax", [] { auto y = torch::rand({7, 12}).argmax(1); });
  each.add("one_hot", [] { auto y = torch::one_hot(classes({7}), 5); });
  each.add("arange", [] { auto y = torch::arange(10); });
  each.add("arange_f", [] { auto y = torch::arange(0, 10, 0.5); });
  each.add("linspace", [] { auto y = torch::linspace(0, 1, 10); });
  each.add("strided", [] { const auto y = torch::empty_strided({3, 4}, {1, 3}); });
  each.add("full", [] { auto y = torch::full({3, 4}, 2.0); });
  each.add("eye", [] { auto y = torch::eye(4); });
  each.add("randn", [] { auto y = torch::randn({3, 40}); });
  each.add("randint", [] { auto y = torch::randint(5, {3, 4}); });
  each.add("bernoulli", [] { auto y = torch::bernoulli(torch::rand({3, 4})); });
  each.add("logical", [] {
    auto x = torch::rand({3, 4});
    auto y = (x > 0.5).logical_and(x < 0.7);
    auto z = ~y;
  });
  each.add("all_any", [] {
    auto x = torch::rand({3, 4});
    auto y = (x > 0.5).all();
    auto z = (x > 0.5).any(1);
  });
  each.add("isnan", [] {
    auto x = torch::rand({3, 4});
    auto y = x.isnan();
    auto z = x.isfinite();
  });
}

}  // namespace tare::plan
