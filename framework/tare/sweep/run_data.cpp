#include "tare/sweep/run_data.h"

#include <algorithm>
#include <cmath>

#include "tare/base/csv.h"
#include "tare/config/scalar.h"
#include "tare/search/value_text.h"

namespace tare::sweep {
namespace {

/// A number as it is; text so that a spreadsheet takes it for text.
std::string field(const std::string& text) {
  constexpr size_t kLongest = size_t{16} << 10;  // whole, but for what no line has room for
  return config::as_number(text) ? text : csv_field(text, kLongest);
}

std::string line(const std::vector<std::string>& fields) {
  std::string text;
  for (const auto& f : fields) text += (&f == &fields.front() ? "" : ",") + field(f);
  return text + '\n';
}

}  // namespace

std::string run_data_text(const std::string& metric, const std::vector<Trial>& trials) {
  std::vector<std::string> keys;
  for (const Trial& trial : trials)
    for (const auto& [key, value] : trial.cell.values)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  std::vector<std::string> header{"trial", "name", "state"};
  header.insert(header.end(), keys.begin(), keys.end());
  for (const auto& column : {metric, std::string("peak_bytes"), std::string("seconds")})
    header.push_back("run_" + column);
  std::string text = line(header);
  for (const Trial& trial : trials) {
    std::vector<std::string> row{std::to_string(trial.number), trial.run_name,
                                 to_string(trial.state)};
    for (const auto& key : keys) {
      const auto* value = trial.cell.find(key);
      row.push_back(value ? search::python_text(*value) : "");
    }
    row.push_back(std::isnan(trial.value) ? "" : config::number_text(trial.value));
    row.push_back(trial.peak_bytes > 0 ? std::to_string(trial.peak_bytes) : "");
    row.push_back(config::number_text(trial.seconds));
    text += line(row);
  }
  return text;
}

}  // namespace tare::sweep
