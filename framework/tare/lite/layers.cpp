// Runs layers as products of matrices whose right side is packed part by part.
#include "tare/lite/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tare::lite {
namespace {

constexpr int64_t kDepth = 256;    // of panels: a panel of 16 columns takes half of a level 1 cache
constexpr int64_t kColumns = 256;  // of a block: its panels take half of a level 2 cache
constexpr int64_t kRows = 24;      // that are widened together, whole tiles of all kernels
constexpr int64_t kPanelPart = kDepth * kColumns;
constexpr int64_t kSmall = 1 << 17;  // products that are not worth another thread
constexpr int64_t kFewRows = 4;      // for which dot products are faster than panels

int64_t parts_of(int64_t all, int64_t part) { return (all + part - 1) / part; }

size_t size_of(Storage storage) {
  switch (storage) {
    case Storage::f32:
      return 4;
    case Storage::bf16:
    case Storage::fp16:
      return 2;
    case Storage::fp8:
    case Storage::int8:
      return 1;
  }
  return 0;
}

/// Widens numbers [column, column + count) of a row.
void widen(const Kernels& kernels, const Matrix& matrix, int64_t row, int64_t column, int64_t count,
           float* to) {
  const auto place = static_cast<size_t>(row * matrix.stride + column) * size_of(matrix.storage);
  kernels.widen(matrix.storage, matrix.data + place, count, matrix.scales ? matrix.scales[row] : 1,
                to);
}

/// Computes with rows that are stored as float32 where they lie, with others a few at a time.
void multiply_rows(const Engine& engine, int64_t worker, const Matrix& left, int64_t row,
                   int64_t rows, int64_t depth, int64_t depths, const float* panels,
                   int64_t columns, float* c, int64_t c_stride) {
  const bool more = depth > 0;
  if (left.is_plain())
    return engine.kernels.multiply(left.row(row) + depth, left.stride, rows, panels, depths,
                                   columns, c, c_stride, more);
  float* wide = engine.widened(worker);
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t count = std::min(kRows, rows - begin);
    for (int64_t i = 0; i < count; ++i)
      widen(engine.kernels, left, row + begin + i, depth, depths, wide + i * kDepth);
    engine.kernels.multiply(wide, kDepth, count, panels, depths, columns, c + begin * c_stride,
                            c_stride, more);
  }
}

}  // namespace

Matrix matrix_on(const float* data, int64_t rows, int64_t columns, int64_t stride) {
  return {.data = reinterpret_cast<const std::byte*>(data),
          .rows = rows,
          .columns = columns,
          .stride = stride};
}

void widen_row(const Kernels& kernels, const Matrix& matrix, int64_t row, float* to) {
  widen(kernels, matrix, row, 0, matrix.columns, to);
}

Engine::Engine(const Kernels& given, int64_t threads) : kernels(given), workers(threads) {
  for (int64_t i = 0; i < workers.count(); ++i) scratch_.emplace_back(kPanelPart + kRows * kDepth);
  alone_.resize(scratch_.size());
}

float* Engine::widened(int64_t worker) const { return panels(worker) + kPanelPart; }

Engine& Engine::alone(int64_t worker) {
  std::unique_ptr<Engine>& engine = alone_[at(worker)];
  if (!engine) engine = std::make_unique<Engine>(kernels, 1);
  return *engine;
}

