#include "tare/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>

#include "tare/base/error.h"
#include "tare/base/signals.h"

namespace tare::cli {
namespace {

bool output_is_needed = true;

}  // namespace

void continue_without_output() {
  output_is_needed = false;
  ignore_closed_output_signal();
}

void check_output(std::string_view command) {
  if (!output_is_needed) return;
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;  // what cout does not try again after an error
  if (flushed && std::cout.good() && std::ferror(stdout) == 0) return;
  const std::string operation = "tare " + std::string(command);
  if (errno != 0) throw IoError(operation, "standard output", errno);
  throw IoError(operation, "standard output", "not everything could be written");
}

}  // namespace tare::cli
