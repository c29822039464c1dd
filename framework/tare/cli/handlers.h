// The functions of the commands of the `tare` program.
#pragma once

#include <string>

#include "tare/cli/arguments.h"
#include "tare/cli/command.h"
#include "tare/runtime/exit_code.h"

namespace tare::cli {

/// Runs `tare run`; all commands return the exit status, see ExitCode.
int run_command(const Arguments& arguments);
int plan_command(const Arguments& arguments);        ///< runs `tare plan`
int lr_find_command(const Arguments& arguments);     ///< runs `tare lr-find`
int bench_command(const Arguments& arguments);       ///< runs `tare bench`
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

/// Runs a command of commands() other than predict, by its name, and returns its exit status.
int run_handler(const std::string& name, const Arguments& arguments);

}  // namespace tare::cli
