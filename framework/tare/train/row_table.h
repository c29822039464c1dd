// Rows of the epochs table as one tensor: a checkpoint's history may grow without limit. The
// tensors made here lie beside the allocator of tensors and count in no figure of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Holds epoch rows as tensors, without the names of the metrics. A value of a metric that is NaN
/// or infinite stays as it is.
struct RowTable {
  /// Lists each distinct set of metric names once.
  std::vector<std::vector<std::string>> columns{};
  /// float64 [rows, 6 + metrics] on the host: epoch, train_loss, valid_loss, seconds, samples, the
  /// index into `columns`, and the metrics' values; a row with fewer of them ends with zeros.
  /// Undefined without rows.
  at::Tensor values{};
};

/// Returns zeros on the host in memory that the tensors' allocator does not count, so that a save
/// takes the same planned memory after any number of epochs.
[[nodiscard]] at::Tensor unaccounted(at::IntArrayRef sizes, c10::ScalarType type);

/// Returns the rows as tensors whose memory is not counted, so that a save takes no more of a
/// budget than its plan predicts.
[[nodiscard]] RowTable table_of(const std::vector<EpochRow>& rows);
/// Returns the inverse of table_of(). Throws ConfigError for a table that it did not make.
[[nodiscard]] std::vector<EpochRow> rows_of(const RowTable& table);

/// Returns the bytes of a text as uint8 [bytes] on the host; text_of() is the inverse. text_of()
/// throws ConfigError for any other tensor.
[[nodiscard]] at::Tensor tensor_of(const std::string& text);
/// Returns the text of a tensor of tensor_of(); see tensor_of().
[[nodiscard]] std::string text_of(const at::Tensor& bytes);

}  // namespace tare
