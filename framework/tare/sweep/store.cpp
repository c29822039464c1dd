// Writes the store of a sweep.
#include "tare/sweep/store.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/base/host_name.h"
#include "tare/search/pruner.h"
#include "tare/search/value_text.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/run_name.h"
#include "tare/sweep/store_json.h"
#include "tare/sweep/store_read.h"
#include "tare/sweep/store_schema.h"
#include "tare/sweep/store_values.h"

namespace tare::sweep {

using nlohmann::ordered_json;

struct Store::Parts {
  Parts(const std::filesystem::path& path, const SweepOptions& options)
      : database(path), sweep(options) {}

  void create() {
    check_schema(database);
    database.execute(kSchema);
    if (!database.prepare("SELECT 1 FROM version_info").step()) {
      database.prepare("INSERT INTO version_info VALUES (1, ?, 'tare')")
          .bind(1, kSchemaVersion)
          .run();
      database.prepare("INSERT INTO alembic_version VALUES (?)").bind(1, kAlembicHead).run();
    }
    const std::string direction = sweep.metric.goal == "maximize" ? "MAXIMIZE" : "MINIMIZE";
    auto known = database.prepare(
        "SELECT s.study_id, d.direction, a.value_json FROM studies s "
        "JOIN study_directions d USING (study_id) "
        "LEFT JOIN study_user_attributes a ON a.study_id = s.study_id AND a.\"key\" = 'metric' "
        "WHERE s.study_name = ?");
    if (known.bind(1, sweep.name).step()) {
      study = known.integer(0);
      const std::string metric = ordered_json(sweep.metric.name).dump();
      if (known.text(1) != direction || (!known.is_null(2) && known.text(2) != metric))
        throw ConfigError("sweep", "metric", "is not that of the study's earlier runs",
                          known.text(2) + ' ' + known.text(1), metric + ' ' + direction);
      return;
    }
    database.prepare("INSERT INTO studies (study_name) VALUES (?)").bind(1, sweep.name).run();
    study = database.last_id();
    database
        .prepare("INSERT INTO study_directions (direction, study_id, objective) VALUES (?, ?, 0)")
        .bind(1, direction)
        .bind(2, study)
        .run();
    database
        .prepare(
            "INSERT INTO study_user_attributes (study_id, \"key\", value_json) "
            "VALUES (?, 'metric', ?)")
        .bind(1, study)
        .bind(2, ordered_json(sweep.metric.name).dump())
        .run();
  }

  /// Optuna may have made the study, and added or deleted trials.
  void follow_optuna() {
    database.prepare("INSERT OR IGNORE INTO sweep_numbers VALUES (?, 0)").bind(1, study).run();
    for (const char* table :
         {"trial_user_attributes", "trial_system_attributes", "trial_params", "trial_values",
          "trial_intermediate_values", "trial_heartbeats", "sweep_runs"})
      database.execute((std::string("DELETE FROM ") + table +
                        " WHERE trial_id NOT IN (SELECT trial_id FROM trials)")
                           .c_str());
    database
        .prepare(
            "UPDATE sweep_numbers SET next = max(next, 1 + coalesce((SELECT max(number) FROM "
            "trials WHERE study_id = ?1), -1)) WHERE study_id = ?1")
        .bind(1, study)
        .run();
  }

  /// Folders of runs that the store does not know keep their numbers.
  void keep_numbers_above(int64_t number) {
    database.prepare("UPDATE sweep_numbers SET next = max(next, ?) WHERE study_id = ?")
        .bind(1, number + 1)
        .bind(2, study)
        .run();
  }

  /// Names this process as the one that writes from now on.
  void sign() {
    const launch::ProcessId self = launch::process_id_of(getpid());
    database.prepare("INSERT OR REPLACE INTO sweep_coordinators VALUES (?, ?, ?, ?)")
        .bind(1, study)
        .bind(2, self.boot_id)
        .bind(3, self.pid)
        .bind(4, self.started_ticks)
        .run();
  }

  int64_t take_number() {
    auto statement = database.prepare(
        "UPDATE sweep_numbers SET next = next + 1 WHERE study_id = ? RETURNING next - 1");
    statement.bind(1, study).step();
    const int64_t number = statement.integer(0);
    statement.run();
    return number;
  }