void multiply(Engine& engine, const Matrix& left, int64_t columns, const Pack& pack,
              const Finish& finish, float* c) {
  const int64_t threads = left.rows * left.columns * columns < kSmall ? 1 : engine.workers.count();
  // Blocks of columns as wide as fit, of equal width, and as many as threads where there are some.
  const int64_t fewest = parts_of(columns, kColumns);
  const int64_t blocks = fewest < threads ? fewest : parts_of(fewest, threads) * threads;
  const int64_t panel = engine.kernels.columns;
  const int64_t block = parts_of(parts_of(columns, blocks), panel) * panel;
  const int64_t row_parts = blocks < threads ? threads : 1;
  const int64_t part = parts_of(parts_of(left.rows, row_parts), kRows) * kRows;
  const auto work = [&](int64_t task, int64_t worker) {
    const int64_t row = task % row_parts * part, rows = std::min(part, left.rows - row);
    const int64_t column = task / row_parts * block, width = std::min(block, columns - column);
    if (rows <= 0 || width <= 0) return;
    float* to = c + row * columns + column;
    for (int64_t depth = 0; depth < left.columns; depth += kDepth) {
      const int64_t depths = std::min(kDepth, left.columns - depth);
      pack(depth, depths, {column, width, worker, engine.widened(worker)}, engine.panels(worker));
      multiply_rows(engine, worker, left, row, rows, depth, depths, engine.panels(worker), width,
                    to, columns);
    }
    for (int64_t i = 0; i < rows; ++i) finish(row + i, column, width, to + i * columns);
  };
  engine.workers.run(row_parts * blocks, work);
}

namespace {

constexpr int64_t kChunk = 8;  // numbers that are copied together, also behind the end of a row

/// Holds the rows of a plane that a window needs for some places, with the padding around them, so
/// that the pixels under each of its places follow one another.
class Strip {
 public:
  /// Returns the numbers of memory that the strip of any `columns` places needs.
  static int64_t size_for(const Planes& in, const Window& window, int64_t columns) {
    const int64_t across = window.places(in.width);
    const int64_t rows = ((columns - 1) / across + 1) * window.stride + window.size;
    return rows * (in.width + 2 * window.padding) + kChunk;
  }

  /// Describes the strip for places [first, first + count).
  Strip(const Planes& in, const Window& window, int64_t first, int64_t count, float* memory)
      : in_(in),
        window_(window),
        across_(window.places(in.width)),
        stride_(in.width + 2 * window.padding),
        first_(first),
        count_(count),
        memory_(memory) {}

  /// Copies the rows of a plane.
  void take(const float* plane) {
    const int64_t top = first_ / across_ * window_.stride - window_.padding;
    const int64_t last = (first_ + count_ - 1) / across_ * window_.stride - window_.padding +
                         window_.size;  // behind the last row
    float* to = memory_;
    for (int64_t y = top; y < last; ++y) {
      if (y < 0 || y >= in_.height) {
        to = std::fill_n(to, stride_, 0.0F);
        continue;
      }
      to = std::fill_n(to, window_.padding, 0.0F);
      to = std::copy_n(plane + y * in_.width, in_.width, to);
      to = std::fill_n(to, window_.padding, 0.0F);
    }
  }

  /// Writes the pixels under place [ky, kx] of the window, and up to kChunk numbers behind them.
  void gather(int64_t ky, int64_t kx, float* to) const {
    int64_t left = count_;
    for (int64_t y = 0, x = first_ % across_; left > 0; ++y, x = 0) {
      const int64_t length = std::min(across_ - x, left);
      const float* from = memory_ + (y * window_.stride + ky) * stride_ + x * window_.stride + kx;
      if (window_.stride == 1)
        for (int64_t i = 0; i < length; i += kChunk)
          std::memcpy(to + i, from + i, kChunk * sizeof(float));
      else
        for (int64_t i = 0; i < length; ++i) to[i] = from[i * window_.stride];
      to += length;
      left -= length;
    }
  }

 private:
  const Planes& in_;
  const Window& window_;
  int64_t across_, stride_;  // places and numbers of a row
  int64_t first_, count_;
  float* memory_;
};

}  // namespace

