// Files of arrays as numpy.save writes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>

#include "tare/base/io.h"

namespace tare::testing {

/// Writes a tensor of float32, float64, int64 or uint8 as numpy.save does.
inline void write_npy(const std::filesystem::path& file, const at::Tensor& tensor) {
  const at::Tensor array = tensor.contiguous();
  std::string shape;
  for (const int64_t size : array.sizes()) shape += std::to_string(size) + ", ";
  std::string head = std::string("{'descr': '") +
                     (array.scalar_type() == at::kLong     ? "<i8"
                      : array.scalar_type() == at::kDouble ? "<f8"
                      : array.scalar_type() == at::kByte   ? "|u1"
                                                           : "<f4") +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kAlignment = 64, kStart = 10;
  while ((kStart + head.size() + 1) % kAlignment != 0) head += ' ';
  head += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(head.size() % 256);
  text += static_cast<char>(head.size() / 256);
  text += head;
  text.append(static_cast<const char*>(array.const_data_ptr()), array.nbytes());
  io::write_atomically(file, text);
}

}  // namespace tare::testing