  void set_attribute(int64_t trial, const char* table, const char* key, const ordered_json& value) {
    database
        .prepare(std::string("INSERT OR REPLACE INTO ") + table +
                 " (trial_id, \"key\", value_json) VALUES (?, ?, ?)")
        .bind(1, trial)
        .bind(2, key)
        .bind(3, text_of(value))
        .run();
  }

  /// Adds a waiting trial and returns its id; the statements are used for many trials.
  int64_t add(int64_t number, const std::string& identity, const std::string& run_name,
              const search::Cell& cell, int64_t attempt, int64_t asked_bytes) {
    if (!add_trial_) {
      add_trial_ =
          database.prepare("INSERT INTO trials (number, study_id, state) VALUES (?, ?, 'WAITING')");
      add_fixed_ = database.prepare(
          "INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) "
          "VALUES (?, 'fixed_params', ?)");
      add_run_ = database.prepare(
          "INSERT INTO sweep_runs (trial_id, identity, run_name, settings, attempt, "
          "asked_bytes) VALUES (?, ?, ?, ?, ?, ?)");
    }
    add_trial_->bind(1, number).bind(2, study).run();
    const int64_t id = database.last_id();
    add_fixed_->bind(1, id).bind(2, text_of(fixed_params(cell))).run();
    add_run_->bind(1, id)
        .bind(2, identity)
        .bind(3, run_name)
        .bind(4, search::flow_text(to_node(cell)))
        .bind(5, attempt)
        .bind(6, asked_bytes)
        .run();
    return id;
  }

  /// Sets how many ranks a trial that starts has, where there are several, and where they are.
  void set_ranks(const Trial& trial) {
    constexpr const char* kTable = "trial_user_attributes";
    if (trial.ranks > 1) {
      set_attribute(trial.id, kTable, kRanks, trial.ranks);
      set_attribute(trial.id, kTable, kDevices, trial.devices);
      return;
    }
    database
        .prepare(std::string("DELETE FROM ") + kTable + " WHERE trial_id = ? AND \"key\" IN (?, ?)")
        .bind(1, trial.id)
        .bind(2, kRanks)
        .bind(3, kDevices)
        .run();
  }

  /// Sets the cell again; one run may be written with other settings.
  void set_cell(int64_t trial, const search::Cell& cell) {
    database.prepare("UPDATE sweep_runs SET settings = ? WHERE trial_id = ?")
        .bind(1, search::flow_text(to_node(cell)))
        .bind(2, trial)
        .run();
    set_attribute(trial, "trial_system_attributes", "fixed_params", fixed_params(cell));
  }

  /// Writes the parameters of a trial, as Optuna reads them.
  void set_params(const Trial& trial) {
    for (const auto& [key, value] : trial.cell.values) {
      const search::Parameter* parameter = sweep.parameters.find(key);
      if (!parameter) continue;
      database
          .prepare(
              "INSERT OR REPLACE INTO trial_params (trial_id, param_name, param_value, "
              "distribution_json) VALUES (?, ?, ?, ?)")
          .bind(1, trial.id)
          .bind(2, key)
          .bind(3, choices.value(*parameter, value))
          .bind(4, text_of(choices.distribution(*parameter)))
          .run();
    }
  }

  Database database;
  const SweepOptions& sweep;
  int64_t study = 0;
  CategoricalChoices choices;

