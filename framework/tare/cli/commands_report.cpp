// `tare report`: writes the HTML page of a run.
#include <filesystem>
#include <iostream>

#include "tare/base/bytes.h"
#include "tare/base/io.h"
#include "tare/cli/command.h"
#include "tare/cli/output.h"
#include "tare/report/run_report.h"

namespace tare::cli {

int report_command(const Arguments& arguments) {
  const std::filesystem::path folder = arguments.positional().front();
  const std::filesystem::path file = arguments.get("out", (folder / "report.html").string());
  refuse_to_replace(file, FileKind::html, "--out");
  const std::string page = report::html_report(folder, arguments.get("recording"));
  io::write_atomically(file, page);
  std::cout << file.string() << ", " << format_bytes(static_cast<int64_t>(page.size())) << '\n';
  return kSuccess;
}

}  // namespace tare::cli
