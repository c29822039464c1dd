// Sums, means, norms, extremes and the like.
#include <ATen/ceil_div.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/mean.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "tare/memory/libtorch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/card_sum.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;
using torch::jit::Stack;

/// Whether a dimension of a tensor is one of those given; none given: all are.
bool is_reduced(int64_t dim, at::IntArrayRef given, int64_t rank) {
  return given.empty() || std::ranges::any_of(given, [&](int64_t each) {
           return at::maybe_wrap_dim(each, rank) == dim;
         });
}

std::vector<int64_t> dims_of(const c10::IValue& given) {
  if (given.isNone()) return {};
  return given.isInt() ? std::vector{given.toInt()} : given.toIntVector();
}

/// Notes a reduction for a card. `given`: the dimensions that it removes; none: all.
void note_for_card(const Tensor& self, at::IntArrayRef given, const ReductionForm& form) {
  if (!for_card() || self.numel() == 0) return;
  std::vector<SummedDim> all;
  for (int64_t i = 0; i < self.dim(); ++i)
    all.push_back({.size = self.size(i),
                   .stride = self.stride(i),
                   .is_gone = is_reduced(i, given, self.dim())});
  note_sum(card_sum(std::move(all), form));
}

/// Notes a sum of float32 or a 16-bit type, whose parts are float32, for a card.
void note_sum_for_card(const Tensor& self, const c10::IValue& dims, c10::ScalarType dtype) {
  if (accumulated(self) == at::kFloat && (dtype == at::kFloat || dtype == self.scalar_type()))
    note_for_card(self, dims_of(dims), {});
}

// The forms say what a thread of a card knows of its elements (ATen/native/cuda/Reduce*.cu).
constexpr ReductionForm kTruth{.part_bytes = 1};                  // any and all
constexpr ReductionForm kWithIndex{.part_bytes = 16};             // a value and where it is
constexpr ReductionForm kMoments{.part_bytes = 16, .vector = 2};  // mean, squares and counts

/// Returns the dimensions that a call removes, which the argument `dim` names.
std::vector<int64_t> dims_of(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> operands) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == "dim") return dims_of(operands[i]);
  return {};
}

/// Notes a reduction in the form that `form_of` gives for the tensor; unset: it is not known.
template <auto form_of>
void reduction(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor self = operands[0].toTensor();
  const auto dims = dims_of(op, operands);
  op.redispatchBoxed(keys, stack);
  if (const std::optional<ReductionForm> form = form_of(self)) note_for_card(self, dims, *form);
}

std::optional<ReductionForm> truth(const Tensor&) { return kTruth; }
/// Returns the form for float32 and the 16-bit types alone.
std::optional<ReductionForm> if_float(const Tensor& self, const ReductionForm& form) {
  return accumulated(self) == at::kFloat ? std::optional(form) : std::nullopt;
}
std::optional<ReductionForm> norm(const Tensor& self) { return if_float(self, {}); }
std::optional<ReductionForm> with_index(const Tensor& self) { return if_float(self, kWithIndex); }
std::optional<ReductionForm> extreme(const Tensor& self) {
  return if_float(self, {.part_bytes = self.element_size()});
}

/// Whether a card adds up a 16-bit type to float32 without a copy.
bool adds_up(const Tensor& self, c10::ScalarType dtype) {
  return for_card() && is_half(self.scalar_type()) && dtype == at::kFloat;
}

// To another dtype the host sums a copy of it; booleans and integers are summed as int64.
void sum(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor self = operands[0].toTensor();
  const auto asked = operands[3].toOptional<c10::ScalarType>();
  const bool integral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const auto dtype = asked.value_or(integral ? at::kLong : self.scalar_type());
  const c10::IValue dims = operands[1];
  op.redispatchBoxed(keys, stack);
  note_sum_for_card(self, dims, dtype);
  const c10::DataPtr copy = adds_up(self, dtype) ? c10::DataPtr() : hold_converted(self, dtype);
}

// On the host a sum, then a division by the count, which becomes a tensor, and that one of the
// result's dtype; on a card a sum.
void mean(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor self = operands[0].toTensor();
  const auto dtype = operands[3].toOptional<c10::ScalarType>().value_or(self.scalar_type());
  const c10::IValue dims = operands[1];
  op.redispatchBoxed(keys, stack);
  note_sum_for_card(self, dims, dtype);
  if (!adds_up(self, dtype)) hold_converted(self, dtype).clear();
  const c10::DataPtr count = hold_on_host(bytes_of(1, at::kLong)),
                     converted = hold_on_host(bytes_of(1, dtype));
}

