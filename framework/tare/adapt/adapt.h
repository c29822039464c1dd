// Work in pieces as large as memory allows. batch(), range() and chunked() do it at once; Batch,
// Range and Chunked are callables that can be called again and again.
//
//   std::vector<at::Tensor> parts = adapt::chunked(images, 512,
//       [&](const at::Tensor& chunk, int64_t, int64_t) { return model.forward(chunk); });
//
// When memory is out, the piece that failed is done again in smaller pieces; what was done stays.
// Only out-of-memory counts (see memory::classify): any other exception passes through after one
// call. At the smallest size NothingFits is thrown. An error that only may be out-of-memory, such
// as a "not supported" of cuDNN, is then rethrown as it was. Sizes are remembered by
// Options::cache. After clean pieces they grow again, up to the first size, if, by what the smaller
// ones needed, the larger one fits. Adaptive calls may nest: an inner NothingFits is out-of-memory
// to the outer one.
//
// Semantics after toma (github.com/BlackHC/toma), but for the growing and what sizes are remembered
// by.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tare/adapt/search.h"
#include "tare/base/code_line.h"

namespace tare::adapt {

/// Collects the result of f for each piece, in order; it is void if f returns nothing.
template <class R>
using Results = std::conditional_t<std::is_void_v<R>, void, std::vector<std::decay_t<R>>>;

namespace detail {

template <class T>
Argument argument(const T& value) {
  if constexpr (std::is_convertible_v<const T*, const at::Tensor*>)
    return {.tensor = &value};
  else
    return {};
}

/// Calls piece(from, to) for pieces of [start, end); repeats a piece that fails with smaller ones.
template <class Piece>
auto in_pieces(Search& search, int64_t start, int64_t end, Piece&& piece) {
  using R = std::invoke_result_t<Piece&, int64_t, int64_t>;
  int64_t done = 0;
  const auto next = [&](int64_t size) -> R {
    done = size;
    return piece(start, start + size);
  };
  if constexpr (std::is_void_v<R>) {
    for (; start < end; start += done) search.attempt(end - start, next);
  } else {
    Results<R> all;
    for (; start < end; start += done) all.push_back(search.attempt(end - start, next));
    return all;
  }
}

/// Throws ConfigError for end < start.
void check_range(int64_t start, int64_t end);
/// Returns the dimension as counted from 0. Throws ShapeError for one that the tensor does not
/// have.
[[nodiscard]] int64_t checked_dim(const at::Tensor& tensor, int64_t dim);

}  // namespace detail

/// Calls f(size, args...) with the largest size that fits, from `initial` down, and returns what f
/// returned. The arguments go to every attempt as they are: f must not move from them. A tensor
/// among them has the batch in dimension 0.
template <class F>
class Batch {
 public:
  /// Names the call `site`, by which the size is remembered: calls on one line share it.
  Batch(int64_t initial, F f, Options options = {}, CodeLine site = CodeLine::current())
      : initial_(initial), f_(std::move(f)), options_(std::move(options)), site_(site) {}

  /// Throws ConfigError for `initial` < 1 or an option out of range, NothingFits, and what f
  /// throws.
  template <class... Args>
  std::invoke_result_t<F&, int64_t, Args&...> operator()(Args&&... args) {
    const std::array<Argument, sizeof...(Args)> arguments{detail::argument(args)...};
    Search search(initial_, options_, site_, arguments);
    return search.attempt(
        initial_, [&](int64_t size) -> decltype(auto) { return std::invoke(f_, size, args...); });
  }

 private:
  int64_t initial_;
  F f_;
  Options options_;
  CodeLine site_;
};

/// Calls f(from, to, args...) for consecutive pieces of a range, each of at most `initial_step`,
/// and returns what f returned for each. f must be able to repeat a piece that it failed in.
template <class F>
class Range {
 public:
  /// Starts with pieces of `initial_step`, >= 1; `site` is the line for which sizes are remembered.
  /// Allocates nothing.
  Range(int64_t initial_step, F f, Options options = {}, CodeLine site = CodeLine::current())
      : initial_step_(initial_step), f_(std::move(f)), options_(std::move(options)), site_(site) {}

  /// Calls the function on the parts of [start, end); an empty range calls nothing. Throws as Batch
  /// does, and ConfigError for end < start.
  template <class... Args>
  auto operator()(int64_t start, int64_t end, Args&&... args) {
    detail::check_range(start, end);
    const std::array<Argument, sizeof...(Args)> arguments{detail::argument(args)...};
    Search search(initial_step_, options_, site_, arguments);
    return detail::in_pieces(search, start, end, [&](int64_t from, int64_t to) -> decltype(auto) {
      return std::invoke(f_, from, to, args...);
    });
  }

 private:
  int64_t initial_step_;
  F f_;
  Options options_;
  CodeLine site_;
};

/// Calls f(chunk, from, to, args...) for consecutive chunks of a tensor along a dimension: views
/// [..., to - from, ...] of at most `initial_step`. Returns what f returned for each.
template <class F>
class Chunked {
 public:
  /// Splits along `dim`; a negative one counts from the end.
  Chunked(int64_t initial_step, F f, int64_t dim = 0, Options options = {},
          CodeLine site = CodeLine::current())
      : initial_step_(initial_step),
        f_(std::move(f)),
        dim_(dim),
        options_(std::move(options)),
        site_(site) {}

  /// Throws as Batch does, and ShapeError for a tensor without that dimension.
  template <class... Args>
  auto operator()(const at::Tensor& tensor, Args&&... args) {
    const int64_t dim = detail::checked_dim(tensor, dim_);
    const std::array<Argument, sizeof...(Args) + 1> arguments{
        Argument{.tensor = &tensor, .batch_dim = dim}, detail::argument(args)...};
    Search search(initial_step_, options_, site_, arguments);
    const auto piece = [&](int64_t from, int64_t to) -> decltype(auto) {
      return std::invoke(f_, tensor.narrow(dim, from, to - from), from, to, args...);
    };
    return detail::in_pieces(search, 0, tensor.size(dim), piece);
  }

 private:
  int64_t initial_step_;
  F f_;
  int64_t dim_;
  Options options_;
  CodeLine site_;
};

/// Makes a Batch and calls it at once.
template <class F>
decltype(auto) batch(int64_t initial, F f, Options options = {},
                     CodeLine site = CodeLine::current()) {
  return Batch<F>(initial, std::move(f), std::move(options), site)();
}

/// Makes a Range and calls it at once.
template <class F>
auto range(int64_t start, int64_t end, int64_t initial_step, F f, Options options = {},
           CodeLine site = CodeLine::current()) {
  return Range<F>(initial_step, std::move(f), std::move(options), site)(start, end);
}

/// Makes a Chunked and calls it at once.
template <class F>
auto chunked(const at::Tensor& tensor, int64_t initial_step, F f, int64_t dim = 0,
             Options options = {}, CodeLine site = CodeLine::current()) {
  return Chunked<F>(initial_step, std::move(f), dim, std::move(options), site)(tensor);
}

/// Holds the names that toma gives to the functions that run at once.
namespace execute {
using adapt::batch;
using adapt::chunked;
using adapt::range;
}  // namespace execute

}  // namespace tare::adapt
