// Goes through the planes of images and of targets that are images. Internal.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <type_traits>
#include <vector>

namespace tare {

/// Returns the value of the pixels that move in from outside a picture: 0, or the class that the
/// losses ignore.
template <class T>
constexpr T outside() {
  if constexpr (std::is_same_v<T, int64_t>) return -100;
  return 0;
}

/// Calls `f(n)` for each sample n of a batch: in the threads of LibTorch's operators, or in a
/// thread of the loader one after the other. Throws what `f` throws of the first sample for which
/// it does.
template <class F>
void each_sample(int64_t count, const F& f) {
  std::mutex mutex;
  int64_t first = count;
  std::exception_ptr error;
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    int64_t n = begin;
    try {
      for (; n < end; ++n) f(n);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (n >= first) return;
      first = n;
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

/// Returns a tensor like `images`, contiguous [N, height, width] or [N, channels, height, width] of
/// dtype T, whose planes are [height, width]. Calls `make(n)` for each sample n, and what it
/// returns with (in, out) for each plane of the sample.
template <class T, class Make>
at::Tensor each_plane(const at::Tensor& images, int64_t height, int64_t width, Make&& make) {
  std::vector<int64_t> shape = images.sizes().vec();
  const int64_t in_pixels = shape[shape.size() - 2] * shape.back();
  shape[shape.size() - 2] = height;
  shape.back() = width;
  at::Tensor result = at::empty(shape, images.options());
  const int64_t planes = images.dim() == 4 ? images.size(1) : 1;
  const T* in = images.const_data_ptr<T>();
  T* out = result.mutable_data_ptr<T>();
  each_sample(images.size(0), [&](int64_t n) {
    auto&& make_plane = make(static_cast<size_t>(n));
    for (int64_t i = n * planes; i < (n + 1) * planes; ++i)
      make_plane(in + i * in_pixels, out + i * height * width);
  });
  return result;
}

/// Calls `f` with a value of the type of the elements: int64_t, uint8_t or float.
template <class F>
at::Tensor by_type(const at::Tensor& targets, F&& f) {
  if (targets.scalar_type() == at::kLong) return f(int64_t{});
  if (targets.scalar_type() == at::kByte) return f(uint8_t{});
  return f(float{});
}

}  // namespace tare
