// Reads trials, reports and rungs from a store.
#include "tare/sweep/store_read.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/sweep/database.h"
#include "tare/sweep/store_schema.h"
#include "tare/sweep/store_values.h"

namespace tare::sweep {
namespace {

search::TrialState state_of(const std::string& text) {
  if (const auto state = search::trial_state(text)) return *state;
  throw FormatError("sweep.store", "", "trials.state", "is '" + printable(text) + "'");
}

/// Returns the number of an attribute; 1 where there is none, or Optuna's user has written another.
int64_t ranks_of(const std::string& json) {
  return std::max<int64_t>(1, config::as_integer(json).value_or(1));
}

/// Returns the texts of an attribute.
std::vector<std::string> devices_of(const std::string& json) {
  std::vector<std::string> all;
  for (const auto& device : nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false))
    if (device.is_string()) all.push_back(device.get<std::string>());
  return all;
}

}  // namespace

void check_schema(const Database& database) {
  const auto refuse = [&](const char* what, const std::string& found, const std::string& known) {
    throw FormatError("sweep.store", database.file(), what,
                      "is '" + printable(found) + "', and this version of Tare reads '" + known +
                          "'; sweep in another log_dir, or use the program that wrote it");
  };
  auto own = database.prepare("PRAGMA user_version");
  if (own.step() && own.integer(0) != 0 && own.integer(0) != kOwnVersion)
    refuse("user_version", own.text(0), std::to_string(kOwnVersion));
  const auto has = [&](const char* table) {
    auto row = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
    return row.bind(1, table).step();
  };
  if (has("version_info")) {
    auto row = database.prepare("SELECT schema_version FROM version_info");
    if (row.step() && row.integer(0) != kSchemaVersion)
      refuse("version_info.schema_version", row.text(0), std::to_string(kSchemaVersion));
  }
  if (has("alembic_version")) {
    auto row = database.prepare("SELECT version_num FROM alembic_version");
    if (row.step() && row.text(0) != kAlembicHead)
      refuse("alembic_version.version_num", row.text(0), kAlembicHead);
  }
}

std::vector<Trial> trials_of(const Database& database, int64_t study) {
  auto row = database.prepare(
      "SELECT t.trial_id, t.number, t.state, r.identity, r.run_name, r.settings, r.attempt, "
      "r.asked_bytes, r.reason, r.pid, r.boot_id, r.pid_start, v.value, "
      "coalesce(v.value_type, 'NAN'), r.peak_bytes, r.seconds, t.datetime_start, "
      "t.datetime_complete, a.value_json, d.value_json FROM trials t JOIN sweep_runs r "
      "USING (trial_id) "
      "LEFT JOIN trial_values v ON v.trial_id = t.trial_id AND v.objective = 0 "
      "LEFT JOIN trial_user_attributes a ON a.trial_id = t.trial_id AND a.\"key\" = ?2 "
      "LEFT JOIN trial_user_attributes d ON d.trial_id = t.trial_id AND d.\"key\" = ?3 "
      "WHERE t.study_id = ?1 ORDER BY t.number");
  row.bind(1, study).bind(2, kRanks).bind(3, kDevices);
  std::vector<Trial> all;
  while (row.step()) {
    Trial trial{.id = row.integer(0),
                .number = row.integer(1),
                .state = state_of(row.text(2)),
                .identity = row.text(3),
                .run_name = row.text(4)};
    from_node(config::parse_text(row.text(5), "the sweep's store"), trial.cell);
    trial.attempt = row.integer(6);
    trial.asked_bytes = row.integer(7);
    trial.reason = row.text(8);
    trial.child = {row.integer(9), row.text(10), row.integer(11)};
    trial.value = value_of(row, 12);
    trial.peak_bytes = row.integer(14);
    trial.seconds = row.number(15);
    trial.started = time_of(row.text(16));
    trial.ended = time_of(row.text(17));
    trial.ranks = ranks_of(row.text(18));
    trial.devices = devices_of(row.text(19));
    all.push_back(std::move(trial));
  }
  return all;
}

Reported reports_of(const Database& database, int64_t study) {
  Reported reports;
  auto row = database.prepare(
      "SELECT number, step, intermediate_value, intermediate_value_type FROM "
      "trial_intermediate_values JOIN trials USING (trial_id) WHERE study_id = ?");
  row.bind(1, study);
  while (row.step()) reports[row.integer(0)][row.integer(1)] = value_of(row, 2);
  return reports;
}

std::vector<search::SeenTrial> history_of(const Database& database, int64_t study,
                                          const search::Space& space) {
  Reported reports = reports_of(database, study);
  std::map<int64_t, search::SeenTrial> seen;  // by id
  for (const Trial& trial : trials_of(database, study)) {
    if (trial.reason == kDropped) continue;
    seen[trial.id] = {.number = trial.number,
                      .state = trial.state,
                      .value = trial.value,
                      .reports = std::move(reports[trial.number]),
                      .params = search::point_of(space, trial.cell)};
  }
  auto rung = database.prepare(
      "SELECT trial_id, value_json FROM trial_system_attributes JOIN trials USING (trial_id) "
      "WHERE study_id = ? AND \"key\" LIKE 'completed_rung_%' "
      "ORDER BY trial_id, CAST(substr(\"key\", 16) AS INTEGER)");
  rung.bind(1, study);
  while (rung.step())
    if (const auto trial = seen.find(rung.integer(0)); trial != seen.end())
      if (const auto value = config::as_number(rung.text(1))) trial->second.rungs.push_back(*value);
  std::vector<search::SeenTrial> all;
  for (auto& [id, trial] : seen) all.push_back(std::move(trial));
  std::ranges::sort(all, {}, &search::SeenTrial::number);
  return all;
}

search::ResolvedSteps resolved_steps_of(const Database& database, int64_t study) {
  auto row = database.prepare(
      "SELECT value_json FROM study_system_attributes WHERE study_id = ? AND \"key\" = ?");
  search::ResolvedSteps steps;
  if (!row.bind(1, study).bind(2, kResolvedSteps).step()) return steps;
  const auto json = nlohmann::json::parse(row.text(0), nullptr, false);
  const auto read = [&](const char* key, std::optional<int64_t>& value) {
    if (json.is_object() && json.contains(key) && json[key].is_number_integer())
      value = json[key].get<int64_t>();
  };
  read("min_resource", steps.min_resource);
  read("max_resource", steps.max_resource);
  return steps;
}

StoreContents read_store(const std::filesystem::path& path, const std::string& study) {
  const Database database(path, Access::read);
  check_schema(database);
  auto found = database.prepare(
      "SELECT s.study_id, c.pid, c.boot_id, c.pid_start FROM studies s "
      "LEFT JOIN sweep_coordinators c USING (study_id) WHERE s.study_name = ?");
  if (!found.bind(1, study).step())
    throw FormatError("sweep.store", path.string(), "studies",
                      "has no study '" + printable(study) + "'");
  return {.trials = trials_of(database, found.integer(0)),
          .reports = reports_of(database, found.integer(0)),
          .coordinator = {found.integer(1), found.text(2), found.integer(3)}};
}

}  // namespace tare::sweep
