// `tare export`: writes a bundle from a run, a checkpoint or another bundle.
#include <iostream>
#include <optional>
#include <string>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/cli/command.h"
#include "tare/cli/output.h"
#include "tare/cli/trust.h"
#include "tare/recipe/export.h"
#include "tare/report/run_failure.h"
#include "tare/runtime/init.h"

namespace tare::cli {

int export_command(const Arguments& arguments) {
  init({.cuda = CudaMode::off});  // nothing is computed
  trust_given(arguments, "tare export");
  if (arguments.has("out"))
    refuse_to_replace(arguments.get("out"), FileKind::bundle, "--out",
                      arguments.positional().front());
  std::optional<std::string> weights;
  if (arguments.has("weights")) weights = arguments.get("weights");
  const BundleExport done =
      export_bundle(arguments.positional().front(), arguments.get("out"), weights);
  std::cout << "exported " << printable(done.bundle.string(), 1000) << ", "
            << format_bytes(done.bytes) << ", from " << printable(done.from.string(), 1000)
            << (done.phase.empty() ? "" : ", " + printable(report::phase_text(done.phase))) << '\n';
  return kSuccess;
}

}  // namespace tare::cli
