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
/// Returns the text that `tare --help` prints, within `width` columns; `program` is the name that
/// the program was called by.
[[nodiscard]] std::string overview(size_t width, const std::string& program);

// The commands themselves.
/// Runs `tare run`; all commands return the exit status, see ExitCode.
int run_command(const Arguments& arguments);
int plan_command(const Arguments& arguments);        ///< runs `tare plan`
int lr_find_command(const Arguments& arguments);     ///< runs `tare lr-find`
int list_command(const Arguments& arguments);        ///< runs `tare ls`
int explain_command(const Arguments& arguments);     ///< runs `tare explain`
int data_command(const Arguments& arguments);        ///< runs `tare data`
int sweep_command(const Arguments& arguments);       ///< runs `tare sweep`
int report_command(const Arguments& arguments);      ///< runs `tare report`
int compare_command(const Arguments& arguments);     ///< runs `tare compare`
int export_command(const Arguments& arguments);      ///< runs `tare export`
int new_command(const Arguments& arguments);         ///< runs `tare new`
int cat_command(const Arguments& arguments);         ///< runs `tare cat`
int cp_command(const Arguments& arguments);          ///< runs `tare cp`
int validate_command(const Arguments& arguments);    ///< runs `tare validate`
int serve_command(const Arguments& arguments);       ///< runs `tare serve`
int generate_command(const Arguments& arguments);    ///< runs `tare generate`
int inspect_command(const Arguments& arguments);     ///< runs `tare inspect`
int doctor_command(const Arguments& arguments);      ///< runs `tare doctor`
int top_command(const Arguments& arguments);         ///< runs `tare top`
int watch_command(const Arguments& arguments);       ///< runs `tare watch`
int completion_command(const Arguments& arguments);  ///< runs `tare completion`
int man_command(const Arguments& arguments);         ///< runs `tare man`

}  // namespace tare::cli