Planes convolve(Engine& engine, const Planes& in, const Matrix& weight, const Window& window,
                const After& after) {
  Planes out{weight.rows, window.places(in.height), window.places(in.width), {}};
  const int64_t pixels = out.pixels(), taps = window.size * window.size;
  out.values = Floats(out.channels * pixels);
  const bool one_to_one = window.size == 1 && window.stride == 1 && window.padding == 0;
  const int64_t strip_size = one_to_one ? 0 : Strip::size_for(in, window, kColumns);
  const Floats strips(strip_size * engine.workers.count());
  const auto pack = [&](int64_t depth, int64_t depths, const Part& part, float* panels) {
    Strip strip(in, window, part.column, part.columns, strips.get() + part.worker * strip_size);
    for (int64_t k = depth; k < depth + depths; ++k, panels += engine.kernels.columns) {
      const float* plane = in.values.get() + k / taps * in.pixels();
      if (one_to_one) {
        engine.kernels.pack_row(plane + part.column, depths, part.columns, panels);
        continue;
      }
      const int64_t tap = k % taps;
      if (tap == 0 || k == depth) strip.take(plane);
      strip.gather(tap / window.size, tap % window.size, part.spare);
      engine.kernels.pack_row(part.spare, depths, part.columns, panels);
    }
  };
  const auto finish = [&](int64_t row, int64_t column, int64_t columns, float* values) {
    const auto channel = static_cast<size_t>(row);
    const float* residual =
        after.residual ? after.residual->values.get() + row * pixels + column : nullptr;
    engine.kernels.finish(values, columns, after.norm ? after.norm->scale[channel] : 1,
                          after.norm ? after.norm->shift[channel] : 0, residual, after.relu_before,
                          after.relu_after);
  };
  multiply(engine, weight, pixels, pack, finish, out.values.get());
  return out;
}

Planes max_pool(Engine& engine, const Planes& in, const Window& window) {
  Planes out{in.channels, window.places(in.height), window.places(in.width), {}};
  out.values = Floats(out.channels * out.pixels());
  engine.workers.run(in.channels, [&](int64_t channel, int64_t) {
    const float* plane = in.values.get() + channel * in.pixels();
    float* to = out.values.get() + channel * out.pixels();
    for (int64_t y = 0; y < out.height; ++y) {
      const int64_t top = y * window.stride - window.padding;
      const int64_t first = std::max<int64_t>(top, 0),
                    last = std::min(top + window.size, in.height);
      for (int64_t x = 0; x < out.width; ++x) {
        const int64_t left = x * window.stride - window.padding;
        const int64_t begin = std::max<int64_t>(left, 0),
                      end = std::min(left + window.size, in.width);
        float most = -std::numeric_limits<float>::infinity();
        for (int64_t row = first; row < last; ++row)
          for (int64_t column = begin; column < end; ++column) {
            const float value = plane[row * in.width + column];
            if (value > most || std::isnan(value)) most = value;
          }
        *to++ = most;
      }
    }
  });
  return out;
}

void multiply_transposed(Engine& engine, const Matrix& left, const float* x, int64_t rows,
                         float* c) {
  const int64_t stride = left.columns;
  const auto pack = [&](int64_t depth, int64_t depths, const Part& part, float* panels) {
    engine.kernels.pack_transposed(x + part.column * stride + depth, stride, depths, part.columns,
                                   panels);
  };
  multiply(
      engine, left, rows, pack, [](int64_t, int64_t, int64_t, float*) {}, c);
}

namespace {

/// Computes y by dot products, for few rows.
void linear_by_dots(Engine& engine, const float* x, int64_t rows, const Matrix& weight,
                    const float* bias, bool relu, float* y) {
  constexpr int64_t kPart = 64;  // outputs of a task
  const Kernels& kernels = engine.kernels;
  engine.workers.run(parts_of(weight.rows, kPart), [&](int64_t task, int64_t worker) {
    float* wide = engine.panels(worker);
    const int64_t end = std::min((task + 1) * kPart, weight.rows);
    for (int64_t out = task * kPart; out < end; ++out) {
      for (int64_t row = 0; row < rows; ++row) y[row * weight.rows + out] = bias[out];
      for (int64_t i = 0; i < weight.columns; i += kPanelPart) {
        const int64_t count = std::min(kPanelPart, weight.columns - i);
        if (!weight.is_plain()) widen(kernels, weight, out, i, count, wide);
        const float* numbers = weight.is_plain() ? weight.row(out) + i : wide;
        for (int64_t row = 0; row < rows; ++row)
          y[row * weight.rows + out] += kernels.dot(numbers, x + row * weight.columns + i, count);
      }
      for (int64_t row = 0; relu && row < rows; ++row)
        y[row * weight.rows + out] = std::max(y[row * weight.rows + out], 0.0F);
    }
  });
}

}  // namespace

