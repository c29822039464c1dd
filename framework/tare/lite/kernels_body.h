// The kernels for vectors of any width. Internal. Included by one source for each instruction set,
// which defines TARE_LANES (vectors.h), TARE_LITE_ROWS (of a tile), TARE_LITE_NAME and
// TARE_LITE_FUNCTION. Uses no function of another header, because a copy of one that is
// compiled here could be linked into code for every processor.
#include <cstdint>

#include "tare/base/vectors.h"
#include "tare/lite/kernels.h"

namespace tare::lite {
namespace {

constexpr int kRows = TARE_LITE_ROWS;
constexpr int kVectors = 2;  // of a row of a tile
constexpr int kColumns = kVectors * kLanes;

inline float sum(Vec v) {
  float all = 0;
  for (int i = 0; i < kLanes; ++i) all += v[i];
  return all;
}

/// Computes a tile of Rows rows and at most kColumns columns.
template <int Rows>
inline void tile(const float* a, int64_t a_stride, const float* panel, int64_t depth,
                 int64_t columns, float* c, int64_t c_stride, bool accumulate) {
  Vec sums[Rows][kVectors];
  float edge[kColumns];
  const bool whole = columns == kColumns;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Vec{};
  for (int64_t k = 0; k < depth; ++k, panel += kColumns) {
    const Vec b[kVectors] = {load(panel), load(panel + kLanes)};
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vec value = spread(a[r * a_stride + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] += value * b[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    float* row = c + r * c_stride;
    float* to = whole ? row : edge;
    if (!whole && accumulate)
      for (int64_t i = 0; i < columns; ++i) edge[i] = row[i];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      store(to + v * kLanes, accumulate ? load(to + v * kLanes) + sums[r][v] : sums[r][v]);
    if (!whole)
      for (int64_t i = 0; i < columns; ++i) row[i] = edge[i];
  }
}

/// Computes the last rows, of which there are fewer than kRows.
template <int Rows>
inline void last_rows(int64_t rows, const float* a, int64_t a_stride, const float* panel,
                      int64_t depth, int64_t columns, float* c, int64_t c_stride, bool accumulate) {
  if constexpr (Rows > 0) {
    if (rows == Rows)
      return tile<Rows>(a, a_stride, panel, depth, columns, c, c_stride, accumulate);
    last_rows<Rows - 1>(rows, a, a_stride, panel, depth, columns, c, c_stride, accumulate);
  }
}

void multiply(const float* a, int64_t a_stride, int64_t rows, const float* panels, int64_t depth,
              int64_t columns, float* c, int64_t c_stride, bool accumulate) {
  for (int64_t r = 0; r < rows; r += kRows, a += kRows * a_stride, c += kRows * c_stride) {
    const float* panel = panels;
    for (int64_t n = 0; n < columns; n += kColumns, panel += depth * kColumns) {
      const int64_t width = columns - n < kColumns ? columns - n : kColumns;
      if (rows - r >= kRows)
        tile<kRows>(a, a_stride, panel, depth, width, c + n, c_stride, accumulate);
      else
        last_rows<kRows - 1>(rows - r, a, a_stride, panel, depth, width, c + n, c_stride,
                             accumulate);
    }
  }
}

void pack_row(const float* row, int64_t depth, int64_t columns, float* panels) {
  int64_t n = 0;
  for (; n + kColumns <= columns; n += kColumns, panels += depth * kColumns) {
    store(panels, load(row + n));
    store(panels + kLanes, load(row + n + kLanes));
  }
  if (n == columns) return;
  for (int64_t i = 0; i < kColumns; ++i) panels[i] = n + i < columns ? row[n + i] : 0;
}

void pack(const float* b, int64_t stride, int64_t depth, int64_t columns, float* panels) {
  for (int64_t k = 0; k < depth; ++k)
    pack_row(b + k * stride, depth, columns, panels + k * kColumns);
}

void pack_transposed(const float* b, int64_t stride, int64_t depth, int64_t columns,
                     float* panels) {
  for (int64_t n = 0; n < columns; n += kColumns, panels += depth * kColumns)
    for (int64_t i = 0; i < kColumns; ++i) {
      const float* column = b + (n + i) * stride;
      for (int64_t k = 0; k < depth; ++k)
        panels[k * kColumns + i] = n + i < columns ? column[k] : 0;
    }
}

float dot(const float* a, const float* b, int64_t count) {
  Vec first{}, second{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    first += load(a + i) * load(b + i);
    second += load(a + i + kLanes) * load(b + i + kLanes);
  }
  float all = sum(first + second);
  for (; i < count; ++i) all += a[i] * b[i];
  return all;
}

inline float bits_as_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// Widens a number of 8 or 16 bits whose exponent and fraction stand `shift` bits lower than those
/// of float32, and whose exponent is biased by `bias` less.
inline float widened(uint32_t code, uint32_t sign, int shift, float bias) {
  const float magnitude = bits_as_float((code & (sign - 1)) << shift) * bias;
  return code & sign ? -magnitude : magnitude;
}
inline float widened(uint16_t half) {
  constexpr uint32_t kExponent = 0x7c00;
  const bool finite = (half & kExponent) != kExponent;
  if (finite) return widened(half, 0x8000, 13, 0x1p112F);
  return bits_as_float(0x7f800000U | (half & 0x8000U) << 16 | (half & 0x3ffU) << 13);
}

template <class Code, class Value>
inline void widen_all(const void* from, int64_t count, float scale, float* to, const Value& value) {
  const auto* codes = static_cast<const Code*>(from);
  for (int64_t i = 0; i < count; ++i) to[i] = value(codes[i]) * scale;
}

void widen(Storage storage, const void* from, int64_t count, float scale, float* to) {
  switch (storage) {
    case Storage::f32:
      return widen_all<float>(from, count, scale, to, [](float v) { return v; });
    case Storage::bf16:
      return widen_all<uint16_t>(from, count, scale, to,
                                 [](uint32_t v) { return bits_as_float(v << 16); });
    case Storage::fp16:
      return widen_all<uint16_t>(from, count, scale, to, [](uint16_t v) { return widened(v); });
    case Storage::fp8:
      return widen_all<uint8_t>(from, count, scale, to,
                                [](uint32_t v) { return widened(v, 0x80, 20, 0x1p120F); });
    case Storage::int8:
      return widen_all<int8_t>(from, count, scale, to,
                               [](int8_t v) { return static_cast<float>(v); });
  }
}

inline Vec relu(Vec v) { return v > 0 ? v : v < 0 ? Vec{} : v; }  // a NaN stays one

void finish(float* x, int64_t count, float scale, float shift, const float* residual,
            bool relu_before, bool relu_after) {
  const auto finished = [&](Vec v, Vec more) {
    v = v * scale + shift;
    if (relu_before) v = relu(v);
    if (residual) v += more;
    return relu_after ? relu(v) : v;
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(x + i, finished(load(x + i), residual ? load(residual + i) : Vec{}));
  if (i == count) return;
  const int64_t rest = count - i;
  store_some(
      x + i, rest,
      finished(load_some(x + i, rest, 0), residual ? load_some(residual + i, rest, 0) : Vec{}));
}

void add(float* x, const float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] += y[i];
}

void gelu(float* x, int64_t count) {
  constexpr float kRoot = 0.797884561F, kCubic = 0.044715F;  // the root of 2 / pi
  each(x, count, [](Vec v) {
    const Vec inner = 2 * kRoot * (v + kCubic * v * v * v);
    const Vec tanh = 1 - 2 / (exponential(inner) + 1);
    return 0.5F * v * (1 + tanh);
  });
}

void softmax(float* x, int64_t count, float scale) {
  Vec most = spread(-__builtin_inff());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = larger(most, load(x + i));
  if (i < count) most = larger(most, load_some(x + i, count - i, -__builtin_inff()));
  float largest = most[0];
  for (int lane = 1; lane < kLanes; ++lane) largest = most[lane] > largest ? most[lane] : largest;
  Vec total{};
  const auto weight = [&](Vec v) { return exponential((v - largest) * scale); };
  for (i = 0; i + kLanes <= count; i += kLanes) {
    const Vec w = weight(load(x + i));
    store(x + i, w);
    total += w;
  }
  float all = sum(total);
  if (i < count) {
    const Vec w = weight(load_some(x + i, count - i, largest));
    store_some(x + i, count - i, w);
    for (int64_t lane = 0; lane < count - i; ++lane) all += w[lane];
  }
  each(x, count, [&](Vec v) { return v * (1 / all); });
}

/// Handles `width` <= kLanes columns, which begin at x.
inline void softmax_some_columns(float* x, int64_t rows, int64_t stride, int64_t width) {
  const auto in = [&](const float* at) {
    return width == kLanes ? load(at) : load_some(at, width, 0);
  };
  const auto out = [&](float* at, Vec v) {
    width == kLanes ? store(at, v) : store_some(at, width, v);
  };
  Vec most = in(x), total{};
  for (int64_t r = 1; r < rows; ++r) most = larger(most, in(x + r * stride));
  for (int64_t r = 0; r < rows; ++r) {
    const Vec weight = exponential(in(x + r * stride) - most);
    out(x + r * stride, weight);
    total += weight;
  }
  const Vec scale = 1 / total;
  for (int64_t r = 0; r < rows; ++r) out(x + r * stride, in(x + r * stride) * scale);
}

void softmax_columns(float* x, int64_t rows, int64_t columns) {
  for (int64_t n = 0; n < columns; n += kLanes)
    softmax_some_columns(x + n, rows, columns, columns - n < kLanes ? columns - n : kLanes);
}

void sigmoid(float* x, int64_t count) {
  each(x, count, [](Vec v) { return 1 / (1 + exponential(-v)); });
}

void exponentials(float* x, int64_t count) {
  each(x, count, [](Vec v) {
    const Vec root = exponential(v * 0.5F);  // the square of it becomes infinite where e^x does
    return v > 88 ? root * root : exponential(v);
  });
}

void layer_norm(const float* x, int64_t count, const float* weight, const float* bias,
                float epsilon, float* to) {
  Vec sums{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sums += load(x + i);
  float all = sum(sums);
  for (; i < count; ++i) all += x[i];
  const float mean = all / static_cast<float>(count);
  Vec squares{};
  for (i = 0; i + kLanes <= count; i += kLanes) {
    const Vec off = load(x + i) - mean;
    squares += off * off;
  }
  float variance = sum(squares);
  for (; i < count; ++i) variance += (x[i] - mean) * (x[i] - mean);
  const float scale = 1 / __builtin_sqrtf(variance / static_cast<float>(count) + epsilon);
  for (i = 0; i < count; ++i) to[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

}  // namespace

const Kernels& TARE_LITE_FUNCTION() {
  static constexpr Kernels kKernels{.name = TARE_LITE_NAME,
                                    .columns = kColumns,
                                    .multiply = multiply,
                                    .pack = pack,
                                    .pack_transposed = pack_transposed,
                                    .pack_row = pack_row,
                                    .dot = dot,
                                    .widen = widen,
                                    .finish = finish,
                                    .add = add,
                                    .gelu = gelu,
                                    .softmax = softmax,
                                    .softmax_columns = softmax_columns,
                                    .sigmoid = sigmoid,
                                    .exponential = exponentials,
                                    .layer_norm = layer_norm};
  return kKernels;
}

}  // namespace tare::lite
