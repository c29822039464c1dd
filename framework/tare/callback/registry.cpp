// The callbacks of Tare that a recipe can name.
#include "tare/callback/registry.h"

#include "tare/callback/csv_log.h"
#include "tare/callback/leak_watch.h"
#include "tare/callback/memory_log.h"
#include "tare/callback/monitor.h"

namespace tare::callbacks {
namespace {

struct CsvLogOptions {
  std::filesystem::path file = "history.csv";
};
void visit_fields(auto& visit, CsvLogOptions& o) { visit("file", o.file); }

struct StepsLogOptions {
  std::filesystem::path file = "steps.csv";
};
void visit_fields(auto& visit, StepsLogOptions& o) { visit("file", o.file); }

void add_ours(Registry& all) {
  all.add<EarlyStoppingOptions>(
      "early_stopping", "end a fit whose figure has not improved for some epochs",
      [](const EarlyStoppingOptions& o) { return std::make_shared<EarlyStopping>(o); });
  all.add<SaveBestOptions>("save_best",
                           "save the epoch of the best figure, and end with its weights",
                           [](const SaveBestOptions& o) { return std::make_shared<SaveBest>(o); });
  all.add<CsvLogOptions>("csv_log", "write the table of the epochs as CSV",
                         [](const CsvLogOptions& o) { return std::make_shared<CsvLog>(o.file); });
  all.add<StepsLogOptions>(
      "steps_log", "write loss and rate of up to 1000 steps as CSV",
      [](const StepsLogOptions& o) { return std::make_shared<StepsLog>(o.file); });
  all.add("memory_log", "add growth, peak and unexplained memory to the table of the epochs",
          [] { return std::make_shared<MemoryLog>(); });
  all.add("leak_watch", "warn of memory that grows and that no object answers for",
          [] { return std::make_shared<LeakWatch>(); });
}

}  // namespace

Registry& registry() {
  static Registry all("callback");
  static const bool filled = (add_ours(all), true);
  static_cast<void>(filled);
  return all;
}

}  // namespace tare::callbacks
