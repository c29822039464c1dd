// The tables of a sweep's store. Internal.
#pragma once

#include <cstdint>

namespace tare::sweep {

inline constexpr int64_t kSchemaVersion = 12;            ///< of Optuna's tables
inline constexpr const char* kAlembicHead = "v3.2.0.a";  ///< likewise, of its migrations
inline constexpr int64_t kOwnVersion = 1;                ///< of the tables of ours; see kSchema

/// Creates Optuna's tables at kSchemaVersion, then ours; `user_version` is kOwnVersion.
inline constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS studies (
  study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL, PRIMARY KEY (study_id));
CREATE UNIQUE INDEX IF NOT EXISTS ix_studies_study_name ON studies (study_name);
CREATE TABLE IF NOT EXISTS version_info (
  version_info_id INTEGER NOT NULL, schema_version INTEGER, library_version VARCHAR(256),
  PRIMARY KEY (version_info_id), CHECK (version_info_id = 1));
CREATE TABLE IF NOT EXISTS alembic_version (
  version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
CREATE TABLE IF NOT EXISTS study_directions (
  study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT NULL, study_id INTEGER NOT NULL,
  objective INTEGER NOT NULL, PRIMARY KEY (study_direction_id), UNIQUE (study_id, objective),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS study_user_attributes (
  study_user_attribute_id INTEGER NOT NULL, study_id INTEGER, "key" VARCHAR(512), value_json TEXT,
  PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS study_system_attributes (
  study_system_attribute_id INTEGER NOT NULL, study_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (study_system_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS trials (
  trial_id INTEGER NOT NULL, number INTEGER, study_id INTEGER, state VARCHAR(8) NOT NULL,
  datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY (trial_id),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE INDEX IF NOT EXISTS ix_trials_study_id ON trials (study_id);
CREATE TABLE IF NOT EXISTS trial_user_attributes (
  trial_user_attribute_id INTEGER NOT NULL, trial_id INTEGER, "key" VARCHAR(512), value_json TEXT,
  PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_system_attributes (
  trial_system_attribute_id INTEGER NOT NULL, trial_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (trial_system_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_params (
  param_id INTEGER NOT NULL, trial_id INTEGER, param_name VARCHAR(512), param_value FLOAT,
  distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE (trial_id, param_name),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_values (
  trial_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, objective INTEGER NOT NULL,
  value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_value_id),
  UNIQUE (trial_id, objective), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_intermediate_values (
  trial_intermediate_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, step INTEGER NOT NULL,
  intermediate_value FLOAT, intermediate_value_type VARCHAR(7) NOT NULL,
  PRIMARY KEY (trial_intermediate_value_id), UNIQUE (trial_id, step),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_heartbeats (
  trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  heartbeat DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL, PRIMARY KEY (trial_heartbeat_id),
  UNIQUE (trial_id), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS sweep_numbers (
  study_id INTEGER NOT NULL PRIMARY KEY, next INTEGER NOT NULL,
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS sweep_coordinators (
  study_id INTEGER NOT NULL PRIMARY KEY, boot_id TEXT NOT NULL, pid INTEGER NOT NULL,
  pid_start INTEGER NOT NULL, FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS sweep_runs (
  trial_id INTEGER NOT NULL PRIMARY KEY, identity TEXT NOT NULL, run_name TEXT NOT NULL,
  settings TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0, host TEXT, boot_id TEXT,
  pid INTEGER, pid_start INTEGER, asked_bytes INTEGER NOT NULL DEFAULT 0,
  reserved_bytes INTEGER, peak_bytes INTEGER,
  exit_code INTEGER, reason TEXT, seconds REAL,
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE INDEX IF NOT EXISTS ix_sweep_runs_identity ON sweep_runs (identity);
PRAGMA user_version = 1;
)";

}  // namespace tare::sweep
