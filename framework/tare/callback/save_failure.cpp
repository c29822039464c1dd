// Words errors of a save.
#include "tare/callback/save_failure.h"

#include <c10/util/Exception.h>

#include "tare/base/error.h"

namespace tare {

std::string failure_text(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& of_torch) {  // its what() has a stack
    return printable(of_torch.what_without_backtrace());
  } catch (const std::exception& other) {
    return printable(other.what());
  }
}

}  // namespace tare
