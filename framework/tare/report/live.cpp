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

}  // namespace tare::report
