// Out-of-memory: the typed error, the one place that recognises it in other libraries' errors, and
// the cleaning that LibTorch leaves to the caller.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace tare {

/// An allocation was refused: over the budget, or by the system. Nothing was allocated. Deriving
/// from LibTorch's type, it is caught by whatever catches that. what() is one line and never walks
/// a stack, so it costs nothing to make.
class OutOfMemory : public c10::OutOfMemoryError {
 public:
  /// `budget_bytes` unset: no budget was in force. `advice` ends the message; empty: "use a smaller
  /// batch".
  OutOfMemory(c10::Device device, int64_t asked_bytes, int64_t allocated_bytes,
              std::optional<int64_t> budget_bytes = {}, std::string advice = {});

  [[nodiscard]] c10::Device device() const { return device_; }
  [[nodiscard]] int64_t asked_bytes() const { return asked_bytes_; }
  [[nodiscard]] int64_t allocated_bytes() const {
    return allocated_bytes_;
  }  ///< live when it was refused
  [[nodiscard]] std::optional<int64_t> budget_bytes() const { return budget_bytes_; }
  [[nodiscard]] const std::string& advice() const { return advice_; }

 private:
  c10::Device device_;
  int64_t asked_bytes_, allocated_bytes_;
  std::optional<int64_t> budget_bytes_;
  std::string advice_;
};

namespace memory {

/// Who refused.
enum class OutOfMemorySource { tare, libtorch, cuda, standard_library };
[[nodiscard]] const char* to_string(OutOfMemorySource source);

struct OutOfMemoryInfo {
  OutOfMemorySource source = OutOfMemorySource::tare;
  std::optional<c10::Device> device;   ///< unset where the error does not say
  std::optional<int64_t> asked_bytes;  ///< unset where the error does not say
  std::string message;                 ///< one printable line
  bool certain =
      true;  ///< false for cuDNN's NOT_SUPPORTED: memory is out only if a smaller size works
};

/// Whether an error is an out-of-memory: by type first (OutOfMemory, LibTorch's type, CUDA error
/// code 2, bad_alloc), then by the texts of LibTorch's host allocator, CUDA, cuBLAS and cuDNN;
/// causes nested by std::throw_with_nested are walked. Unset for everything else, sticky CUDA
/// errors among it: rethrow those untouched. `error` may be null.
[[nodiscard]] std::optional<OutOfMemoryInfo> classify(const std::exception_ptr& error);

/// Frees what a backward that threw has left: its unfinished tasks stay, with their saved tensors,
/// in the calling thread's queue until the next backward there. Call it after catching, outside the
/// handler, on the thread that called backward. Runs a backward over one number; throws OutOfMemory
/// if not even that fits.
void flush_ready_queue();

}  // namespace memory
}  // namespace tare
