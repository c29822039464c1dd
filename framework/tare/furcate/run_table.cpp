// Makes run_data.csv from the run_data.json of each run.
#include "tare/furcate/run_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/search/value_text.h"
#include "tare/sweep/run_name.h"

namespace tare::furcate {
namespace {

using config::Node;
using nlohmann::ordered_json;

Node node_of(const ordered_json& json) {
  if (json.is_null()) return {};
  if (json.is_string()) return Node::string(json.get<std::string>());
  if (json.is_object()) {
    Node map = Node::map();
    for (const auto& [key, value] : json.items()) map.set(key, node_of(value));
    return map;
  }
  if (!json.is_array()) return Node::scalar(json.dump());
  std::vector<Node> items;
  for (const auto& item : json) items.push_back(node_of(item));
  return Node::sequence(std::move(items));
}

std::string field_of(const ordered_json& json) {
  if (json.is_null()) return "";
  const std::string text = search::python_text(node_of(json));
  return json.is_number() ? text : csv_text(text);
}

/// Returns the columns and fields of one run; none if the folder is no run's.
std::vector<std::pair<std::string, std::string>> row_of(ordered_json run) {
  std::vector<std::pair<std::string, std::string>> row;
  if (!run.is_object() || !run.contains("meta") || !run["meta"].is_object()) return row;
  const ordered_json data = run["meta"].value("data", ordered_json::object());
  run["meta"].erase("data");
  for (const auto& [key, value] : run.items()) row.emplace_back(csv_text(key), field_of(value));
  if (!data.is_object()) return row;
  for (const auto& [key, value] : data.items())
    row.emplace_back(csv_text("run_" + key), field_of(value));
  return row;
}

/// Splits a file after RFC 4180 into rows of fields as they are written, with their quotes.
std::vector<std::vector<std::string>> written_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(1);
  bool quoted = false;
  const auto end_row = [&] {
    if (row.back().ends_with('\r')) row.back().pop_back();
    rows.push_back(std::exchange(row, {""}));
  };
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted || (c != ',' && c != '\n')) {
      row.back() += c;
    } else if (c == ',') {
      row.emplace_back();
    } else {
      end_row();
    }
  }
  if (row != std::vector<std::string>{""}) end_row();
  return rows;
}

/// Returns the text of a field as it is written.
std::string text_of(const std::string& field) {
  if (field.size() < 2 || !field.starts_with('"')) return field;
  std::string text;
  for (size_t i = 1; i + 1 < field.size(); ++i) {
    text += field[i];
    if (field[i] == '"') ++i;  // it is there twice
  }
  return text;
}

std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + fields[i];
  return line + '\n';
}

}  // namespace

void RunTable::read_earlier() {
  if (std::exchange(has_read_earlier_, true)) return;
  const auto file = log_dir_ / "run_data.csv";
  if (!std::filesystem::exists(file)) return;
  const auto rows = written_rows(io::read_text(file));
  if (rows.empty()) return;
  const auto& columns = rows.front();
  const auto folder = std::ranges::find(columns, "log_dir");
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] == std::vector<std::string>{""}) continue;
    if (folder == columns.end() || rows[i].size() != columns.size()) {
      log::warning("row " + std::to_string(i) + " of '" + printable(file.string()) +
                   "' names no run in a column log_dir, or has fewer or more fields than the "
                   "header: the row is not kept");
      continue;
    }
    const auto at = static_cast<size_t>(folder - columns.begin());
    const std::string name = sweep::last_part(text_of(rows[i][at]));
    Row row;
    for (size_t j = 0; j < columns.size(); ++j) row.emplace_back(columns[j], rows[i][j]);
    if (!earlier_.contains(name)) earlier_names_.push_back(name);
    earlier_.insert_or_assign(name, std::move(row));
  }
}

std::vector<const RunTable::Row*> RunTable::rows_of(const std::vector<sweep::Trial>& ended) {
  std::vector<const Row*> rows;
  std::set<std::string> names;
  for (const sweep::Trial& trial : ended) {
    names.insert(trial.run_name);
    if (trial.state == search::TrialState::failed) continue;
    Row& row = rows_[trial.number];
    const auto file = log_dir_ / trial.run_name / "run_data.json";
    if (row.empty() && std::filesystem::exists(file))
      row = row_of(ordered_json::parse(io::read_text(file), nullptr, /*allow_exceptions=*/false));
    const auto earlier = earlier_.find(trial.run_name);
    if (!row.empty())
      rows.push_back(&row);
    else if (earlier != earlier_.end())
      rows.push_back(&earlier->second);
  }
  for (const std::string& name : earlier_names_)
    if (!names.contains(name)) rows.push_back(&earlier_.at(name));
  return rows;
}

std::string RunTable::text(const std::vector<sweep::Trial>& ended) {
  read_earlier();
  const auto rows = rows_of(ended);
  std::vector<std::string> header;
  std::unordered_map<std::string, size_t> columns;
  for (const Row* row : rows)
    for (const auto& [key, value] : *row)
      if (columns.try_emplace(key, header.size()).second) header.push_back(key);
  std::string text = line_of(header);
  for (const Row* row : rows) {
    std::vector<std::string> fields(header.size());
    for (const auto& [key, value] : *row) fields[columns.at(key)] = value;
    text += line_of(fields);
  }
  return text;
}

}  // namespace tare::furcate
