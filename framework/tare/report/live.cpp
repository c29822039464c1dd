// Writes and reads the figures of a run under way.
#include "tare/report/live.h"

#include "tare/base/io.h"
#include "tare/report/json_fields.h"

namespace tare::report {

std::string to_json(const LiveFigures& live) { return json_text(live, 2); }

std::optional<LiveFigures> read_live(const std::filesystem::path& folder) {
  const auto file = folder / kLiveFile;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return from_json_text<LiveFigures>(io::read_text(file), {"watch", file.string()});
}

std::string json_line(const RunFiles& run, const std::optional<LiveFigures>& live) {
  auto phases = nlohmann::ordered_json::array();
  for (const PhaseFiles& phase : run.phases) {
    auto epochs = json_of(phase.figures ? phase.figures->epochs : phase.epochs);
    if (!phase.figures)
      for (auto& epoch : epochs) epoch.erase("samples");  // which the CSV file does not have
    phases.push_back({{"name", phase.name}, {"epochs", std::move(epochs)}});
  }
  return dump_json({{"name", run.name},
                    {"live", json_of(live)},
                    {"phases", phases},
                    {"report", json_of(run.figures)},
                    {"failure", json_of(run.failure)}},
                   -1);
}

}  // namespace tare::report
