// Quotes fields for CSV files, and splits their lines.
#include "tare/base/csv.h"

#include <charconv>

#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

constexpr size_t kLongestLine = 1 << 16;

/// Splits a line into `fields`; false if a quote is not closed.
bool split(std::string_view line, std::vector<std::string>& fields) {
  size_t count = 0;
  const auto next = [&]() -> std::string& {
    if (count == fields.size()) fields.emplace_back();
    fields[count].clear();
    return fields[count++];
  };
  std::string* field = &next();
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      *field += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      field = &next();
    } else {
      *field += c;
    }
  }
  fields.resize(count);
  return !quoted;
}

/// Whether a spreadsheet would take the text for a formula. It takes +1 or -0.5 for the number.
bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@").find(text[0]) == std::string_view::npos)
    return false;
  if (text[0] == '=' || text[0] == '@') return true;
  text.remove_prefix(1);
  const bool may_be_number = text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !may_be_number || text.starts_with('-') || end != text.data() + text.size() ||
         error == std::errc::invalid_argument;
}

/// Returns the text, quoted if it has one of `special`.
std::string guarded(std::string text, const char* special) {
  if (is_formula(text)) text.insert(0, "'");
  if (text.find_first_of(special) == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

[[noreturn]] void refuse(const std::filesystem::path& path, size_t line, const char* problem) {
  throw FormatError("csv.read", path.string(), "line " + std::to_string(line), problem);
}

}  // namespace

std::string csv_field(std::string_view text, size_t limit) {
  return guarded(printable(text, limit), ",\"");
}

std::string csv_text(std::string_view text) { return guarded(std::string(text), ",\"\r\n"); }

void read_csv(const std::filesystem::path& path,
              const std::function<void(const std::vector<std::string>& fields, size_t line)>& row) {
  io::File file(path, io::Mode::read);
  std::vector<std::string> fields;
  std::string rest, piece(kLongestLine, '\0');
  size_t number = 0;
  const auto take = [&](std::string_view line) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > kLongestLine) refuse(path, number, "is longer than 64 KiB");
    if (line.empty()) return;
    if (!split(line, fields)) refuse(path, number, "has a quote that is not closed");
    row(fields, number);
  };
  while (const size_t size = file.read(piece.data(), piece.size())) {
    rest.append(piece, 0, size);
    size_t start = 0;
    for (size_t end; (end = rest.find('\n', start)) != std::string::npos; start = end + 1)
      take(std::string_view(rest).substr(start, end - start));
    rest.erase(0, start);
    if (rest.size() > kLongestLine) refuse(path, number + 1, "is longer than 64 KiB");
  }
  if (!rest.empty()) take(rest);
}

}  // namespace tare
