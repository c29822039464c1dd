// Marks the folders of runs, and reads the marks.
#include "tare/sweep/run_mark.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/search/value_text.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/run_name.h"
#include "tare/sweep/store_json.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kFile = "trial.json";

/// A coordinator that was killed may have left a mark that is half written.
bool holds_nothing(const fs::path& folder) {
  if (!fs::exists(folder)) return true;
  const std::string partial = std::string(kFile) + ".partial";
  return std::ranges::all_of(fs::directory_iterator(folder),
                             [&](const auto& entry) { return entry.path().filename() == partial; });
}

RunMark mark_of(const ordered_json& json) {
  return {.study = json.at("study").get<std::string>(),
          .identity = json.at("identity").get<std::string>(),
          .number = json.at("number").get<int64_t>(),
          .attempt = json.at("attempt").get<int64_t>(),
          .settings = json.at("settings").get<std::string>()};
}

}  // namespace

search::Cell RunMark::cell() const {
  search::Cell cell;
  from_node(config::parse_text(settings, kFile), cell);
  return cell;
}

std::optional<RunMark> read_mark(const fs::path& folder) {
  if (!fs::exists(folder / kFile)) return std::nullopt;
  try {
    return mark_of(ordered_json::parse(io::read_text(folder / kFile)));
  } catch (const ordered_json::exception&) {  // it is not JSON, or not ours
    return std::nullopt;
  }
}

void claim_folder(const fs::path& folder, const SweepOptions& sweep, const Trial& trial) {
  const auto there = read_mark(folder);
  // Earlier versions marked no folder, but such a run stands in the store as started.
  const bool own = there ? there->identity == trial.identity
                         : holds_nothing(folder) || trial.started.time_since_epoch().count() != 0;
  if (!own)
    throw StateError("sweep.start '" + printable(folder.string()) + "'",
                     "over files of another run", "move them away, and run tare sweep retry");
  io::make_directories(folder);
  const ordered_json json{{"study", sweep.name},
                          {"number", trial.number},
                          {"attempt", trial.attempt},
                          {"identity", trial.identity},
                          {"settings", search::flow_text(to_node(trial.cell))}};
  io::write_atomically(folder / kFile, text_of(json) + '\n', io::Flush::no);
}

bool is_folder_of(const fs::path& folder, const std::string& identity) {
  const auto mark = read_mark(folder);
  return mark && mark->identity == identity;
}

}  // namespace tare::sweep
