// The commands of the `tare` program, in one table.
#pragma once

#include <string>
#include <vector>

#include "tare/cli/arguments.h"
#include "tare/runtime/exit_code.h"

namespace tare::cli {

/// Returns every command, in the order of the help.
[[nodiscard]] const std::vector<Command>& commands();
/// Throws ConfigError for an unknown name, naming the nearest.
[[nodiscard]] const Command& find_command(const std::string& name);
/// The text that `tare --help` prints, within `width` columns.
[[nodiscard]] std::string overview(size_t width = kAnyWidth);

// The commands themselves.
int run_command(const Arguments& arguments);
int plan_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int explain_command(const Arguments& arguments);
int data_command(const Arguments& arguments);
int sweep_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);
int top_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);
int man_command(const Arguments& arguments);

}  // namespace tare::cli
