// Which tensors an object holds, as far as its type lists them: for the objects of an Experiment.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "tare/memory/accountable.h"

namespace tare::detail {

template <class T>
concept TensorLike = std::convertible_to<const T*, const at::Tensor*>;

/// Accepts an Accountable, or whatever else has a ledger.
template <class T>
concept WithLedger = requires(const T& object) {
  { object.ledger() } -> std::convertible_to<Ledger>;
};

/// Accepts a torch::nn::Module: what it has registered, and the gradients of its parameters.
template <class T>
concept ModuleLike = requires(const T& module) {
  { *module.parameters().begin() } -> std::convertible_to<at::Tensor>;
  { *module.buffers().begin() } -> std::convertible_to<at::Tensor>;
};

/// Accepts a tare::Model, whose parameters and buffers have names.
template <class T>
concept ModelLike = requires(const T& model) {
  { model.parameters().begin()->tensor } -> std::convertible_to<at::Tensor>;
  { model.buffers().begin()->tensor } -> std::convertible_to<at::Tensor>;
  { model.empty() } -> std::convertible_to<bool>;
};

/// Accepts an owner of one object or none: optional, unique_ptr, shared_ptr, ModuleHolder.
template <class T>
concept HolderLike = !std::is_pointer_v<T> && requires(const T& holder) {
  static_cast<bool>(holder);
  *holder;
};

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

template <class T>
concept RangeOfOthers = std::ranges::input_range<const T> &&
    !std::same_as<std::remove_cvref_t<std::ranges::range_reference_t<const T>>, T>;

template <class T>
struct ListsTensors;
/// Whether list_tensors() finds every tensor of such an object, by its type.
template <class T>
inline constexpr bool kListsTensors = ListsTensors<std::remove_cvref_t<T>>::value;

template <class T>
constexpr bool lists_tensors() {
  if constexpr (TensorLike<T> || Accounting<T> || WithLedger<T> || ModuleLike<T> || ModelLike<T> ||
                std::is_arithmetic_v<T> || std::is_enum_v<T>)
    return true;
  else if constexpr (TupleLike<T>)
    return []<size_t... I>(std::index_sequence<I...>) {
      return (kListsTensors<std::tuple_element_t<I, T>> && ...);
    }
  (std::make_index_sequence<std::tuple_size_v<T>>());
  else if constexpr (RangeOfOthers<T>) return kListsTensors<
      std::ranges::range_reference_t<const T>>;
  else if constexpr (HolderLike<T>) return kListsTensors<decltype(*std::declval<const T&>())>;
  else return false;
}

template <class T>
struct ListsTensors : std::bool_constant<lists_tensors<T>()> {};
template <class... Ts>
struct ListsTensors<std::variant<Ts...>> : std::bool_constant<(kListsTensors<Ts> && ...)> {};

inline void list_with_gradient(const at::Tensor& tensor, Ledger& all) {
  all.add(Category::other, "kept", tensor);
  if (tensor.defined() && tensor.is_leaf()) all.add(Category::gradients, "kept", tensor.grad());
}

/// Adds the tensors that an object holds to a ledger, with the gradients of leaves.
template <class T>
void list_tensors(const T& object, Ledger& all) {
  if constexpr (TensorLike<T>) {
    list_with_gradient(object, all);
  } else if constexpr (Accounting<T>) {
    object.account(all);
  } else if constexpr (WithLedger<T>) {
    all.add(object.ledger());
  } else if constexpr (ModuleLike<T>) {
    for (const auto& tensor : object.parameters()) list_with_gradient(tensor, all);
    for (const auto& tensor : object.buffers()) list_with_gradient(tensor, all);
  } else if constexpr (ModelLike<T>) {
    if (object.empty()) return;
    for (const auto& named : object.parameters()) list_with_gradient(named.tensor, all);
    for (const auto& named : object.buffers()) list_with_gradient(named.tensor, all);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    // holds none
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... parts) { (list_tensors(parts, all), ...); }, object);
  } else if constexpr (RangeOfOthers<T>) {
    if constexpr (!std::is_arithmetic_v<std::ranges::range_value_t<const T>>)
      for (const auto& item : object) list_tensors(item, all);
  } else if constexpr (HolderLike<T>) {
    if (object) list_tensors(*object, all);
  } else {
    std::visit([&](const auto& held) { list_tensors(held, all); }, object);
  }
}

}  // namespace tare::detail
