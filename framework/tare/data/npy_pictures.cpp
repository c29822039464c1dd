// Looks at shape and range of arrays that may be pictures.
#include "tare/data/npy_pictures.h"

namespace tare {
namespace {

constexpr int64_t kSmallestSide = 8;  // below, a dimension may be one of channels

bool may_be_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

bool has_channels_last(const at::Tensor& array) {
  return array.dim() == 4 && may_be_channels(array.size(3)) && array.size(1) >= kSmallestSide &&
         array.size(2) >= kSmallestSide;
}

/// Whether all elements are whole numbers of 0 to 255 that go above the levels of 0 to 1.
bool has_levels(const at::Tensor& array) {
  constexpr double kDark = 32, kLight = 255;  // counts, such as of pieces, stay below
  for (int64_t i = 0; i < array.size(0); ++i)
    if (const at::Tensor sample = array[i]; !sample.equal(sample.round())) return false;
  const auto [least, most] = array.aminmax();
  return least.item<double>() >= 0 && most.item<double>() > kDark && most.item<double>() <= kLight;
}

std::string with_channels_first(std::string text) {
  return text +=
         "save numpy.ascontiguousarray(numpy.moveaxis(array, -1, 1)), which has the channels first";
}

}  // namespace

std::string picture_problem(const at::Tensor& array) {
  if (array.dim() != 4 || array.numel() == 0) return {};
  if (array.scalar_type() == at::kByte && has_channels_last(array))
    return with_channels_first("has pictures with the channels last: ");
  const bool channels = may_be_channels(array.size(1)) || has_channels_last(array);
  if (!array.is_floating_point() || !channels || !has_levels(array)) return {};
  return "has the levels of pictures, whole numbers from 0 to 255, in floating point: save "
         "array.astype(numpy.uint8), which is scaled to 0 to 1 as picture files are, or array / "
         "255";
}

std::string picture_warning(const at::Tensor& array) {
  if (array.numel() == 0 || !array.is_floating_point() || !has_channels_last(array)) return {};
  return with_channels_first("looks like pictures with the channels last; if so, ");
}

}  // namespace tare
