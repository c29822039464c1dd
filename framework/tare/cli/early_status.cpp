// Shows the status of a sweep.
#include "tare/cli/early_status.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/cli/arguments.h"
#include "tare/cli/command.h"
#include "tare/cli/output.h"
#include "tare/cli/sweep_status.h"
#include "tare/config/node.h"
#include "tare/runtime/exit_code.h"
#include "tare/sweep/sweep_options.h"

namespace tare::cli {

std::optional<int> early_status(int argc, char** argv) {
  if (argc < 4 || std::string_view(argv[1]) != "sweep" || std::string_view(argv[2]) != "status")
    return std::nullopt;
  try {
    const auto words = parse(find_command("sweep"), argc - 1, argv + 1).positional();
    const std::filesystem::path file = words.at(1);
    if (!std::filesystem::is_regular_file(file)) return std::nullopt;     // a name of a shipped one
    if (config::parse_file(file).find("data_name")) return std::nullopt;  // furcate's form
    const sweep::SweepOptions sweep = sweep::read_sweep(file, {words.begin() + 2, words.end()});
    if (!std::filesystem::exists(sweep.recipe)) return std::nullopt;
    print_status(sweep);
    check_output("sweep");
    return kSuccess;
  } catch (const Error&) {  // the program that is executed next reports it
    return std::nullopt;
  }
}

}  // namespace tare::cli
