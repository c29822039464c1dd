// Defines the helpers that the tests of this library share.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "support/damage.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::checkpoint {

using testing::overwrite;
using testing::refused_part;

/// dtype, shape and values 0, 1, 2 ...
inline at::Tensor counting(std::vector<int64_t> shape, c10::ScalarType dtype = c10::kFloat) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count).to(dtype).reshape(shape);
}

inline ::testing::AssertionResult same(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type()) return ::testing::AssertionFailure() << "dtypes differ";
  if (a.sizes() != b.sizes()) return ::testing::AssertionFailure() << "shapes differ";
  return at::equal(a, b) ? ::testing::AssertionSuccess()
                         : ::testing::AssertionFailure() << "values differ";
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string read_file(const std::filesystem::path& path) { return io::read_text(path); }

}  // namespace tare::checkpoint
