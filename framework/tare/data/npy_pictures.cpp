// Looks at shape and range of arrays that may be pictures.
#include "tare/data/npy_pictures.h"

namespace tare {
namespace {

constexpr int64_t kSmallestSide = 8;      // below, a dimension may be one of channels
constexpr int64_t kSmallestPicture = 16;  // below, a dimension may be one of sensors

bool may_be_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

bool has_channels_last(const at::Tensor& array) {
  return array.dim() == 4 && may_be_channels(array.size(3)) && array.size(1) >= kSmallestSide &&
         array.size(2) >= kSmallestSide;
}

/// Whether all elements are whole numbers from 0 to 255 and reach high levels, as counts, codes and
/// degrees seldom do.
bool has_levels(const at::Tensor& array) {
  constexpr double kLightest = 200, kMost = 255;  // the largest level of many pictures, and of all
  if (array.is_floating_point())
    for (int64_t i = 0; i < array.size(0); ++i)
      if (const at::Tensor sample = array[i]; !sample.equal(sample.round())) return false;
  const auto [least, most] = array.aminmax();
  return least.item<double>() >= 0 && most.item<double>() >= kLightest &&
         most.item<double>() <= kMost;
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
  if (array.numel() == 0 || !has_channels_last(array) || !picture_problem(array).empty()) return {};
  return with_channels_first("looks like pictures with the channels last; if so, ");
}

}  // namespace tare
