// Resizes planes by a triangle filter, in fixed or floating point.
#include "tare/transform/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tare {
namespace {

constexpr int kBits = 22;  // of the fraction of a whole weight; a byte and the sign take the others

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// Computes as Pillow does with bytes.
struct Whole {
  using Number = int32_t;
  using Value = uint8_t;
  static constexpr Number kStart = 1 << (kBits - 1);
  static const Number* weights(const Filter& filter, int64_t pixel) {
    return filter.whole_weights(pixel);
  }
  static Value rounded(Number sum) {
    return static_cast<Value>(std::clamp<Number>(sum >> kBits, 0, 255));
  }
};

/// Computes in floating point, without rounding.
struct Real {
  using Number = float;
  using Value = float;
  static constexpr Number kStart = 0;
  static const Number* weights(const Filter& filter, int64_t pixel) {
    return filter.weights(pixel);
  }
  static Value rounded(Number sum) { return sum; }
};

/// `kTaps`: the taps of the filter; 0: a number that is known at run time only.
template <class Arithmetic, int64_t kTaps, class In>
void resize_row(const In* in, typename Arithmetic::Value* out, const Filter& across) {
  const int64_t taps = kTaps > 0 ? kTaps : across.taps();
  const auto* weights = Arithmetic::weights(across, 0);
  for (int64_t x = 0; x < across.out(); ++x, weights += taps) {
    const In* const from = in + across.first(x);
    auto sum = Arithmetic::kStart;
    for (int64_t i = 0; i < taps; ++i)
      sum += static_cast<typename Arithmetic::Number>(from[i]) * weights[i];
    out[x] = Arithmetic::rounded(sum);
  }
}

template <class Arithmetic, class In>
void resize_rows(const In* in, typename Arithmetic::Value* out, int64_t rows,
                 const Filter& across) {
  // A picture that grows has two taps, and one that shrinks has more.
  const auto row = across.taps() == 2   ? resize_row<Arithmetic, 2, In>
                   : across.taps() == 3 ? resize_row<Arithmetic, 3, In>
                   : across.taps() == 4 ? resize_row<Arithmetic, 4, In>
                                        : resize_row<Arithmetic, 0, In>;
  for (int64_t y = 0; y < rows; ++y, in += across.in(), out += across.out()) row(in, out, across);
}

template <class Arithmetic>
void resize_columns(const typename Arithmetic::Value* in, typename Arithmetic::Value* out,
                    int64_t width, const Filter& down) {
  using Number = typename Arithmetic::Number;
  std::vector<Number> sums(static_cast<size_t>(width));
  for (int64_t y = 0; y < down.out(); ++y, out += width) {
    std::ranges::fill(sums, Arithmetic::kStart);
    for (int64_t i = 0; i < down.taps(); ++i) {
      const Number weight = Arithmetic::weights(down, y)[i];
      const auto* const row = in + (down.first(y) + i) * width;
      for (int64_t x = 0; x < width; ++x)
        sums[static_cast<size_t>(x)] += static_cast<Number>(row[x]) * weight;
    }
    for (int64_t x = 0; x < width; ++x) out[x] = Arithmetic::rounded(sums[static_cast<size_t>(x)]);
  }
}

template <class Arithmetic, class In>
void resize(const In* in, typename Arithmetic::Value* out, const Filter& down,
            const Filter& across) {
  std::vector<typename Arithmetic::Value> rows(static_cast<size_t>(down.in() * across.out()));
  resize_rows<Arithmetic>(in, rows.data(), down.in(), across);
  resize_columns<Arithmetic>(rows.data(), out, across.out(), down);
}

}  // namespace

Sides sides_of(const std::string& fit, int64_t height, int64_t width, int64_t to_height,
               int64_t to_width) {
  Sides sides{.down = {.in = height, .scaled = to_height, .out = to_height},
              .across = {.in = width, .scaled = to_width, .out = to_width}};
  if (fit == "stretch") return sides;
  const bool crop = fit == "crop";
  // One side has the size that is asked for, and the other follows from it.
  const bool by_height = (to_height * width > to_width * height) == crop;
  const Side& exact = by_height ? sides.down : sides.across;
  Side& other = by_height ? sides.across : sides.down;
  if (crop)
    other.scaled = other.in * exact.out / exact.in;
  else
    other.scaled = std::max<int64_t>(
        1, std::llrint(static_cast<double>(other.in) / static_cast<double>(exact.in) *
                       static_cast<double>(exact.out)));
  other.begin = std::llrint(static_cast<double>(other.scaled - other.out) / 2);
  return sides;
}

Filter::Filter(const Side& side) : in_(side.in), out_(side.out) {
  const double scale = static_cast<double>(side.in) / static_cast<double>(side.scaled);
  const double support = std::max(scale, 1.0), narrowing = 1 / support;
  struct Span {
    int64_t first = 0, end = 0;
  };
  const auto span_of = [&](double centre) {
    return Span{std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0),
                std::min(static_cast<int64_t>(centre + support + 0.5), in_)};
  };
  const auto centre_of = [&](int64_t place) { return (static_cast<double>(place) + 0.5) * scale; };
  for (int64_t pixel = 0; pixel < out_; ++pixel)
    if (const int64_t place = side.place(pixel); place >= 0) {
      const Span span = span_of(centre_of(place));
      taps_ = std::max(taps_, span.end - span.first);
    }
  first_.resize(static_cast<size_t>(out_));
  weights_.resize(static_cast<size_t>(out_ * taps_));
  whole_.resize(weights_.size());
  std::vector<double> weights;
  for (int64_t pixel = 0; pixel < out_; ++pixel) {
    const int64_t place = side.place(pixel);
    if (place < 0) continue;
    const double centre = centre_of(place);
    const Span span = span_of(centre);
    weights.clear();
    double sum = 0;
    for (int64_t i = span.first; i < span.end; ++i) {
      weights.push_back(triangle((static_cast<double>(i) - centre + 0.5) * narrowing));
      sum += weights.back();
    }
    const int64_t first = std::min(span.first, in_ - taps_);
    first_[static_cast<size_t>(pixel)] = first;
    const size_t to = at(pixel) + static_cast<size_t>(span.first - first);
    for (size_t i = 0; i < weights.size(); ++i) {
      const double weight = weights[i] / sum;
      weights_[to + i] = static_cast<float>(weight);
      whole_[to + i] = static_cast<int32_t>(0.5 + weight * (1 << kBits));
    }
  }
}

void resample_bytes(const uint8_t* in, uint8_t* out, const Filter& down, const Filter& across) {
  resize<Whole>(in, out, down, across);
}

void resample(const uint8_t* in, float* out, const Filter& down, const Filter& across) {
  resize<Real>(in, out, down, across);
}

void resample(const float* in, float* out, const Filter& down, const Filter& across) {
  resize<Real>(in, out, down, across);
}

}  // namespace tare
