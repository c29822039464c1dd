// Finds arrays of pictures that are not saved as models take them. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tare {

/// Returns what is wrong with an array that looks like pictures, [samples, height, width, channels]
/// of uint8, or the levels 0 to 255 in another dtype, as the end of a sentence that begins with its
/// name; empty: nothing is. An array of other dimensions has nothing wrong.
[[nodiscard]] std::string picture_problem(const at::Tensor& array);
/// Returns what is unusual with an array that may be pictures with the channels last, or with the
/// levels of 8 bits in another dtype than uint8, as picture_problem() does.
[[nodiscard]] std::string picture_warning(const at::Tensor& array);

/// Whether an array is grey pictures without a dimension of channels, uint8 [samples, height,
/// width].
[[nodiscard]] bool are_grey_pictures(const at::Tensor& array);

}  // namespace tare
