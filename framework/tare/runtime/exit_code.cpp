// Gives each type of error its exit code.
#include "tare/runtime/exit_code.h"

#include <cerrno>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/oom.h"
#include "tare/runtime/does_not_fit.h"

namespace tare {

int report_error(const std::exception_ptr& error) {
  if (const auto oom = memory::classify(error)) {
    log::error(oom->message);
    return kOutOfMemory;
  }
  try {
    std::rethrow_exception(error);
  } catch (const IoError& e) {
    log::error(e.what());
    const int cause = e.error_number();
    const bool wrong_path = cause == ENOENT || cause == ENOTDIR || cause == EISDIR;
    return wrong_path ? kBadInput : kIo;
  } catch (const DoesNotFit& e) {
    log::error(e.what());
    return kOutOfMemory;
  } catch (const DivergedError& e) {
    log::error(e.what());
    return kFailed;
  } catch (const Error& e) {
    log::error(e.what());
    return kBadInput;
  } catch (const c10::Error& e) {
    log::error(e.what_without_backtrace());
    return kFailed;
  } catch (const std::exception& e) {
    log::error(e.what());
    return kFailed;
  }
}

}  // namespace tare
