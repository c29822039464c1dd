// Texts as sequences of bytes, for the data sets of texts. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "tare/data/collate.h"

namespace tare {

struct DataOptions;

/// Returns the bytes of a text, 0 to 255, as int64 [length]: at most `length` of them, 0: all.
[[nodiscard]] at::Tensor bytes_of(const std::string& text, int64_t length);

/// Returns the collate function that the options name, without one `pad`. Throws ConfigError for a
/// padding that is no byte, because texts are padded with what a model of bytes takes.
[[nodiscard]] Collate collate_of_texts(const DataOptions& options);

}  // namespace tare
