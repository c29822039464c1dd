// Turns texts into tensors, and chooses how they are joined.
#include "tare/data/text_bytes.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/data/datasets.h"

namespace tare {
namespace {

void check_padding(const config::Choice& collate) {
  if (collate.name != "pad") return;
  const auto value = config::read<PadOptions>(collate.options).value;
  if (value >= 0 && value <= 255 && value == std::floor(value)) return;
  throw ConfigError("data.make", "collate.pad.value", "is not a byte, which texts are padded with",
                    "a whole number from 0 to 255", config::number_text(value));
}

}  // namespace

at::Tensor bytes_of(const std::string& text, int64_t length) {
  const auto whole = static_cast<int64_t>(text.size());
  const int64_t count = length > 0 ? std::min(length, whole) : whole;
  at::Tensor tokens = at::empty({count}, at::kLong);
  int64_t* token = tokens.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i)
    token[i] = static_cast<unsigned char>(text[static_cast<size_t>(i)]);
  return tokens;
}

Collate collate_of_texts(const DataOptions& options) {
  const config::Choice collate = options.collate.value_or(config::Choice{.name = "pad"});
  check_padding(collate);
  return collates::registry().make(collate);
}

}  // namespace tare
