// Changes the colours of a picture in place.
#include "tare/transform/colour_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tare {
namespace {

template <class T>
constexpr float kBound = 255;
template <>
constexpr float kBound<float> = 1;

/// Holds a share and the rest to 1, each rounded once.
struct Shares {
  float own, rest;
  explicit Shares(double share)
      : own(static_cast<float>(share)), rest(static_cast<float>(1 - share)) {}
};

/// Mixes two values by the shares, within the bounds of T.
template <class T>
T blended(float a, float b, const Shares& shares) {
  return static_cast<T>(std::clamp(shares.own * a + shares.rest * b, 0.0F, kBound<T>));
}

/// Returns the grey of a pixel, by the weights of ITU-R BT.601 as torchvision has them.
template <class T>
T grey_at(const Planes<T>& picture, int64_t pixel) {
  if (picture.channels == 1) return picture.values[pixel];
  const auto channel = [&](int64_t c) {
    return static_cast<float>(picture.values[c * picture.pixels() + pixel]);
  };
  return static_cast<T>(0.2989F * channel(0) + 0.587F * channel(1) + 0.114F * channel(2));
}

/// Holds a colour by hue, in shares of the circle, and saturation and value in [0, 1].
struct Hsv {
  float hue = 0, saturation = 0, value = 0;
};

Hsv hsv_of(float r, float g, float b) {
  const float most = std::max({r, g, b}), least = std::min({r, g, b});
  const float range = most - least;
  if (range == 0) return {0, 0, most};
  const float red = (most - r) / range, green = (most - g) / range, blue = (most - b) / range;
  float hue = 4 + green - red;
  if (most == r)
    hue = blue - green;
  else if (most == g)
    hue = 2 + red - blue;
  return {std::fmod(hue / 6 + 1, 1.0F), range / most, most};
}

std::array<float, 3> rgb_of(const Hsv& colour) {
  const float sixth = std::floor(colour.hue * 6), part = colour.hue * 6 - sixth;
  const auto bounded = [](float value) { return std::clamp(value, 0.0F, 1.0F); };
  const float v = colour.value, s = colour.saturation;
  const float p = bounded(v * (1 - s)), q = bounded(v * (1 - s * part)),
              t = bounded(v * (1 - s * (1 - part)));
  switch (static_cast<int>(sixth) % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

/// Calls `change(values, pixels)` for each channel.
template <class Change>
void each_channel(Planes<uint8_t> picture, Change&& change) {
  for (int64_t c = 0; c < picture.channels; ++c)
    change(picture.values + c * picture.pixels(), picture.pixels());
}

}  // namespace

template <class T>
void adjust_brightness(Planes<T> picture, double factor) {
  const Shares shares(factor);
  for (int64_t i = 0; i < picture.channels * picture.pixels(); ++i)
    picture.values[i] = blended<T>(static_cast<float>(picture.values[i]), 0, shares);
}

template <class T>
void adjust_contrast(Planes<T> picture, double factor) {
  const Shares shares(factor);
  double sum = 0;
  for (int64_t i = 0; i < picture.pixels(); ++i) sum += static_cast<double>(grey_at(picture, i));
  const auto mean = static_cast<float>(sum / static_cast<double>(picture.pixels()));
  for (int64_t i = 0; i < picture.channels * picture.pixels(); ++i)
    picture.values[i] = blended<T>(static_cast<float>(picture.values[i]), mean, shares);
}

template <class T>
void adjust_saturation(Planes<T> picture, double factor) {
  const Shares shares(factor);
  if (picture.channels == 1) return;
  for (int64_t i = 0; i < picture.pixels(); ++i) {
    const auto grey = static_cast<float>(grey_at(picture, i));
    for (int64_t c = 0; c < picture.channels; ++c) {
      T& value = picture.values[c * picture.pixels() + i];
      value = blended<T>(static_cast<float>(value), grey, shares);
    }
  }
}

void adjust_hue(Planes<float> picture, float share) {
  if (picture.channels == 1) return;
  float *r = picture.values, *g = r + picture.pixels(), *b = g + picture.pixels();
  for (int64_t i = 0; i < picture.pixels(); ++i) {
    Hsv colour = hsv_of(r[i], g[i], b[i]);
    colour.hue = std::fmod(colour.hue + share + 1, 1.0F);
    const auto rgb = rgb_of(colour);
    r[i] = rgb[0];
    g[i] = rgb[1];
    b[i] = rgb[2];
  }
}

template <class T>
void make_grey(Planes<T> picture) {
  for (int64_t i = 0; i < picture.pixels(); ++i) {
    const T grey = grey_at(picture, i);
    for (int64_t c = 0; c < picture.channels; ++c) picture.values[c * picture.pixels() + i] = grey;
  }
}

void adjust_sharpness(Planes<uint8_t> picture, double factor) {
  const Shares shares(factor);
  const int64_t height = picture.height, width = picture.width;
  if (height <= 2 || width <= 2) return;
  each_channel(picture, [&](uint8_t* values, int64_t pixels) {
    const std::vector<uint8_t> before(values, values + pixels);
    for (int64_t y = 1; y + 1 < height; ++y) {
      for (int64_t x = 1; x + 1 < width; ++x) {
        const int64_t at = y * width + x;
        int sum = 4 * before[static_cast<size_t>(at)];  // the centre counts five times
        for (int64_t row = at - width; row <= at + width; row += width)
          for (int64_t i = row - 1; i <= row + 1; ++i) sum += before[static_cast<size_t>(i)];
        const float blurred = std::nearbyint(static_cast<float>(sum) / 13);
        values[at] = blended<uint8_t>(values[at], blurred, shares);
      }
    }
  });
}

void stretch_contrast(Planes<uint8_t> picture) {
  each_channel(picture, [](uint8_t* values, int64_t pixels) {
    const auto [least, most] = std::minmax_element(values, values + pixels);
    if (*least == *most) return;
    const float low = *least, scale = 255 * (1 / (static_cast<float>(*most) - low));
    for (int64_t i = 0; i < pixels; ++i)
      values[i] = static_cast<uint8_t>(std::clamp((values[i] - low) * scale, 0.0F, 255.0F));
  });
}

void equalise(Planes<uint8_t> picture) {
  each_channel(picture, [](uint8_t* values, int64_t pixels) {
    std::array<int64_t, 256> count{};
    for (int64_t i = 0; i < pixels; ++i) ++count[values[i]];
    const auto last = std::find_if(count.rbegin(), count.rend(), [](int64_t n) { return n > 0; });
    const int64_t step = (pixels - *last) / 255;
    if (step == 0) return;
    std::array<uint8_t, 256> table{};
    int64_t below = 0;
    for (size_t value = 0; value < table.size(); ++value) {
      table[value] = static_cast<uint8_t>(
          value == 0 ? 0 : std::clamp<int64_t>((below + step / 2) / step, 0, 255));
      below += count[value];
    }
    for (int64_t i = 0; i < pixels; ++i) values[i] = table[values[i]];
  });
}

void posterise(Planes<uint8_t> picture, int bits) {
  const auto mask = static_cast<uint8_t>(0xFF00U >> static_cast<unsigned>(bits));
  each_channel(picture, [&](uint8_t* values, int64_t pixels) {
    for (int64_t i = 0; i < pixels; ++i) values[i] &= mask;
  });
}

void solarise(Planes<uint8_t> picture, float threshold) {
  each_channel(picture, [&](uint8_t* values, int64_t pixels) {
    for (int64_t i = 0; i < pixels; ++i)
      if (values[i] >= threshold) values[i] = static_cast<uint8_t>(255 - values[i]);
  });
}

template void adjust_brightness(Planes<float>, double);
template void adjust_brightness(Planes<uint8_t>, double);
template void adjust_contrast(Planes<float>, double);
template void adjust_contrast(Planes<uint8_t>, double);
template void adjust_saturation(Planes<float>, double);
template void adjust_saturation(Planes<uint8_t>, double);
template void make_grey(Planes<float>);

}  // namespace tare
