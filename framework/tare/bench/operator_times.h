// OperatorTimes: what each operator of a step takes, and what it has to compute and to move.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tare/callback/flops.h"

namespace tare::bench {

/// Lists the classes of operators.
enum class OperatorClass {
  product,      ///< of matrices, linear layers included
  convolution,  ///< and its gradients
  attention,    ///< fused
  recurrent,    ///< layers
  norm,         ///< of a batch, a layer or a group
  pool,         ///< and resizing of pictures
  pointwise,    ///< activations, sums, dropout
  reduction,    ///< sums, softmax and losses
  copy,         ///< copies, gathers, embeddings
  step,         ///< of the optimizer, clipping included
  other         ///< any other
};
/// Returns "matrix products", "convolutions" ...; static.
[[nodiscard]] const char* to_string(OperatorClass kind);

/// Holds what the calls of one operator with operands of one kind have taken.
struct OperatorFigures {
  std::string name{};      ///< such as "aten::addmm"
  std::string operands{};  ///< their sizes, and their types where they are not float32
  OperatorClass kind = OperatorClass::other;  ///< what it does
  int64_t calls = 0;                          ///< how often it was called
  double seconds = 0;  ///< of all calls, less those of operators with figures of their own in it
  Flops flops{};       ///< of all calls, see FlopCount
  /// Bytes that one call reads and writes at least, its operands and its results, less those that
  /// operators with figures of their own in it do.
  double bytes = 0;
};

/// Watches the operators that the calling thread and its backward passes call between resume() and
/// pause(), while it lives. An operator costs about two microseconds more meanwhile, which count as
/// time of the operator that calls it, or of none. What a matrix product, a convolution, fused
/// attention or a recurrent layer calls counts as its own.
class OperatorTimes {
 public:
  /// Watches; on a card each operator is waited for, so that its time is what the card takes.
  /// Throws StateError while another object of the process watches.
  explicit OperatorTimes(bool waits_for_device);
  ~OperatorTimes();
  OperatorTimes(const OperatorTimes&) = delete;
  OperatorTimes& operator=(const OperatorTimes&) = delete;

  void resume();  ///< begins to count
  void pause();   ///< counts no more
  /// Returns the figures since the beginning, those with most seconds first.
  [[nodiscard]] std::vector<OperatorFigures> figures() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tare::bench
