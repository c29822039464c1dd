// Makes run_data.csv from the run_data.json of each run.
#include "tare/furcate/run_table.h"

#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/search/value_text.h"
#include "tare/sweep/run_rows.h"

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

/// Returns the columns and fields of one run; none if the folder is not a run's.
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

std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + fields[i];
  return line + '\n';
}

}  // namespace

void RunTable::read_earlier() {
  if (std::exchange(has_read_earlier_, true)) return;
  for (sweep::RunRow& row : sweep::run_rows(log_dir_)) {
    earlier_names_.push_back(row.run);
    earlier_.emplace(row.run, std::move(row.fields));
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
