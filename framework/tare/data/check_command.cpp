// Writes `tare data check` with the options of a data set.
#include "tare/data/check_command.h"

#include <algorithm>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/config/changed.h"
#include "tare/data/datasets.h"

namespace tare {
namespace {

/// Returns the word as a shell takes it.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return '\'' + replaced(word, "'", "'\\''") + '\'';
}

std::string command_of(const DataOptions& options) {
  std::string command = "tare data check " + shell_word(options.file) + " name=" + options.name;
  const std::vector<std::string> own = datasets::registry().make(options.name).fields;
  const config::Node all = config::to_node(options);
  for (const std::string& field : config::changed_fields(options))
    if (field != "file" && std::ranges::find(own, field) != own.end())
      command += ' ' + shell_word(field + '=' + config::flow_text(*all.find(field)));
  return command;
}

}  // namespace

std::string more_problems(int64_t more, const DataOptions& options) {
  constexpr size_t kLongest = 600;  // so that no message is cut inside of the command
  if (more < 1) return {};
  const std::string command = command_of(options);
  return "; " + format_count(more) + (more == 1 ? " more problem" : " more problems") + ": `" +
         (command.size() > kLongest ? "tare data check RECIPE" : printable(command, 2 * kLongest)) +
         "` lists them";
}

}  // namespace tare
