// Png: what a call of libpng's simplified interface works with. Internal.
#pragma once

#include <png.h>

namespace tare {

/// Holds libpng's control block, which is freed on every way out.
struct Png {
  png_image image{};
  Png() { image.version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(&image); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
};

}  // namespace tare