 private:
  std::optional<Statement> add_trial_, add_fixed_, add_run_;
};

Store::Store(const std::filesystem::path& path, const SweepOptions& sweep)
    : parts_(std::make_unique<Parts>(path, sweep)) {
  parts_->database.transaction([&] {
    parts_->create();
    parts_->follow_optuna();
    if (const auto folders = run_folders(path.parent_path(), sweep.name); !folders.empty())
      parts_->keep_numbers_above(*number_in(folders.back().filename().string(), sweep.name));
    parts_->sign();
    parts_->choices.merge(parts_->database, parts_->study, sweep.parameters);
  });
}

Store::~Store() = default;

void Store::wait_for(const std::vector<search::Cell>& cells,
                     const std::vector<std::string>& identities, bool failed_too) {
  std::unordered_map<std::string, size_t> wanted;
  for (size_t i = 0; i < cells.size(); ++i) wanted.try_emplace(identities[i], i);
  parts_->database.transaction([&] {
    parts_->choices.merge(parts_->database, parts_->study, parts_->sweep.parameters);
    std::unordered_map<std::string, Trial> latest;
    for (Trial& trial : trials()) {
      const auto cell = wanted.find(trial.identity);
      if (trial.state == search::TrialState::waiting && cell == wanted.end()) {
        finish_in_transaction(trial, {.reason = kDropped});
        continue;
      }
      if (trial.state == search::TrialState::waiting)
        parts_->set_cell(trial.id, cells[cell->second]);
      if (trial.reason != kDropped) latest[trial.identity] = std::move(trial);
    }
    for (const auto& identity : identities) {
      const auto index = wanted.find(identity);
      if (index == wanted.end()) continue;  // the same run a second time
      const auto known = latest.find(identity);
      const bool failed =
          known != latest.end() && known->second.state == search::TrialState::failed;
      const search::Cell& cell = cells[index->second];
      wanted.erase(index);
      if (known != latest.end() && !(failed && failed_too)) continue;
      const int64_t number = parts_->take_number();
      const auto name = failed ? known->second.run_name : run_name(parts_->sweep, number, cell);
      parts_->add(number, identity, name, cell, 0, 0);
    }
  });
}

Trial Store::add(const search::Cell& cell, const std::string& identity) {
  Trial trial{.identity = identity, .cell = cell};
  parts_->database.transaction([&] {
    trial.number = parts_->take_number();
    trial.run_name = run_name(parts_->sweep, trial.number, cell);
    trial.id = parts_->add(trial.number, identity, trial.run_name, cell, 0, 0);
  });
  return trial;
}

int64_t Store::next_number() const {
  auto row = parts_->database.prepare("SELECT next FROM sweep_numbers WHERE study_id = ?");
  row.bind(1, parts_->study).step();
  return row.integer(0);
}

std::vector<search::SeenTrial> Store::history() const {
  return history_of(parts_->database, parts_->study, parts_->sweep.parameters);
}

void Store::report(const Trial& trial, int64_t step, double value) {
  auto statement = parts_->database.prepare(
      "INSERT OR REPLACE INTO trial_intermediate_values (trial_id, step, intermediate_value, "
      "intermediate_value_type) VALUES (?, ?, ?, ?)");
  statement.bind(1, trial.id).bind(2, step);
  const char* type = bind_value(statement, 3, value);
  statement.bind(4, type).run();
}

void Store::set_rungs(const Trial& trial, const std::vector<double>& values) {
  for (size_t rung = 0; rung < values.size(); ++rung)
    parts_->set_attribute(trial.id, "trial_system_attributes",
                          ("completed_rung_" + std::to_string(rung)).c_str(), values[rung]);
}

void Store::keep(const search::ResolvedSteps& steps) {
  ordered_json json;
  if (steps.min_resource) json["min_resource"] = *steps.min_resource;
  if (steps.max_resource) json["max_resource"] = *steps.max_resource;
  parts_->database
      .prepare(
          "INSERT OR REPLACE INTO study_system_attributes (study_id, \"key\", value_json) "
          "VALUES (?, ?, ?)")
      .bind(1, parts_->study)
      .bind(2, kResolvedSteps)
      .bind(3, text_of(json))
      .run();
}

search::ResolvedSteps Store::resolved_steps() const {
  return resolved_steps_of(parts_->database, parts_->study);
}

std::vector<Trial> Store::trials() const { return trials_of(parts_->database, parts_->study); }

std::chrono::system_clock::time_point Store::start(const Trial& trial,
                                                   const launch::ProcessId& child,
                                                   int64_t reserved_bytes) {
  const auto now = std::chrono::system_clock::now();
  parts_->database.transaction([&] {
    const Database& database = parts_->database;
    database.prepare("UPDATE trials SET state = 'RUNNING', datetime_start = ? WHERE trial_id = ?")
        .bind(1, text_of(now))
        .bind(2, trial.id)
        .run();
    parts_->set_params(trial);
    database
        .prepare(
            "UPDATE sweep_runs SET host = ?, boot_id = ?, pid = ?, pid_start = ?, "
            "reserved_bytes = ? WHERE trial_id = ?")
        .bind(1, host_name())
        .bind(2, child.boot_id)
        .bind(3, child.pid)
        .bind(4, child.started_ticks)
        .bind(5, reserved_bytes)
        .bind(6, trial.id)
        .run();
    parts_->set_ranks(trial);
  });
  return now;
}

void Store::restore(const Trial& trial, const std::optional<Outcome>& outcome) {
  parts_->database.transaction([&] {
    Trial again = trial;
    again.id = parts_->add(trial.number, trial.identity, trial.run_name, trial.cell, trial.attempt,
                           trial.asked_bytes);
    parts_->keep_numbers_above(trial.number);
    if (!outcome) return;
    parts_->database.prepare("UPDATE trials SET datetime_start = ? WHERE trial_id = ?")
        .bind(1, text_of(trial.started))
        .bind(2, again.id)
        .run();
    parts_->set_params(again);
    finish_in_transaction(again, *outcome);
  });
}

void Store::finish(const Trial& trial, const Outcome& outcome) {
  parts_->database.transaction([&] { finish_in_transaction(trial, outcome); });
}

void Store::finish_in_transaction(const Trial& trial, const Outcome& outcome) {
  const Database& database = parts_->database;
  database.prepare("UPDATE trials SET state = ?, datetime_complete = ? WHERE trial_id = ?")
      .bind(1, to_string(outcome.state))
      .bind(2, text_of(outcome.ended))
      .bind(3, trial.id)
      .run();
  database
      .prepare(
          "UPDATE sweep_runs SET peak_bytes = ?, exit_code = ?, reason = ?, seconds = ? "
          "WHERE trial_id = ?")
      .bind(1, outcome.peak_bytes)
      .bind(2, outcome.exit_code)
      .bind(3, outcome.reason)
      .bind(4, outcome.seconds)
      .bind(5, trial.id)
      .run();
  for (size_t step = 0; step < outcome.values.size(); ++step)
    report(trial, static_cast<int64_t>(step + 1), outcome.values[step]);
  const bool ended = outcome.state != search::TrialState::failed && !outcome.values.empty();
  if (ended && !std::isnan(outcome.value())) {
    auto statement = database.prepare(
        "INSERT OR REPLACE INTO trial_values (trial_id, objective, value, value_type) "
        "VALUES (?, 0, ?, ?)");
    statement.bind(1, trial.id);
    const char* type = bind_value(statement, 2, outcome.value());
    statement.bind(3, type).run();
  }
  if (outcome.state == search::TrialState::failed)
    parts_->set_attribute(trial.id, "trial_user_attributes", "reason", outcome.reason);
  if (outcome.peak_bytes > 0)
    parts_->set_attribute(trial.id, "trial_user_attributes", "peak_bytes", outcome.peak_bytes);
}

void Store::check_still_there() const { parts_->database.check_still_there(); }

void Store::put_back(const Trial& trial) {
  parts_->database.prepare("UPDATE trials SET state = 'WAITING' WHERE trial_id = ?")
      .bind(1, trial.id)
      .run();
}

Trial Store::finish_and_retry(const Trial& trial, const Outcome& outcome, int64_t asked_bytes) {
  Trial again{.identity = trial.identity,
              .run_name = trial.run_name,
              .cell = trial.cell,
              .attempt = trial.attempt + 1,
              .asked_bytes = asked_bytes};
  parts_->database.transaction([&] {
    finish_in_transaction(trial, outcome);
    ordered_json history = ordered_json::array();
    auto earlier = parts_->database.prepare(
        "SELECT t.number FROM trials t JOIN sweep_runs r USING (trial_id) "
        "WHERE t.study_id = ? AND r.identity = ? ORDER BY t.number");
    earlier.bind(1, parts_->study).bind(2, trial.identity);
    while (earlier.step()) history.push_back(earlier.integer(0));
    again.number = parts_->take_number();
    again.id = parts_->add(again.number, again.identity, again.run_name, again.cell, again.attempt,
                           asked_bytes);
    parts_->set_attribute(again.id, "trial_system_attributes", "failed_trial", history.front());
    parts_->set_attribute(again.id, "trial_system_attributes", "retry_history", history);
  });
  return again;
}

}  // namespace tare::sweep
