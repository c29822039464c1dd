// Turns samples back into pictures and texts.
#include "tare/recipe/sample_view.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <variant>
#include <vector>

#include "tare/base/base64.h"
#include "tare/base/error.h"
#include "tare/model/vocabulary.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

bool is_image(const std::vector<int64_t>& shape) {
  return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3);
}

/// Undoes one normalisation, in place.
void undo(const Normalise& step, std::span<float> values, int64_t channels) {
  const size_t plane = values.size() / static_cast<size_t>(channels);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = step.mean.size() == 1 ? 0 : i / plane;
    values[i] = static_cast<float>(values[i] * step.std[channel] + step.mean[channel]);
  }
}

/// Maps pixels to the range from 0 to 1: keeps them if they lie in it, else scales the lowest to 0
/// and the highest to 1.
void into_range(std::span<float> values) {
  constexpr float kRounding = 0.01F;
  for (float& value : values)
    if (!std::isfinite(value)) value = 0;
  const auto [lowest, highest] = std::ranges::minmax(values);
  if (lowest >= -kRounding && highest <= 1 + kRounding) return;
  const float range = std::max(highest - lowest, 1e-12F);
  for (float& value : values) value = (value - lowest) / range;
}

/// Returns uint8 [channels, height, width] of one input.
at::Tensor pixels_of(const at::Tensor& input, const Transforms* transforms) {
  if (input.scalar_type() == at::kByte) return input.contiguous();
  const at::Tensor copy = input.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
  const std::span values(copy.mutable_data_ptr<float>(), static_cast<size_t>(copy.numel()));
  if (transforms != nullptr) {
    const auto& steps = transforms->steps();
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
      if (const auto* normalise = std::get_if<Normalise>(&*step))
        undo(*normalise, values, copy.size(0));
  }
  into_range(values);
  at::Tensor pixels = at::empty(copy.sizes(), at::kByte);
  std::ranges::transform(values, pixels.mutable_data_ptr<uint8_t>(), [](float value) {
    return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F)));
  });
  return pixels;
}

at::Tensor no_larger(const at::Tensor& image) {
  const int64_t longest = std::max(image.size(1), image.size(2));
  if (longest <= kPictureSide) return image;
  const auto scaled = [&](int64_t side) {
    return std::max<int64_t>(1, side * kPictureSide / longest);
  };
  return resize_image(image, scaled(image.size(1)), scaled(image.size(2)));
}

/// Returns the beginning of a text, in one line; the zeros behind it are padding.
std::string text_of_tokens(const at::Tensor& tokens, const std::vector<std::string>& labels) {
  const at::Tensor all = tokens.to(at::kLong).contiguous();
  const int64_t* first = all.const_data_ptr<int64_t>();
  std::vector<int64_t> kept(first, first + std::min<int64_t>(all.numel(), kTextBytes));
  if (labels.empty())
    while (!kept.empty() && kept.back() == 0) kept.pop_back();
  return printable(text_of(kept, labels), kTextBytes);
}

}  // namespace

SampleView view_of(const Dataset& data, int64_t index, Tokens tokens) {
  SampleView view{.name = data.sample_name(index)};
  const bool has_picture = is_image(data.sample_shape());
  if (!has_picture && tokens == Tokens::none) return view;
  const std::vector<int64_t> indices{index};
  const at::Tensor input = data.get({.indices = indices}).input()[0];
  if (has_picture)
    view.picture = base64(encode_png(no_larger(pixels_of(input, data.transforms()))));
  else if (input.dim() == 1)
    view.text = text_of_tokens(
        input, tokens == Tokens::vocabulary ? data.labels() : std::vector<std::string>());
  return view;
}

}  // namespace tare
