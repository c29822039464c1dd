// Out-of-memory: the typed error, how to recognise it in errors of other libraries, and how to free
// what a failed backward leaves behind.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace tare {

/// Reports an allocation that budget or system refused; nothing was allocated. Handlers for
/// LibTorch's c10::OutOfMemoryError catch it too. what() is one line, without a stack trace.
class OutOfMemory : public c10::OutOfMemoryError {
 public:
  /// Makes the error of a refused request; `budget_bytes` unset: there was no budget. `advice` ends
  /// the message; empty: a general one.
  OutOfMemory(c10::Device device, int64_t asked_bytes, int64_t allocated_bytes,
              std::optional<int64_t> budget_bytes = {}, std::string advice = {});
  /// Returns the device on which the request was refused.
  [[nodiscard]] c10::Device device() const { return device_; }
  [[nodiscard]] int64_t asked_bytes() const { return asked_bytes_; }  ///< of the refused request
  /// Returns the bytes allocated on the device when the request was refused.
  [[nodiscard]] int64_t allocated_bytes() const { return allocated_bytes_; }
  /// Returns the budget; unset: no budget was set.
  [[nodiscard]] std::optional<int64_t> budget_bytes() const { return budget_bytes_; }
  /// Returns what to do, as the message ends; may be empty.
  [[nodiscard]] const std::string& advice() const { return advice_; }
  /// Returns the error of the request with other advice.
  [[nodiscard]] OutOfMemory with_advice(std::string advice) const {
    return {device_, asked_bytes_, allocated_bytes_, budget_bytes_, std::move(advice)};
  }

 private:
  c10::Device device_;
  int64_t asked_bytes_, allocated_bytes_;
  std::optional<int64_t> budget_bytes_;
  std::string advice_;
};

namespace memory {

/// Names the library that refused an allocation.
enum class OutOfMemorySource { tare, libtorch, cuda, standard_library };

/// Holds the findings of classify() about an error.
struct OutOfMemoryInfo {
  OutOfMemorySource source = OutOfMemorySource::tare;  ///< who refused
  std::optional<c10::Device> device{};                 ///< unset: the error does not say
  std::optional<int64_t> asked_bytes{};                ///< unset: the error does not say
  std::string message{};                               ///< one printable line
  std::string detail{};  ///< the line of the library, where `message` has words of Tare; or empty
  /// Whether it surely is out-of-memory; false for cuDNN's NOT_SUPPORTED, which was out-of-memory
  /// only if a smaller size works.
  bool certain = true;
};

/// Whether an error is out-of-memory: first by type (OutOfMemory, c10::OutOfMemoryError, CUDA error
/// code 2, bad_alloc), then by the messages of LibTorch's host allocator, CUDA, cuBLAS and cuDNN;
/// errors nested by std::throw_with_nested are searched too. Unset for everything else, such as
/// sticky CUDA errors: rethrow such errors. `error` may be null.
[[nodiscard]] std::optional<OutOfMemoryInfo> classify(const std::exception_ptr& error);

/// Frees what a backward that threw has left behind: LibTorch keeps its unfinished tasks and their
/// saved tensors in the calling thread's queue until the next backward there. Call it on that
/// thread, after the catch block has ended. Runs a backward of a tensor without numbers, which
/// allocates no bytes on any device.
void flush_ready_queue();

}  // namespace memory
}  // namespace tare