void linear(Engine& engine, const float* x, int64_t rows, const Matrix& weight, const float* bias,
            bool relu, float* y) {
  if (rows < kFewRows) return linear_by_dots(engine, x, rows, weight, bias, relu, y);
  const Floats turned(weight.rows * rows);
  multiply_transposed(engine, weight, x, rows, turned.get());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t out = 0; out < weight.rows; ++out) {
      const float value = turned.get()[out * rows + row] + bias[out];
      *y++ = relu ? std::max(value, 0.0F) : value;
    }
}

void linear_of_columns(Engine& engine, const float* x, int64_t rows, const Matrix& weight,
                       const float* bias, float* y) {
  const bool direct = weight.is_plain();
  const auto pack = [&](int64_t depth, int64_t depths, const Part& part, float* panels) {
    for (int64_t k = depth; k < depth + depths; ++k, panels += engine.kernels.columns) {
      if (!direct) widen(engine.kernels, weight, k, part.column, part.columns, part.spare);
      engine.kernels.pack_row(direct ? weight.row(k) + part.column : part.spare, depths,
                              part.columns, panels);
    }
  };
  const auto finish = [&](int64_t, int64_t column, int64_t columns, float* values) {
    engine.kernels.add(values, bias + column, columns);
  };
  multiply(engine, matrix_on(x, rows, weight.rows, weight.rows), weight.columns, pack, finish, y);
}

void attend(Engine& engine, const float* qkv, int64_t tokens, int64_t width, int64_t heads,
            float* to) {
  const Kernels& kernels = engine.kernels;
  const int64_t size = width / heads, stride = 3 * width;
  const int64_t padded = parts_of(tokens, kernels.columns) * kernels.columns,
                padded_size = parts_of(size, kernels.columns) * kernels.columns;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  // Each thread has memory for the packed keys and values of a head, and for scores of some
  // queries.
  const int64_t each = padded * size + tokens * padded_size + kRows * tokens;
  const Floats memory(engine.workers.count() * each);
  engine.workers.run(heads, [&](int64_t head, int64_t worker) {
    float* keys = memory.get() + worker * each;
    float* values = keys + padded * size;
    float* scores = values + tokens * padded_size;
    const float* query = qkv + head * size;
    kernels.pack_transposed(query + width, stride, size, tokens, keys);
    kernels.pack(query + 2 * width, stride, tokens, size, values);
    for (int64_t first = 0; first < tokens; first += kRows) {
      const int64_t rows = std::min(kRows, tokens - first), seen = first + rows;
      kernels.multiply(query + first * stride, stride, rows, keys, size, seen, scores, tokens,
                       false);
      for (int64_t i = 0; i < rows; ++i) {  // a token sees itself and those before it
        float* row = scores + i * tokens;
        kernels.softmax(row, first + i + 1, scale);
        std::fill(row + first + i + 1, row + seen, 0.0F);
      }
      // Panels of the values are as long as all tokens; the first rows of each are used.
      for (int64_t column = 0; column < size; column += kernels.columns)
        kernels.multiply(scores, tokens, rows, values + column * tokens, seen,
                         std::min(kernels.columns, size - column),
                         to + first * width + head * size + column, width, false);
    }
  });
}

}  // namespace tare::lite
