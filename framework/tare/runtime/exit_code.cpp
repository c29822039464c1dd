// Gives each type of error its exit code.
#include "tare/runtime/exit_code.h"

#include <cerrno>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/runtime/does_not_fit.h"

namespace tare {
namespace {

/// Returns " cuda:0" for the cards that this process has used and that answer no more; "" where
/// none can be named.
std::string lost_cards() {
  std::string names;
  for (const c10::Device device : memory::devices()) {
    try {
      const memory::DeviceBackend& backend = memory::backend(device);
      if (backend.traits().is_host || backend.usage().reserved_bytes == 0) continue;
      (void)backend.memory_info();
    } catch (const c10::Error&) {
      names += (names.empty() ? " " : ", ") + device.str();
    }
  }
  return names;
}

/// Returns the first line of an error of a card, and what can be done: the others are about
/// debugging kernels.
std::string text_of(const c10::AcceleratorError& error) {
  const std::string text = error.what_without_backtrace();
  return "the card" + lost_cards() +
         " failed and cannot be used by this process any more: " + text.substr(0, text.find('\n')) +
         "; start the program again, a run that has saved a checkpoint by `tare run --resume`, and "
         "look at `dmesg` and `nvidia-smi` if it happens again";
}

}  // namespace

int report_error(const std::exception_ptr& error, const std::string& file, int64_t line) {
  const auto show = [&](const std::string& message) {
    // The name of standard input, "-", is in many a message.
    const bool named = file.empty() || message.find(file == "-" ? "-:" : file) != message.npos;
    const std::string place = file + (line > 0 ? ':' + std::to_string(line) : "");
    log::error(named ? message : place + ": " + message);
  };
  if (const auto oom = memory::classify(error)) {
    if (!oom->detail.empty()) log::debug("LibTorch's own words: " + oom->detail);
    show(oom->message);
    return kOutOfMemory;
  }
  try {
    std::rethrow_exception(error);
  } catch (const IoError& e) {
    show(e.what());
    const int cause = e.error_number();
    const bool wrong_path = cause == ENOENT || cause == ENOTDIR || cause == EISDIR;
    return wrong_path ? kBadInput : kIo;
  } catch (const DoesNotFit& e) {
    show(e.what());
    return kOutOfMemory;
  } catch (const DivergedError& e) {
    show(e.what());
    return kFailed;
  } catch (const Error& e) {
    show(e.what());
    return kBadInput;
  } catch (const c10::AcceleratorError& e) {
    show(text_of(e));
    return kFailed;
  } catch (const c10::Error& e) {
    show(e.what_without_backtrace());
    return kFailed;
  } catch (const std::exception& e) {
    show(e.what());
    return kFailed;
  }
}

}  // namespace tare
