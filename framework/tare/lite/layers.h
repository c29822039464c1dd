// The layers of networks, on float32 in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tare/lite/kernels.h"
#include "tare/lite/workers.h"

namespace tare::lite {

/// Is memory for numbers, whose values are not set.
class Floats {
 public:
  Floats() = default;
  /// Allocates `count` >= 0 numbers. Throws std::bad_alloc.
  explicit Floats(int64_t count)
      : data_(std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count))) {}
  [[nodiscard]] float* get() const { return data_.get(); }  ///< returns the first number

 private:
  std::unique_ptr<float[]> data_;
};

/// Is a view of a matrix, or of several sizes with all but the first taken together, as it is
/// stored. A value is that of its code times the scale of its row.
struct Matrix {
  const std::byte* data = nullptr;  ///< row after row
  Storage storage = Storage::f32;   ///< of each number
  const float* scales = nullptr;    ///< [rows]; null: all are 1
  int64_t rows = 0;                 ///< of numbers
  int64_t columns = 0;              ///< numbers in a row
  int64_t stride = 0;               ///< numbers from row to row
  /// Whether the numbers are computed with where they lie, because they are float32 unscaled.
  [[nodiscard]] bool is_plain() const { return storage == Storage::f32 && !scales; }
  /// Returns a row of numbers that are stored as float32.
  [[nodiscard]] const float* row(int64_t at) const {
    return reinterpret_cast<const float*>(data) + at * stride;
  }
};

/// Writes a row as float32.
void widen_row(const Kernels& kernels, const Matrix& matrix, int64_t row, float* to);
/// Returns a view of float32 numbers.
[[nodiscard]] Matrix matrix_on(const float* data, int64_t rows, int64_t columns, int64_t stride);

/// Holds what layers compute with: kernels, threads, and memory for each thread. Not thread-safe.
class Engine {
 public:
  /// Starts `threads` >= 1 threads.
  Engine(const Kernels& kernels, int64_t threads);

  const Kernels& kernels;  ///< of the processor
  Workers workers;         ///< share the work of a layer

  /// Returns a thread's memory for packed panels.
  [[nodiscard]] float* panels(int64_t worker) const { return scratch_[at(worker)].get(); }
  /// Returns a thread's memory for rows that are widened.
  [[nodiscard]] float* widened(int64_t worker) const;
  /// Returns an engine of one thread for tasks that compute whole layers, one for each thread.
  [[nodiscard]] Engine& alone(int64_t worker);

 private:
  static size_t at(int64_t worker) { return static_cast<size_t>(worker); }
  std::vector<Floats> scratch_;
  std::vector<std::unique_ptr<Engine>> alone_;  // made when they are asked for
};

/// Says for which columns of the right matrix panels are made.
struct Part {
  int64_t column = 0;   ///< the first
  int64_t columns = 0;  ///< how many, at most 256
  int64_t worker = 0;   ///< the thread that makes them
  float* spare;         ///< its memory for a row of columns and 8 more numbers
};
/// Writes panels of the right matrix: rows [depth, depth + depths) of a part.
using Pack = std::function<void(int64_t depth, int64_t depths, const Part& part, float* panels)>;
/// Completes numbers [column, column + columns) of a row of the product, which begin at `values`.
using Finish = std::function<void(int64_t row, int64_t column, int64_t columns, float* values)>;

/// Computes c = left * right, [left.rows, columns] with rows of `columns` numbers; `pack` gives the
/// right matrix, `finish` completes each part of a row.
void multiply(Engine& engine, const Matrix& left, int64_t columns, const Pack& pack,
              const Finish& finish, float* c);

/// Says how a convolution's window moves.
struct Window {
  int64_t size = 1;     ///< pixels a side
  int64_t stride = 1;   ///< pixels from place to place
  int64_t padding = 0;  ///< zeros around the picture
  /// Returns the places of the window on a side.
  [[nodiscard]] int64_t places(int64_t side) const {
    return (side + 2 * padding - size) / stride + 1;
  }
};

/// Describes planes of a picture, or what a network has made of one.
struct Planes {
  int64_t channels = 0;                                            ///< planes
  int64_t height = 0;                                              ///< pixels
  int64_t width = 0;                                               ///< pixels
  Floats values{};                                                 ///< [channels, height, width]
  [[nodiscard]] int64_t pixels() const { return height * width; }  ///< of a plane
};

/// Holds batch norm as it acts when a model is evaluated, in one step a channel: x * scale + shift.
struct ChannelScale {
  std::vector<float> scale{};  ///< [channels]
  std::vector<float> shift{};  ///< [channels]
};

/// Sets what follows a convolution.
struct After {
  const ChannelScale* norm = nullptr;  ///< null: nothing
  const Planes* residual = nullptr;    ///< is added; null: nothing is
  bool relu_before = false;            ///< before the residual is added
  bool relu_after = false;             ///< at the end
};

/// Convolves planes with `weight`, [out channels, channels * size * size].
[[nodiscard]] Planes convolve(Engine& engine, const Planes& in, const Matrix& weight,
                              const Window& window, const After& after);
/// Takes the largest number under the window at each place; padding is smaller than all.
[[nodiscard]] Planes max_pool(Engine& engine, const Planes& in, const Window& window);

/// Computes y = x weight^T + bias for rows x, [rows, in], and weight [out, in], with ReLU on
/// request. `y`: [rows, out].
void linear(Engine& engine, const float* x, int64_t rows, const Matrix& weight, const float* bias,
            bool relu, float* y);
/// Computes y = x weight + bias for weight [in, out], as GPT-2 stores it.
void linear_of_columns(Engine& engine, const float* x, int64_t rows, const Matrix& weight,
                       const float* bias, float* y);
/// Computes c = left x^T for rows x, [rows, depth]. `c`: [left.rows, rows].
void multiply_transposed(Engine& engine, const Matrix& left, const float* x, int64_t rows,
                         float* c);

/// Computes causal attention (Vaswani et al. 2017). `qkv`: [tokens, 3 * width], of each token the
/// query, key and value of all heads; `to`: [tokens, width].
void attend(Engine& engine, const float* qkv, int64_t tokens, int64_t width, int64_t heads,
            float* to);

}  // namespace tare::lite
