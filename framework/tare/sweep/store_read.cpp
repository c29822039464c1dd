#include "tare/sweep/store_read.h"

#include <array>

#include "tare/base/error.h"

namespace tare::sweep {
namespace {

constexpr std::array kStates{"WAITING", "RUNNING", "COMPLETE", "PRUNED", "FAIL"};

TrialState state_of(const std::string& text) {
  for (size_t i = 0; i < kStates.size(); ++i)
    if (text == kStates[i]) return static_cast<TrialState>(i);
  throw FormatError("sweep.store", "", "trials.state", "is '" + printable(text) + "'");
}

}  // namespace

const char* to_string(TrialState state) { return kStates[static_cast<size_t>(state)]; }

std::vector<Trial> trials_of(const Database& database, int64_t study) {
  auto row = database.prepare(
      "SELECT t.trial_id, t.number, t.state, r.identity, r.run_name, r.settings, r.attempt, "
      "r.asked_bytes, r.reason, r.pid, r.boot_id, r.pid_start, v.value, r.peak_bytes, "
      "r.seconds FROM trials t JOIN sweep_runs r USING (trial_id) "
      "LEFT JOIN trial_values v ON v.trial_id = t.trial_id AND v.objective = 0 "
      "WHERE t.study_id = ? ORDER BY t.number");
  row.bind(1, study);
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
    if (!row.is_null(12)) trial.value = row.number(12);
    trial.peak_bytes = row.integer(13);
    trial.seconds = row.number(14);
    all.push_back(std::move(trial));
  }
  return all;
}

StoreContents read_store(const std::filesystem::path& path, const std::string& study) {
  const Database database(path, Access::read);
  auto found = database.prepare(
      "SELECT s.study_id, c.pid, c.boot_id, c.pid_start FROM studies s "
      "LEFT JOIN sweep_coordinators c USING (study_id) WHERE s.study_name = ?");
  if (!found.bind(1, study).step())
    throw FormatError("sweep.store", path.string(), "studies",
                      "has no study '" + printable(study) + "'");
  return {.trials = trials_of(database, found.integer(0)),
          .coordinator = {found.integer(1), found.text(2), found.integer(3)}};
}

}  // namespace tare::sweep
