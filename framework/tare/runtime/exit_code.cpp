// Gives each type of error its exit code.
#include "tare/runtime/exit_code.h"

#include <filesystem>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/runtime/does_not_fit.h"
#include "tare/runtime/wrong_path.h"

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

ErrorText describe_error(const std::exception_ptr& error) {
  if (const auto oom = memory::classify(error)) {
    if (!oom->detail.empty()) log::debug("LibTorch's own words: " + oom->detail);
    return {oom->message, kOutOfMemory};
  }
  try {
    std::rethrow_exception(error);
  } catch (const IoError& e) {
    return {e.what(), is_wrong_path(e) ? kBadInput : kIo};
  } catch (const DoesNotFit& e) {
    return {e.what(), kOutOfMemory};
  } catch (const DivergedError& e) {
    return {e.what(), kFailed};
  } catch (const Error& e) {
    return {e.what(), kBadInput};
  } catch (const c10::AcceleratorError& e) {
    return {text_of(e), kFailed};
  } catch (const c10::Error& e) {
    return {e.what_without_backtrace(), kFailed};
  } catch (const std::filesystem::filesystem_error& e) {
    return {"[io] " + printable(e.path1().string(), 400) + ": " + e.code().message(), kIo};
  } catch (const std::exception& e) {
    return {e.what(), kFailed};
  }
}

int report_error(const std::exception_ptr& error, const std::string& file, int64_t line) {
  const ErrorText described = describe_error(error);
  // The name of standard input, "-", is in many a message.
  const bool named =
      file.empty() || described.text.find(file == "-" ? "-:" : file) != std::string::npos;
  const std::string place = file + (line > 0 ? ':' + std::to_string(line) : "");
  log::error(named ? described.text : place + ": " + described.text);
  return described.code;
}

}  // namespace tare
