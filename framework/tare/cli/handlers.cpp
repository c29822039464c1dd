// Finds the function of a command.
#include "tare/cli/handlers.h"

#include <map>
#include <string_view>

namespace tare::cli {

int run_handler(const std::string& name, const Arguments& arguments) {
  using Handler = int (*)(const Arguments&);
  static const std::map<std::string_view, Handler> handlers{
      {"run", run_command},
      {"report", report_command},
      {"compare", compare_command},
      {"plan", plan_command},
      {"lr-find", lr_find_command},
      {"bench", bench_command},
      {"sweep", sweep_command},
      {"ls", list_command},
      {"explain", explain_command},
      {"new", new_command},
      {"validate", validate_command},
      {"cat", cat_command},
      {"cp", cp_command},
      {"data", data_command},
      {"export", export_command},
      {"inspect", inspect_command},
      {"serve", serve_command},
      {"generate", generate_command},
      {"doctor", doctor_command},
      {"top", top_command},
      {"watch", watch_command},
      {"completion", completion_command},
      {"man", man_command},
  };
  return handlers.at(name)(arguments);
}

}  // namespace tare::cli
