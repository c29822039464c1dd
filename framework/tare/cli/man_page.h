// Man pages (troff, section 1), made from the table of commands.
#pragma once

#include <string>
#include <vector>

#include "tare/cli/arguments.h"

namespace tare::cli {

/// Escapes text for a line of troff: no request, no escape, hyphens that can be copied.
[[nodiscard]] std::string man_text(const std::string& text);
/// Returns a paragraph behind a tag in bold.
[[nodiscard]] std::string man_item(const std::string& tag, const std::string& text);

/// Returns the page tare(1): the commands.
[[nodiscard]] std::string man_overview(const std::vector<Command>& commands,
                                       const std::string& version);
/// Returns the page tare-NAME(1) of a command.
[[nodiscard]] std::string man_page(const Command& command, const std::string& version);

}  // namespace tare::cli
