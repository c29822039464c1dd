// The names and pictures of the samples that a classifier is most wrong about. Internal.
#pragma once

#include "tare/data/dataset.h"
#include "tare/recipe/classification.h"

namespace tare {

/// Bounds the side of a picture in pixels; larger samples are scaled down.
inline constexpr int64_t kPictureSide = 64;

/// Sets the names of the worst samples, which are samples of `data` by their index.
void add_names(Classification& classification, const Dataset& data);

/// Sets the pictures of the worst samples, as PNG files in base64, which are samples of `data` by
/// their index: the inputs without random transforms, with what normalised their values undone.
/// Samples that are no images, [1 or 3, height, width], get none.
void add_pictures(Classification& classification, const Dataset& data);

}  // namespace tare
