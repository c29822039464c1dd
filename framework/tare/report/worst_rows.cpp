// Writes and reads the table of the rows that are predicted worst.
#include "tare/report/worst_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tare/base/csv.h"
#include "tare/base/error.h"

namespace tare::report {
namespace {

constexpr const char* kHeader = "row,target,predicted,loss";

/// Returns the shortest text that is read as the number, in float32 where that holds it.
std::string number_text(double value) {
  if (std::isnan(value)) return {};
  char text[32];
  const auto single = static_cast<float>(value);
  const bool fits = static_cast<double>(single) == value;
  const auto written = fits ? std::to_chars(text, text + sizeof text, single)
                            : std::to_chars(text, text + sizeof text, value);
  return {text, written.ptr};
}

}  // namespace

std::string csv_of(const std::vector<WorstRow>& rows) {
  const bool has_texts =
      std::ranges::any_of(rows, [](const WorstRow& row) { return !row.text.empty(); });
  std::string text = std::string(kHeader) + (has_texts ? ",text\n" : "\n");
  for (const WorstRow& row : rows)
    text += csv_field(row.name) + ',' + number_text(row.target) + ',' + number_text(row.predicted) +
            ',' + number_text(row.loss) + (has_texts ? ',' + csv_field(row.text) : "") + '\n';
  return text;
}

std::vector<WorstRow> read_worst_rows(const std::filesystem::path& file) {
  constexpr size_t kFields = 4;
  std::vector<WorstRow> rows;
  read_csv(file, [&](const std::vector<std::string>& fields, size_t line) {
    const auto refuse = [&](const char* problem) {
      throw FormatError("report.read_run", file.string(), "line " + std::to_string(line), problem);
    };
    if (fields.size() != kFields && fields.size() != kFields + 1)
      refuse("has neither four fields nor five");
    if (line == 1) return;
    const auto number = [&](const std::string& text) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (text.empty()) return value;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size())
        refuse("has text where a number should be");
      return value;
    };
    rows.push_back({.name = fields[0],
                    .target = number(fields[1]),
                    .predicted = number(fields[2]),
                    .loss = number(fields[3]),
                    .text = fields.size() > kFields ? fields[kFields] : ""});
  });
  return rows;
}

}  // namespace tare::report
