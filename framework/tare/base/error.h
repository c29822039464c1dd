// The exceptions of Tare: one type per cause, so that no caller has to read a message.
//
// A message starts with the operation in brackets and ends with what to do:
//   [learner.fit] epochs must be > 0, got 0
// tare::OutOfMemory is in memory/oom.h: it derives from LibTorch's type.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Is the base of every error that Tare throws, except OutOfMemory. what() is one line without
/// control characters.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Locates a configuration value: by a file position or a command-line override.
struct Source {
  std::string file;    ///< path, or "command line"; empty for values set in code
  int64_t line = 0;    ///< from 1; 0: none
  int64_t column = 0;  ///< from 1; 0: none

  /// Returns "file:line:column", without the parts that are not known.
  [[nodiscard]] std::string str() const;
};

/// Reports a wrong configuration value: unknown key, wrong type, out of range, missing. Thrown
/// before any work. `problem` continues the field's name: "must be >= 1", "is not known". The
/// message is "[config] run.yaml:3:5: phases.2.epochs must be >= 1, got 0; allowed: ...".
class ConfigError : public Error {
 public:
  /// Makes the error of a value of a configuration. `source`: where it stands; `field`: see
  /// field().
  ConfigError(Source source, std::string field, std::string_view problem, std::string allowed = {},
              std::string got = {});
  /// Makes the error of a value given in code, where there is no file: "[where] problem".
  ConfigError(std::string_view where, std::string_view problem);
  /// Makes the error of a value given in code, from its parts: "[where] field problem, got ...".
  ConfigError(std::string_view where, std::string field, std::string_view problem,
              std::string allowed, std::string got);

  /// Returns the error with its message as it is, as one about a single value given in code.
  [[nodiscard]] ConfigError about(std::string field, std::string allowed, std::string got) const;

  /// Returns where the value stands; empty for a value given in code.
  [[nodiscard]] const Source& source() const { return source_; }
  /// Returns the dotted path, e.g. "phases.2.epochs".
  [[nodiscard]] const std::string& field() const { return field_; }
  /// Returns what is wrong, as a continuation of the field's name.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Returns what would have been right; may be empty.
  [[nodiscard]] const std::string& allowed() const { return allowed_; }
  /// Returns the value as text; may be empty.
  [[nodiscard]] const std::string& got() const { return got_; }

  /// Returns the error as seen one level up: `parent` in front of the field, and `source` if it had
  /// none.
  [[nodiscard]] ConfigError within(std::string_view parent, const Source& source) const;

 private:
  struct Parts {
    std::string where;
    Source source;
    std::string field, problem, allowed, got;
  };
  explicit ConfigError(Parts parts);
  ConfigError(const std::string& message, Parts parts);

  std::string where_;
  Source source_;
  std::string field_, problem_, allowed_, got_;
};

/// Reports a call that the object's state does not allow: `fit` on a destroyed Learner, `init`
/// after the first tensor.
class StateError : public Error {
 public:
  /// Takes what call() and state() return, and what to do as `advice`, which ends the message.
  StateError(std::string call, std::string state, std::string_view advice = {});
  /// Returns the refused call, e.g. "learner.fit".
  [[nodiscard]] const std::string& call() const { return call_; }
  /// Returns the state that refused it, e.g. "destroyed".
  [[nodiscard]] const std::string& state() const { return state_; }

 private:
  std::string call_, state_;
};

/// Reports a tensor of the wrong shape or dtype.
class ShapeError : public Error {
 public:
  /// Takes the operation as `where`; `expected` and `got` are shapes or dtypes as text.
  ShapeError(std::string_view where, std::string expected, std::string got);
  /// Returns the shape or dtype that was needed.
  [[nodiscard]] const std::string& expected() const { return expected_; }
  /// Returns the shape or dtype that was given.
  [[nodiscard]] const std::string& got() const { return got_; }

 private:
  std::string expected_, got_;
};

/// Reports operands on two devices, or a device that does not exist.
class DeviceError : public Error {
 public:
  /// Takes the operation as `where` and what is wrong with the device as `problem`.
  DeviceError(std::string_view where, std::string_view problem);
  /// Takes the operation as `where`; `first` and `second` describe the operands, each with its
  /// device.
  DeviceError(std::string_view where, std::string_view first, std::string_view second);
};

/// Reports a training that cannot continue: the loss is NaN or infinite.
class DivergedError : public Error {
 public:
  /// Counts `epoch` and `step` from 1 within their fit, as the progress line and the CSV files do;
  /// `figure` names the loss: "loss", "valid_loss". `advice` ends the message.
  DivergedError(std::string_view where, std::string_view figure, double value, int64_t epoch,
                int64_t step, std::string_view advice = kAdvice);
  /// Says what to do about a training that diverges, where nothing more is known.
  static constexpr std::string_view kAdvice =
      "lower the learning rate, or look for NaN in the data";
  /// Returns the value of the figure: NaN or infinite.
  [[nodiscard]] double value() const { return value_; }
  /// Returns the epoch, from 1, within the fit.
  [[nodiscard]] int64_t epoch() const { return epoch_; }
  /// Returns the optimizer step, from 1, within the fit: the one whose loss it was and which was
  /// not taken; for the mean of an epoch the last step before it.
  [[nodiscard]] int64_t step() const { return step_; }

 private:
  double value_;
  int64_t epoch_, step_;
};

/// Reports that the operating system refused a file operation.
class IoError : public Error {
 public:
  /// Takes errno of the refused `operation` on `path` as `error_number`.
  IoError(std::string_view operation, std::string path, int error_number);
  /// Takes the reason in words as `cause`, where there is no errno.
  IoError(std::string_view operation, std::string path, std::string_view cause);
  /// Returns the file or folder of the operation.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int error_number() const { return error_number_; }  ///< returns errno, or 0

 private:
  std::string path_;
  int error_number_ = 0;
};

/// Reports a file that breaks the rules of its format: truncated, altered, foreign, hostile.
class FormatError : public Error {
 public:
  /// Returns `part` names the tensor or field that is wrong.
  FormatError(std::string_view operation, std::string path, std::string part,
              std::string_view problem);
  [[nodiscard]] const std::string& path() const { return path_; }  ///< the file that cannot be read
  /// Returns the tensor or field that is wrong.
  [[nodiscard]] const std::string& part() const { return part_; }

 private:
  std::string path_, part_;
};

/// Escapes control characters as \n, \t or \xNN, so that text from outside cannot forge a log line,
/// and cuts text longer than `limit` bytes, ending it with "...".
[[nodiscard]] std::string printable(std::string_view text, size_t limit = 200);

/// Returns the candidate nearest to `name` by edit distance without regard to case (at most a third
/// of its length, or 2), or "".
[[nodiscard]] std::string nearest(std::string_view name,
                                  const std::vector<std::string>& candidates);

/// Returns the error for a name that is not among the known ones: "[loss] no loss is named 'mze'
/// (did you mean "mse"?); allowed: l1, mse". `field`: see ConfigError::field(); empty: `kind`.
[[nodiscard]] ConfigError unknown_name(std::string_view where, const std::string& kind,
                                       const std::string& name,
                                       const std::vector<std::string>& known,
                                       const std::string& field = {});

/// Returns the names as "a, b, c", each as printable() shows it. More than `most` names end with
/// "and 3 more".
[[nodiscard]] std::string listed(const std::vector<std::string>& names, size_t most = SIZE_MAX);

/// Returns ` (did you mean "epochs"?)`, or "" if no candidate is near.
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       const std::vector<std::string>& candidates);

}  // namespace tare