/// The formula of the gradient asks for values.
void require_no_gradient(const c10::OperatorHandle& op, const Tensor& self) {
  if (self.requires_grad() && c10::GradMode::is_enabled())
    throw NotPlannable(op.operator_name().name,
                       "has a gradient that reads values, and a plan has none",
                       "plan a part without it");
}

void without_gradient(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  require_no_gradient(op, torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor());
  op.redispatchBoxed(keys, stack);
}

void of_all(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const Tensor self = torch::jit::pop(*stack).toTensor();
  require_no_gradient(op, self);
  stack->emplace_back(fresh({}, self));
  if (const auto form = extreme(self)) note_for_card(self, {}, *form);
}

Tensor dot(const Tensor& self, const Tensor&) {
  Tensor result = fresh({}, self);
  note_product(ProductBy::cublas);
  return result;
}

std::vector<int64_t> reduced(const Tensor& self, at::OptionalIntArrayRef dims, bool keep) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < self.dim(); ++i) {
    const bool gone = !dims || is_reduced(i, *dims, self.dim());
    if (!gone) result.push_back(self.size(i));
    if (gone && keep) result.push_back(1);
  }
  return result;
}

/// Notes what a variance takes on a card.
void note_variance(const Tensor& self, at::OptionalIntArrayRef dims) {
  if (const auto form = if_float(self, kMoments))
    note_for_card(self, dims.value_or(at::IntArrayRef()), *form);
}

/// Computes the variance; for that of all elements the host computes the mean first.
Tensor variance(const Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>&,
                bool keep) {
  const auto sizes = reduced(self, dims, keep);
  Tensor result = fresh(sizes, self);
  if (sizes.empty() && self.is_contiguous() && !for_card()) const Tensor mean = self.mean();
  note_variance(self, dims);
  return result;
}

std::tuple<Tensor, Tensor> variance_and_mean(const Tensor& self, at::OptionalIntArrayRef dims,
                                             const std::optional<at::Scalar>&, bool keep) {
  const auto sizes = reduced(self, dims, keep);
  const Tensor variance = fresh(sizes, self), mean = fresh(sizes, self);
  note_variance(self, dims);
  return {variance, mean};
}

/// Computes the norm of each tensor; a card from the norms of its parts
/// (ATen/native/cuda/ForeachReduceOp.cu).
void norms(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  if (!for_card()) return op.redispatchBoxed(keys, stack);
  constexpr int64_t kPart = 65536;
  const size_t arguments = op.schema().arguments().size();
  const auto tensors = torch::jit::peek(*stack, 0, arguments).toTensorVector();
  torch::jit::drop(*stack, arguments);
  int64_t most = 0;
  for (const Tensor& tensor : tensors) most = std::max(most, at::ceil_div(tensor.numel(), kPart));
  const auto count = static_cast<int64_t>(tensors.size());
  const auto starts = hold(libtorch::kListNormsHaveParts ? bytes_of(count + 1, at::kLong) : 0),
             parts = hold(bytes_of(count * most, accumulated(tensors.front())));
  std::vector<Tensor> each;
  for (const Tensor& tensor : tensors) each.push_back(fresh({}, tensor));
  stack->emplace_back(std::move(each));
}

}  // namespace

void add_reduction_kernels(Kernels& kernels) {
  kernels.add_boxed<&sum>("aten::sum.dim_IntList");
  kernels.add_boxed<&mean>("aten::mean.dim");
  kernels.add_boxed<&norms>("aten::_foreach_norm.Scalar");
  kernels.add("aten::dot", &dot);
  for (const auto* name : {"aten::all", "aten::all.dim", "aten::any", "aten::any.dim"})
    kernels.add_boxed<&reduction<&truth>>(name);
  for (const auto* name : {"aten::amax", "aten::amin"})
    kernels.add_boxed<&reduction<&extreme>>(name);
  for (const auto* name : {"aten::argmax", "aten::argmin", "aten::max.dim", "aten::min.dim"})
    kernels.add_boxed<&reduction<&with_index>>(name);
  for (const auto* name :
       {"aten::linalg_vector_norm", "aten::norm.Scalar", "aten::norm.ScalarOpt_dim"})
    kernels.add_boxed<&reduction<&norm>>(name);
  for (const auto* name : {"aten::max", "aten::min"}) kernels.add_boxed<&of_all>(name);
  for (const auto* name : {"aten::cumprod", "aten::prod", "aten::prod.dim_int"})
    kernels.add_boxed<&without_gradient>(name);
  kernels.add("aten::std.correction", &variance);
  kernels.add("aten::var.correction", &variance);
  kernels.add("aten::var_mean.correction", &variance_and_mean);
}

}  // namespace tare::plan
