// ComputeError: what LibTorch refused in a model, a loss or an optimizer, in one line.
#pragma once

#include <string>

#include "tare/base/error.h"

namespace tare {

/// Reports an operation that LibTorch refused, most often for the shapes or dtypes of its operands.
/// The message names the stage, the module if it is known, the operands and what to change;
/// LibTorch's own exception, with its stack, is nested (std::rethrow_if_nested).
class ComputeError : public Error {
 public:
  /// Names the part of a step that failed.
  enum class Stage { forward, loss, metric, backward, step };

  /// Describes the operation; texts are empty where they are not known.
  struct Operation {
    std::string name{};         ///< of the operator: "linear"; of a metric its own
    std::string module{};       ///< name of the submodule whose parameters it has: "body.0"
    std::string module_type{};  ///< "Linear"
    std::string operands{};     ///< "input float32 [16, 9], weight float32 [3, 8]"
    std::string after{};        ///< the last module before it, where `module` is unknown
  };

  /// Takes the call of the Learner that was running as `call` and LibTorch's message as `problem`.
  ComputeError(std::string_view call, Stage stage, Operation operation, std::string problem);

  [[nodiscard]] Stage stage() const { return stage_; }  ///< the part of the step that failed
  /// Returns what was computed when it failed.
  [[nodiscard]] const Operation& operation() const { return operation_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }  ///< LibTorch's words
  /// Whether batch norm was given a single value per channel, which has no variance.
  [[nodiscard]] bool is_of_single_sample() const;

 private:
  Stage stage_;
  Operation operation_;
  std::string problem_;
};

[[nodiscard]] const char* to_string(ComputeError::Stage stage);  ///< the enumerator's name; static

}  // namespace tare
