// Writes man pages as troff.
#include "tare/cli/man_page.h"

#include <algorithm>

#include "tare/runtime/exit_code.h"

namespace tare::cli {
namespace {

std::string head(const std::string& name, const std::string& summary, const std::string& usage,
                 const std::string& version) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return ".TH " + man_text(title) + " 1 \"\" \"tare " + version + "\" \"Tare\"\n.SH NAME\n" +
         man_text(name) + " \\- " + man_text(summary) + "\n.SH SYNOPSIS\n.B " + man_text(usage) +
         "\n";
}

std::string exit_status() {
  return ".SH \"EXIT STATUS\"\n" + man_text(std::string(kExitCodes) + ".") + "\n";
}

}  // namespace

std::string man_text(const std::string& text) {
  std::string result = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string man_item(const std::string& tag, const std::string& text) {
  return ".TP\n.B " + man_text(tag) + "\n" + man_text(text) + "\n";
}

std::string man_overview(const std::vector<Command>& commands, const std::string& version) {
  std::string text = head("tare", "the whole life of a training run, with every byte accounted for",
                          "tare COMMAND [ARGUMENTS]", version) +
                     ".SH COMMANDS\n";
  std::string pages;
  for (const auto& command : commands) {
    text += man_item(command.name, command.summary + ".");
    pages += pages.empty() ? "" : ",\n";
    pages += ".BR tare\\-" + man_text(command.name) + " (1)";
  }
  return text + exit_status() + ".SH \"SEE ALSO\"\n" + pages + ",\n.BR tare\\-recipe (5)\n";
}

std::string man_page(const Command& command, const std::string& version) {
  std::string text = head("tare-" + command.name, command.summary,
                          usage(command, "tare " + command.name), version);
  if (!command.actions.empty()) text += ".SH ACTIONS\n";
  for (const auto& [name, meaning] : command.actions) text += man_item(name, meaning + ".");
  text += ".SH OPTIONS\n";
  for (const auto& option : all_options(command)) {
    const std::string bare = option.implicit.empty() ? "" : "; without a value: " + option.implicit;
    text += man_item(usage(option), option.help + bare + ".");
  }
  text += ".SH EXAMPLES\n.EX\n";
  for (const auto& example : command.examples) text += man_text(example) + "\n";
  return text + ".EE\n" + exit_status() + ".SH \"SEE ALSO\"\n.BR tare (1)\n";
}

}  // namespace tare::cli
