#include <filesystem>
#include <iostream>

#include "tare/base/io.h"
#include "tare/cli/command.h"
#include "tare/cli/completion.h"
#include "tare/cli/man_page.h"

namespace tare::cli {

int completion_command(const Arguments& arguments) {
  std::cout << completion(arguments.positional().front(), commands());
  return kSuccess;
}

int man_command(const Arguments& arguments) {
  if (!arguments.has("out")) {
    const auto& words = arguments.positional();
    std::cout << (words.empty() ? man_overview(commands(), TARE_VERSION)
                                : man_page(find_command(words.front()), TARE_VERSION));
    return kSuccess;
  }
  const std::filesystem::path folder = arguments.get("out");
  io::make_directories(folder);
  io::write_atomically(folder / "tare.1", man_overview(commands(), TARE_VERSION));
  for (const auto& command : commands())
    io::write_atomically(folder / ("tare-" + command.name + ".1"), man_page(command, TARE_VERSION));
  return kSuccess;
}

}  // namespace tare::cli
