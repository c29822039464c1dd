// Refuses to replace files of another kind, and checks that a command's output was written.
#include "tare/cli/output.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/signals.h"

namespace tare::cli {
namespace {

bool output_is_needed = true;

namespace fs = std::filesystem;

struct KindOfFile {
  const char* name;
  size_t offset;      // of the first character that differs
  const char* start;  // one of these characters
};

// A bundle is a safetensors file: eight bytes of length, then JSON.
KindOfFile traits_of(FileKind kind) {
  switch (kind) {
    case FileKind::json:
      return {"JSON file", 0, "{["};
    case FileKind::html:
      return {"HTML page", 0, "<"};
    case FileKind::bundle:
      return {"bundle", 8, "{"};
  }
  return {"", 0, ""};
}

bool is_of(const fs::path& file, const KindOfFile& kind) {
  std::string start(64, '\0');
  io::File opened(file, io::Mode::read);
  start.resize(opened.read(start.data(), start.size()));
  size_t at = kind.offset;
  while (at < start.size() && std::isspace(static_cast<unsigned char>(start[at]))) ++at;
  return start.empty() || (at < start.size() &&
                           std::string_view(kind.start).find(start[at]) != std::string_view::npos);
}

}  // namespace

void check_folder_of(const fs::path& file, std::string_view option) {
  const fs::path folder = file.parent_path();
  if (folder.empty() || !file.has_filename() || fs::is_directory(folder)) return;
  throw ConfigError("tare", std::string(option) + " names a file in '" +
                                printable(folder.string(), 1000) +
                                "', which is no folder: make it, or give another name");
}

void check_output_file(const fs::path& file, FileKind kind, std::string_view option,
                       const fs::path& input) {
  check_folder_of(file, option);
  if (!fs::is_regular_file(file)) return;
  const KindOfFile traits = traits_of(kind);
  const bool is_input = !input.empty() && fs::exists(input) && fs::equivalent(file, input);
  if (!is_input && is_of(file, traits)) return;
  throw ConfigError(
      "tare", std::string(option) + " would replace '" + printable(file.string()) + "', which is " +
                  (is_input ? "what the command reads" : "no " + std::string(traits.name)) +
                  ": give another name, or remove the file");
}

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
