// Shows a sample to a person: its name, and its picture or its text. Internal.
#pragma once

#include <cstdint>
#include <string>

#include "tare/data/dataset.h"

namespace tare {

/// Bounds the side of a picture in pixels; larger samples are scaled down.
inline constexpr int64_t kPictureSide = 64;
/// Bounds the bytes of a text; the rest of longer ones is left out.
inline constexpr size_t kTextBytes = 240;

/// Says which texts the tokens of samples are.
enum class Tokens {
  none,       ///< samples are no texts
  bytes,      ///< each token is a byte
  vocabulary  ///< each token is the label of its number; without labels a byte
};

/// Holds what a report shows of a sample; empty: it has none.
struct SampleView {
  std::string name{};     ///< Dataset::sample_name()
  std::string picture{};  ///< a PNG file in base64
  std::string text{};     ///< one line, printable
};

/// Returns the view of a sample by its index: its picture if the first input is an image, [1 or 3,
/// height, width], without random transforms and with what normalised its values undone.
[[nodiscard]] SampleView view_of(const Dataset& data, int64_t index, Tokens tokens);

}  // namespace tare
