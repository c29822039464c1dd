// Compiled with -ffp-contract=off: a fused multiply-add would round differently from machine to
// machine.
#include "tare/data/digits.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tare/data/digit_forms.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

// How much a style varies; lengths in units of the image's size, angles by their tangents.
struct Style {
  float jitter;                   // of a control point, in the unit square
  float height_low, height_high;  // of the digit
  float stretch;                  // of the width, around 1
  float slant_low, slant_high, turn;
  float shift;                          // of the centre
  float pen_low, pen_high, pen_change;  // radius; how much it changes along a stroke
  float soft_low, soft_high;            // width of the stroke's edge, in pixels at sizes up to 28
  float ink_low;                        // brightness of the stroke, up to 1
  int noise_low, noise_high;            // amplitude, of 255
};
constexpr Style kPrinted{.022F, .55F,  .78F, .18F, -.12F, .12F, .1F, .07F,
                         .026F, .058F, 0,    .8F,  1.2F,  .75F, 0,   40};
constexpr Style kWritten{.055F, .62F,  .74F, .3F,  -.12F, .4F, .12F, .045F,
                         .024F, .064F, .4F,  1.0F, 1.9F,  .9F, 0,    12};

struct Pen {
  float x, y, radius;
};
using Path = std::vector<Pen>;

constexpr int kPiecesPerSpan = 5;

StrokePoint catmull_rom(StrokePoint a, StrokePoint b, StrokePoint c, StrokePoint d, float t) {
  const auto at = [t](float p, float q, float r, float s) {
    const float cubic = (3 * (q - r) + s) - p, square = ((2 * p - 5 * q) + 4 * r) - s;
    return q + 0.5F * t * ((r - p) + t * (square + t * cubic));
  };
  return {at(a.x, b.x, c.x, d.x), at(a.y, b.y, c.y, d.y)};
}

// The stroke as short lines, with the pen's radius still 1 everywhere.
Path flatten(const Stroke& stroke, const std::vector<StrokePoint>& p) {
  Path path{{p.front().x, p.front().y, 1}};
  const size_t last = p.size() - 1;
  for (size_t i = 0; i < last; ++i) {
    const int pieces = stroke.smooth ? kPiecesPerSpan : 1;
    for (int k = 1; k <= pieces; ++k) {
      const float t = static_cast<float>(k) / static_cast<float>(pieces);
      const StrokePoint at = stroke.smooth ? catmull_rom(p[i == 0 ? 0 : i - 1], p[i], p[i + 1],
                                                         p[std::min(i + 2, last)], t)
                                           : p[i + 1];
      path.push_back({at.x, at.y, 1});
    }
  }
  return path;
}

std::vector<Path> draw_strokes(const DigitForm& form, const Style& style, RandomBits& bits) {
  std::vector<Path> paths;
  for (const Stroke& stroke : form.strokes) {
    std::vector<StrokePoint> points = stroke.points;
    for (StrokePoint& point : points) {
      point.x += bits.uniform(-style.jitter, style.jitter);
      point.y += bits.uniform(-style.jitter, style.jitter);
    }
    Path path = flatten(stroke, points);
    const float change = bits.uniform(-style.pen_change, style.pen_change);
    const float step = 1 / static_cast<float>(path.size() - 1);
    for (size_t i = 0; i < path.size(); ++i)
      path[i].radius = 1 + change * (static_cast<float>(i) * step - 0.5F);
    paths.push_back(std::move(path));
  }
  return paths;
}

// Scale, slant and turn, then to pixels around a centre, so that the whole digit is inside.
void place(std::vector<Path>& paths, float aspect, const Style& style, float size,
           RandomBits& bits) {
  const float height = bits.uniform(style.height_low, style.height_high);
  const float width = height * aspect * bits.uniform(1 - style.stretch, 1 + style.stretch);
  const float slant = bits.uniform(style.slant_low, style.slant_high);
  // cos and sin of a random angle by their rational form, which needs only exact operations.
  const float t = bits.uniform(-style.turn, style.turn), norm = 1 / (1 + t * t);
  const float cosine = (1 - t * t) * norm, sine = 2 * t * norm;
  const float pen = bits.uniform(style.pen_low, style.pen_high);
  float left = 1e9F, right = -1e9F, top = 1e9F, bottom = -1e9F;
  for (Path& path : paths)
    for (Pen& p : path) {
      const float y = (p.y - 0.5F) * height, x = (p.x - 0.5F) * width - slant * y;
      p = {cosine * x - sine * y, sine * x + cosine * y, p.radius * pen};
      left = std::min(left, p.x), right = std::max(right, p.x);
      top = std::min(top, p.y), bottom = std::max(bottom, p.y);
    }
  const float extent = std::max(right - left, bottom - top) + 2.6F * style.pen_high;
  const float fit = extent > 1 ? 1 / extent : 1;
  const float centre_x = (left + right) * 0.5F, centre_y = (top + bottom) * 0.5F;
  const float free_x = (1 - (right - left + 2.6F * style.pen_high) * fit) * 0.5F;
  const float free_y = (1 - (bottom - top + 2.6F * style.pen_high) * fit) * 0.5F;
  const float limit_x = std::min(style.shift, std::max(free_x, 0.0F)),
              limit_y = std::min(style.shift, std::max(free_y, 0.0F));
  const float move_x = 0.5F + bits.uniform(-limit_x, limit_x),
              move_y = 0.5F + bits.uniform(-limit_y, limit_y);
  for (Path& path : paths)
    for (Pen& p : path)
      p = {((p.x - centre_x) * fit + move_x) * size, ((p.y - centre_y) * fit + move_y) * size,
           p.radius * fit * size};
}

