// Turns scores of pixels into grey pictures.
#include "tare/cli/predict_masks.h"

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/transform/image.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostClasses = 256;  // of a grey picture

/// Returns where a mask lies below the folder.
fs::path name_of(const SamplePlace& place) {
  const fs::path path =
      place.path == "-" ? fs::path("stdin") : fs::path(place.path).lexically_normal();
  const bool is_below = path.is_relative() && *path.begin() != "..";
  fs::path name = is_below ? path : path.filename();
  const std::string line = place.line > 0 ? "-" + std::to_string(place.line) : "";
  return name.replace_filename(name.stem().string() + line + ".png");
}

}  // namespace

fs::path MaskFolder::write(const SamplePlace& place, const at::Tensor& output) {
  if (output.dim() != 4 || output.size(0) != 1 || output.size(1) > kMostClasses)
    throw ConfigError("tare predict",
                      "--masks is for models that give scores [classes, height, width] of at most "
                      "256 classes, and the output of this one is " +
                          c10::str(output.sizes().slice(1)) + ": omit it");
  const fs::path path = folder_ / name_of(place);
  if (!written_.insert(path).second)
    throw ConfigError("tare predict", "two samples would have the mask '" +
                                          printable(path.string(), 1000) +
                                          "': give paths below the working folder");
  const at::Tensor scores = output[0];
  const at::Tensor mask = scores.size(0) == 1 ? scores.gt(0.5) : scores.argmax(0, /*keepdim=*/true);
  io::make_directories(path.parent_path());
  write_png(path, mask.to(at::kByte).contiguous());
  return path;
}

}  // namespace tare::cli
