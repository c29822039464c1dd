// `tare inspect`.
#include <cerrno>
#include <climits>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include "tare/base/error.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/cli/handlers.h"
#include "tare/inference/bundle_folder.h"
#include "tare/inference/inspect.h"
#include "tare/interchange/export_file.h"
#include "tare/interchange/read_file.h"

namespace tare::cli {

int inspect_command(const Arguments& arguments) {
  std::filesystem::path path = arguments.positional().front();
  const bool is_other = !interchange::format_of(path).empty();  // a file for other programs
  for (const interchange::FileFormat& format : interchange::file_formats()) {
    if (is_other || path.extension() != format.extension || format.name == "safetensors") continue;
    if (!std::filesystem::exists(path)) throw IoError("inspect", path.string(), ENOENT);
    throw FormatError("inspect", path.string(), "its first bytes",
                      "are not those of a file in the format " + format.name +
                          "; the file is empty, damaged or another one");
  }
  if (!is_other && !checkpoint::exists(path)) path = bundle_at(path);
  const bool json = arguments.has("json"), brief = arguments.has("verify");
  if (json && brief)
    throw ConfigError("tare inspect",
                      "--json and --verify contradict each other; give one of them");
  const size_t width = brief ? kAnyWidth : width_for(std::cout);
  Description found;
  if (!is_other) {
    found = json ? inspect_json(path) : inspect(path, width);
  } else {
    const FileParts parts = interchange::read_parts(path);
    found = json ? describe_json(path, parts) : describe(path, parts, width);
  }
  std::istringstream lines(found.text);
  const int most = !brief ? INT_MAX : found.is_damaged ? 2 : 1;  // the title, and the problem
  std::string line;
  for (int i = 0; i < most && std::getline(lines, line); ++i) std::cout << line << '\n';
  return found.is_damaged ? kBadInput : kSuccess;
}

}  // namespace tare::cli