// The line from a to b with round ends into `canvas` (size x size, [0, 1]); brightness falls over
// `soft` pixels.
void draw_line(float* canvas, int64_t size, Pen a, Pen b, float soft) {
  const float reach = std::max(a.radius, b.radius) + soft;
  const auto low = [&](float v) {
    return std::clamp<int64_t>(static_cast<int64_t>(v - reach), 0, size);
  };
  const auto high = [&](float v) {
    return std::clamp<int64_t>(static_cast<int64_t>(v + reach) + 1, 0, size);
  };
  const int64_t x0 = low(std::min(a.x, b.x)), x1 = high(std::max(a.x, b.x));
  const int64_t y0 = low(std::min(a.y, b.y)), y1 = high(std::max(a.y, b.y));
  const float dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
  const float inverse = square > 1e-12F ? 1 / square : 0, sharp = 1 / soft,
              change = b.radius - a.radius;
  for (int64_t y = y0; y < y1; ++y) {
    const float py = (static_cast<float>(y) + 0.5F) - a.y;
    float* row = canvas + y * size;
    for (int64_t x = x0; x < x1; ++x) {
      const float px = (static_cast<float>(static_cast<int32_t>(x)) + 0.5F) - a.x;
      float t = (px * dx + py * dy) * inverse;
      t = t < 0 ? 0 : t;
      t = t > 1 ? 1 : t;
      const float ex = px - t * dx, ey = py - t * dy;
      const float value = ((a.radius + t * change) - std::sqrt(ex * ex + ey * ey)) * sharp + 0.5F;
      row[x] = value > row[x] ? value : row[x];
    }
  }
}

void to_bytes(const std::vector<float>& canvas, uint8_t* out, float ink, int noise,
              RandomBits& bits) {
  for (const float value : canvas) {
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative; another one, other digits.
    int level = static_cast<int>((value > 1 ? 1 : value) * ink + 0.5F);
    if (noise > 0) {
      // The sum of two uniform values: triangular, mean 0.
      const uint64_t draw = bits.next();
      const auto span = static_cast<uint64_t>(noise);
      level += static_cast<int>(((draw & 0xffffffff) * span) >> 32) -
               static_cast<int>(((draw >> 32) * span) >> 32);
    }
    *out++ = static_cast<uint8_t>(std::clamp(level, 0, 255));
  }
}

void draw_digit(int digit, const Style& style, bool written, int64_t size, uint64_t seed,
                std::vector<float>& canvas, uint8_t* out) {
  RandomBits bits(seed);
  const std::vector<DigitForm>& forms = digit_forms(written, digit);
  const DigitForm& form = forms[bits.below(forms.size())];
  std::vector<Path> paths = draw_strokes(form, style, bits);
  place(paths, form.aspect, style, static_cast<float>(size), bits);
  const float soft =
      bits.uniform(style.soft_low, style.soft_high) * std::max(static_cast<float>(size) / 28, 1.0F);
  const float ink = bits.uniform(style.ink_low, 1.0F) * 255;
  const int noises = style.noise_high - style.noise_low + 1;
  const int noise = style.noise_low + static_cast<int>(bits.below(static_cast<uint64_t>(noises)));
  std::fill(canvas.begin(), canvas.end(), 0.0F);
  for (const Path& path : paths)
    for (size_t i = 1; i < path.size(); ++i)
      draw_line(canvas.data(), size, path[i - 1], path[i], soft);
  to_bytes(canvas, out, ink, noise, bits);
}

}  // namespace

DigitImages generate_digits(const GeneratedDigits& options) {
  config::validate(options, "data.generate_digits");
  const bool written = options.style == "written";
  const int64_t size = options.size;
  DigitImages result{at::empty({options.count, 1, size, size}, at::kByte),
                     at::empty({options.count}, at::kLong)};
  uint8_t* pixels = result.images.mutable_data_ptr<uint8_t>();
  int64_t* labels = result.labels.mutable_data_ptr<int64_t>();
  const uint64_t base = derive_seed(static_cast<uint64_t>(options.seed), written ? 1 : 0);
  std::vector<float> canvas(static_cast<size_t>(size * size));
  std::vector<int64_t> ten;
  for (int64_t i = 0; i < options.count; ++i) {
    if (i % 10 == 0) ten = permutation(10, derive_seed(~base, static_cast<uint64_t>(i)));
    labels[i] = ten[static_cast<size_t>(i % 10)];
    draw_digit(static_cast<int>(labels[i]), written ? kWritten : kPrinted, written, size,
               derive_seed(base, static_cast<uint64_t>(i)), canvas, pixels + i * size * size);
  }
  return result;
}

DatasetPtr generated_digits(const GeneratedDigits& options) {
  const DigitImages digits = generate_digits(options);
  return tensor_dataset(digits.images, digits.labels,
                        {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

}  // namespace tare
