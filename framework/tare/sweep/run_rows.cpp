// Reads the rows of a run_data.csv.
#include "tare/sweep/run_rows.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/sweep/run_name.h"

namespace tare::sweep {
namespace {

struct Record {
  std::vector<std::string> fields{};  // as written
  bool closed = true;                 // each quote is
};

/// Splits a text after RFC 4180 into records; empty lines are none.
std::vector<Record> records_of(std::string_view text) {
  std::vector<Record> records;
  std::vector<std::string> fields(1);
  bool quoted = false;
  const auto end_record = [&] {
    if (!quoted && fields.back().ends_with('\r')) fields.back().pop_back();
    const bool empty = fields.size() == 1 && fields.front().empty();
    if (!empty) records.push_back({.fields = fields, .closed = !quoted});
    fields.assign(1, "");
  };
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted || (c != ',' && c != '\n')) {
      fields.back() += c;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      end_record();
    }
  }
  end_record();
  return records;
}

RunRow row_of(const std::vector<std::string>& columns, const std::vector<std::string>& fields) {
  RunRow row;
  std::string folder, name;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == "log_dir") folder = last_part(text_of_field(fields[i]));
    if (columns[i] == "name") name = text_of_field(fields[i]);
    row.fields.emplace_back(columns[i], fields[i]);
  }
  row.run = folder.empty() ? name : folder;
  return row;
}

/// Returns why a record is no row; empty if it is one.
std::string problem_of(const Record& record, size_t columns) {
  if (!record.closed) return "has a quote that is not closed";
  if (record.fields.size() != columns)
    return "has " + std::to_string(record.fields.size()) + " fields, and the header has " +
           std::to_string(columns);
  return {};
}

}  // namespace

std::vector<RunRow> run_rows(const std::filesystem::path& folder) {
  const auto file = folder / "run_data.csv";
  std::vector<RunRow> rows;
  if (!std::filesystem::exists(file)) return rows;
  const auto warn = [&](size_t record, const std::string& problem) {
    log::warning((record == 0 ? "the header" : "row " + std::to_string(record)) + " of '" +
                 printable(file.string()) + "' " + problem);
  };
  const std::vector<Record> records = records_of(io::read_text(file));
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < records.size(); ++i) {
    const auto& columns = records.front().fields;
    if (const auto problem = problem_of(records[i], columns.size()); !problem.empty()) {
      warn(i, problem + ": it is ignored");
      continue;
    }
    if (i == 0) continue;
    RunRow row = row_of(columns, records[i].fields);
    if (row.run.empty()) {
      warn(i, "names no run in a column log_dir or name: it is skipped");
      continue;
    }
    const auto [place, is_new] = places.emplace(row.run, rows.size());
    if (is_new) {
      rows.push_back(std::move(row));
    } else {
      warn(i, "is not the first one of the run '" + printable(row.run) + "': the last one counts");
      rows[place->second] = std::move(row);
    }
  }
  return rows;
}

std::string text_of_field(const std::string& written) {
  if (written.size() < 2 || !written.starts_with('"')) return written;
  std::string text;
  for (size_t i = 1; i + 1 < written.size(); ++i) {
    text += written[i];
    if (written[i] == '"') ++i;  // it is there twice
  }
  return text;
}

}  // namespace tare::sweep
