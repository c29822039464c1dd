// Picture files: PNG, JPEG and WebP.
#include <span>

#include "fuzz/support.h"
#include "tare/base/error.h"
#include "tare/transform/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tare;
  try {
    const Picture picture = decode_picture(std::as_bytes(std::span(data, size)), "fuzz", 0);
    fuzz::require(picture.channels == 1 || picture.channels == 3, "a picture is grey or RGB");
    fuzz::require(picture.height > 0 && picture.width > 0, "a picture has pixels");
  } catch (const FormatError&) {
  }
  return 0;
}
