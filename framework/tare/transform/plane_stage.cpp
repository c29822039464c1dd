// Resizes planes, with or without antialiasing, and scales their values.
#include "tare/transform/plane_stage.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace tare {
namespace {

template <class T>
void resize_row(const T* in, std::vector<float>& out, const Axis& columns) {
  for (size_t x = 0; x < out.size(); ++x) {
    if (columns.low[x] < 0) {
      out[x] = 0;
      continue;
    }
    const float w = columns.weight[x];
    out[x] = (1 - w) * static_cast<float>(in[columns.low[x]]) +
             w * static_cast<float>(in[columns.high[x]]);
  }
}

// Each row of the image is stretched once, then pairs of them are mixed.
template <class T>
void resize_plane(const T* in, float* out, const Axis& rows, const Axis& columns, int64_t in_width,
                  Scaling scaling) {
  const size_t width = columns.low.size();
  std::vector<float> upper(width), lower(width);
  int64_t held = -1;  // the row in `lower`
  for (size_t y = 0; y < rows.low.size(); ++y, out += width) {
    const int64_t low = rows.low[y], high = rows.high[y];
    if (low < 0) {
      std::fill(out, out + width, scaling(0));
      continue;
    }
    if (y == 0 || low != rows.low[y - 1]) {
      if (low == held)
        std::swap(upper, lower);
      else
        resize_row(in + low * in_width, upper, columns);
      resize_row(in + high * in_width, lower, columns);
      held = high;
    }
    const float w = rows.weight[y];
    for (size_t x = 0; x < width; ++x) out[x] = scaling((1 - w) * upper[x] + w * lower[x]);
  }
}

}  // namespace

std::vector<Scaling> scalings(const Normalise* normalise, int64_t channels, bool bytes) {
  const double unit = bytes ? 255 : 1;
  std::vector<Scaling> result(static_cast<size_t>(channels), Scaling{0, static_cast<float>(unit)});
  if (!normalise) return result;
  for (size_t c = 0; c < result.size(); ++c) {
    const size_t i = normalise->mean.size() == 1 ? 0 : c;
    result[c] = {static_cast<float>(unit * normalise->mean[i]),
                 static_cast<float>(unit * normalise->std[i])};
  }
  return result;
}

template <class T>
void scale_row(const T* in, float* out, int64_t count, Scaling scaling) {
  for (int64_t x = 0; x < count; ++x) out[x] = scaling(static_cast<float>(in[x]));
}
template void scale_row(const uint8_t* in, float* out, int64_t count, Scaling scaling);
template void scale_row(const float* in, float* out, int64_t count, Scaling scaling);

Axis::Axis(const Side& side) {
  const float scale = static_cast<float>(side.in) / static_cast<float>(side.scaled);
  for (int64_t i = 0; i < side.out; ++i) {
    const int64_t place = side.place(i);
    const float at = std::max((static_cast<float>(place) + 0.5F) * scale - 0.5F, 0.0F);
    low.push_back(place < 0 ? -1 : std::min(static_cast<int64_t>(at), side.in - 1));
    high.push_back(place < 0 ? -1 : std::min(low.back() + 1, side.in - 1));
    weight.push_back(place < 0 ? 0 : at - static_cast<float>(low.back()));
  }
}

Resizer::Resizer(const Resize& resize, int64_t height, int64_t width) : round_(resize.round) {
  const auto [down, across] = sides_of(resize.fit, height, width, resize.height, resize.width);
  if (resize.antialias) {
    filters_.emplace_back(down);
    filters_.emplace_back(across);
  } else {
    axes_.emplace_back(down);
    axes_.emplace_back(across);
  }
}

template <class T>
void Resizer::run(const T* in, float* out, int64_t in_width, Scaling scaling) const {
  if (!axes_.empty()) return resize_plane(in, out, axes_[0], axes_[1], in_width, scaling);
  const Filter &down = filters_[0], &across = filters_[1];
  const int64_t pixels = down.out() * across.out();
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (round_) {
      std::vector<uint8_t> bytes(static_cast<size_t>(pixels));
      resample_bytes(in, bytes.data(), down, across);
      std::ranges::transform(bytes, out, [&](uint8_t v) { return scaling(v); });
      return;
    }
  }
  resample(in, out, down, across);
  std::transform(out, out + pixels, out, scaling);
}
template void Resizer::run(const uint8_t* in, float* out, int64_t in_width, Scaling scaling) const;
template void Resizer::run(const float* in, float* out, int64_t in_width, Scaling scaling) const;

}  // namespace tare
