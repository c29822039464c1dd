// Writes the error that ends a run.
#include "tare/recipe/failure_log.h"

#include <chrono>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/runtime/exit_code.h"

namespace tare {
namespace {

constexpr size_t kMostBytes = 2000;  // of a message; foreign ones may hold a whole model

}  // namespace

Action FailureLog::on_exception(FitContext& context) {
  failure_.epoch = context.epoch + 1;
  failure_.steps = context.step;
  return Action::proceed;
}

void FailureLog::write(const std::filesystem::path& folder, const std::exception_ptr& error) {
  try {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    failure_.reason = printable(describe_error(error).text, kMostBytes);
    failure_.time_s = now.count();
    io::write_atomically(folder / report::kFailureFile, to_json(failure_) + '\n');
  } catch (const std::exception& second) {
    log::error("why the run failed is not in its folder: " + std::string(second.what()));
  }
}

}  // namespace tare
