// Looks at shape and range of arrays that may be pictures.
#include "tare/data/npy_pictures.h"

#include "tare/config/scalar.h"

namespace tare {
namespace {

constexpr int64_t kSmallestSide = 8;      // below, a dimension may be one of channels
constexpr int64_t kSmallestPicture = 16;  // below, a dimension may be one of sensors
constexpr double kMostLevel = 255;        // of pictures
constexpr double kBeyondOne = 2;  // above, numbers are no levels from 0 to 1 that are rounded

bool may_be_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

bool has_channels_last(const at::Tensor& array) {
  return array.dim() == 4 && may_be_channels(array.size(3)) && array.size(1) >= kSmallestSide &&
         array.size(2) >= kSmallestSide;
}

/// Whether an array that is not uint8 has the shape of pictures, [samples, channels, height, width]
/// or [samples, height, width].
bool may_be_pictures(const at::Tensor& array) {
  if (array.scalar_type() == at::kByte || array.scalar_type() == at::kBool) return false;
  if (array.dim() != 3 && (array.dim() != 4 || !may_be_channels(array.size(1)))) return false;
  return array.size(-1) >= kSmallestPicture && array.size(-2) >= kSmallestPicture;
}

/// Whether all elements are whole numbers from 0 to 255 and reach high levels, as counts, codes and
/// degrees seldom do.
bool has_levels(const at::Tensor& array) {
  constexpr double kLightest = 200;  // the largest level of many pictures
  if (array.is_floating_point())
    for (int64_t i = 0; i < array.size(0); ++i)
      if (const at::Tensor sample = array[i]; !sample.equal(sample.round())) return false;
  const auto [least, most] = array.aminmax();
  return least.item<double>() >= 0 && most.item<double>() >= kLightest &&
         most.item<double>() <= kMostLevel;
}

std::string with_channels_first(std::string text) {
  return text +=
         "save numpy.ascontiguousarray(numpy.moveaxis(array, -1, 1)), which has the channels first";
}

}  // namespace

std::string picture_problem(const at::Tensor& array) {
  if (array.dim() != 4 || array.numel() == 0 || array.scalar_type() == at::kBool) return {};
  if (array.scalar_type() == at::kByte) {
    const bool sure = has_channels_last(array) && array.size(3) < 4 &&
                      array.size(1) >= kSmallestPicture && array.size(2) >= kSmallestPicture;
    return sure ? with_channels_first("has pictures with the channels last: ") : std::string();
  }
  const bool channels = may_be_channels(array.size(1)) || has_channels_last(array);
  if (!channels || !has_levels(array)) return {};
  return "has the levels of pictures, whole numbers from 0 to 255, in another dtype than uint8: "
         "save array.astype(numpy.uint8), which is scaled to 0 to 1 as picture files are, or "
         "(array / 255).astype(numpy.float32)";
}

bool are_grey_pictures(const at::Tensor& array) {
  return array.scalar_type() == at::kByte && array.dim() == 3 && array.size(1) >= kSmallestSide &&
         array.size(2) >= kSmallestSide;
}

std::string picture_warning(const at::Tensor& array) {
  if (array.numel() == 0 || !picture_problem(array).empty()) return {};
  if (has_channels_last(array))
    return with_channels_first("looks like pictures with the channels last; if so, ");
  if (!may_be_pictures(array)) return {};
  const auto [least, most] = array.aminmax();
  const double lightest = most.item<double>();
  if (!(least.item<double>() >= 0 && lightest > kBeyondOne && lightest <= kMostLevel)) return {};
  return "has numbers up to " + config::number_text(lightest) +
         " in another dtype than uint8; if they are the levels of pictures, save "
         "array.astype(numpy.uint8), which is scaled to 0 to 1 as picture files are, or (array / "
         "255).astype(numpy.float32)";
}

}  // namespace tare
