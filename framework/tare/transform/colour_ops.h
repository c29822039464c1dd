// Changes the colours of a picture in place, as torchvision.transforms.functional does. Internal.
//
// float values are in [0, 1], and bytes in 0 to 255; computed values of bytes lose their fraction.
// A picture has one channel or three. With one, saturation and hue stay as they are.
#pragma once

#include <cstdint>

namespace tare {

/// Is the memory of a picture [channels, height, width].
template <class T>
struct Planes {
  T* values = nullptr;
  int64_t channels = 0, height = 0, width = 0;
  /// Returns the pixels of a channel.
  [[nodiscard]] int64_t pixels() const { return height * width; }
};

/// Multiplies all values by `factor`.
template <class T>
void adjust_brightness(Planes<T> picture, double factor);
/// Mixes with the mean of the picture's grey: 0 gives that mean, 1 the picture.
template <class T>
void adjust_contrast(Planes<T> picture, double factor);
/// Mixes with the grey picture: 0 gives it, 1 the picture.
template <class T>
void adjust_saturation(Planes<T> picture, double factor);
/// Moves the hue by a share of the circle, in [-0.5, 0.5].
void adjust_hue(Planes<float> picture, float share);
/// Gives all channels the grey of the picture.
template <class T>
void make_grey(Planes<T> picture);

/// Mixes with the picture that a 3 x 3 filter has blurred: 0 gives that one, 1 the picture. The
/// border stays as it is.
void adjust_sharpness(Planes<uint8_t> picture, double factor);
/// Stretches each channel so that it reaches from 0 to 255.
void stretch_contrast(Planes<uint8_t> picture);
/// Spreads the values of each channel evenly over 0 to 255.
void equalise(Planes<uint8_t> picture);
/// Keeps the highest bits of each value.
void posterise(Planes<uint8_t> picture, int bits);
/// Inverts all values from a threshold on.
void solarise(Planes<uint8_t> picture, float threshold);

}  // namespace tare
