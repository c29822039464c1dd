// `tare export`: writes a bundle, or a file for other programs, from a run, a checkpoint or a
// bundle.
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/cli/handlers.h"
#include "tare/cli/output.h"
#include "tare/cli/trust.h"
#include "tare/config/field.h"
#include "tare/config/node.h"
#include "tare/interchange/export_file.h"
#include "tare/recipe/export.h"
#include "tare/report/run_failure.h"
#include "tare/runtime/init.h"

namespace tare::cli {
namespace {

std::string difference_text(double difference) {
  if (difference == 0) return "equal to the bit";
  std::ostringstream text;
  text << std::setprecision(2) << "at most " << difference << " of the largest output apart";
  return std::move(text).str();
}

}  // namespace

int export_command(const Arguments& arguments) {
  init({.cuda = CudaMode::off});  // a few batches are computed, on the host
  trust_given(arguments, "tare export");
  BundleFormat format;
  if (arguments.has("weights")) format.weights = arguments.get("weights");
  if (arguments.has("format")) format.format = arguments.get("format");
  format.fold_norms = arguments.has("fold-norms");
  format.opset = arguments.number("opset", format.opset, 1);
  if (arguments.has("tolerance"))
    format.tolerance =
        config::read<double>(config::parse_text(arguments.get("tolerance"), "--tolerance"));
  if (arguments.has("out")) check_folder_of(arguments.get("out"), "--out");
  if (arguments.has("out") && format.format == "tare")
    check_output_file(arguments.get("out"), FileKind::bundle, "--out",
                      arguments.positional().front());
  const BundleExport done =
      export_bundle(arguments.positional().front(), arguments.get("out"), format);
  std::cout << "exported " << printable(done.bundle.string(), 1000) << ", "
            << format_bytes(done.bytes) << ", from " << printable(done.from.string(), 1000)
            << (done.phase.empty() ? "" : ", " + printable(report::phase_text(done.phase))) << '\n';
  if (!done.second.empty())
    std::cout << "the weights lie in " << printable(done.second.string(), 1000)
              << ": keep both files in one folder\n";
  if (format.format != "tare" && interchange::file_format(format.format).graph)
    std::cout << "compared with the model for batches of 1, 2 and 5 samples: "
              << difference_text(done.difference) << '\n';
  return kSuccess;
}

}  // namespace tare::cli
