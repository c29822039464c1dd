// Reads CSV files and JSON lines as fields of text.
#include "tare/transform/table_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/utf8.h"
#include "tare/config/scalar.h"
#include "tare/transform/piped_table.h"

namespace tare {
namespace {

using nlohmann::json;

constexpr const char* kWhere = "data.table";
constexpr const char* kStandardInput = "/dev/stdin";
constexpr std::string_view kMark = "\xEF\xBB\xBF";
constexpr std::string_view kBlanks = " \t\r";

std::string line_text(int64_t line) { return "line " + std::to_string(line); }

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// Returns the separator that a head has most, outside of quotes.
char separator_of(std::string_view text) {
  std::map<char, int64_t> counts{{',', 0}, {';', 0}, {'\t', 0}};
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    if (const auto found = counts.find(c); found != counts.end()) ++found->second;
  }
  char best = ',';
  for (const auto& [c, count] : counts)
    if (count > counts[best]) best = c;
  return best;
}

std::string text_of(const json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_float()) return config::number_text(value.get<double>());
  return value.dump();
}

/// Begins the files of a kind that people give in place of a table.
struct Beginning {
  std::string_view bytes{};
  const char* problem = "";
};

/// Whether the first file of a ZIP archive is an array of NumPy, as in a .npz file.
bool is_numpy_archive(std::string_view bytes) {
  constexpr size_t kLengthAt = 26, kNameAt = 30;  // of a file's name, in the head before the file
  if (!bytes.starts_with("PK\x03\x04") || bytes.size() < kNameAt) return false;
  const auto byte = [&](size_t at) {
    return static_cast<size_t>(static_cast<unsigned char>(bytes[at]));
  };
  return bytes.substr(kNameAt, byte(kLengthAt) + 256 * byte(kLengthAt + 1)).ends_with(".npy");
}

/// Returns the number of a line that JSON does not have, such as NaN, outside of its texts; empty:
/// there is none.
std::string_view no_json_number(std::string_view line) {
  bool quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    if (quoted && line[at] == '\\')
      ++at;
    else if (line[at] == '"')
      quoted = !quoted;
    for (const std::string_view name : {"NaN", "-Infinity", "Infinity"})
      if (!quoted && at < line.size() && line.substr(at).starts_with(name)) return name;
  }
  return {};
}

/// Returns what to do about a line or a file that is no JSON because of a number such as NaN;
/// empty: that is not the reason.
std::string number_problem(std::string_view text) {
  const std::string_view number = no_json_number(text);
  if (number.empty()) return {};
  return "has " + std::string(number) +
         ", which JSON does not have: write null for a missing value";
}

/// Whether a text begins as JSON objects do, alone or in an array.
bool begins_as_json(std::string_view text) {
  constexpr std::string_view kAnyBlanks = " \t\r\n";
  const auto skip_blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kAnyBlanks), text.size()));
  };
  skip_blanks();
  if (text.starts_with('[')) {
    text.remove_prefix(1);
    skip_blanks();
  }
  if (!text.starts_with('{')) return false;
  text.remove_prefix(1);
  skip_blanks();
  return text.starts_with('"') || text.starts_with('}');
}

/// Returns the start of a text for a message.
std::string start_of(std::string_view text) {
  constexpr size_t kShown = 40;
  return printable(trimmed(text.substr(0, text.find('\n'))), kShown);
}

/// Returns why the bytes of a file are no text in UTF-8; empty: they may be.
std::string why_no_text(std::string_view bytes) {
  using std::string_view_literals::operator""sv;
  static constexpr Beginning kKnown[]{
      {"\xFF\xFE"sv, "is UTF-16: save it as UTF-8 (in Excel: CSV UTF-8)"},
      {"\xFE\xFF"sv, "is UTF-16: save it as UTF-8 (in Excel: CSV UTF-8)"},
      {"\x89PNG"sv, "is a PNG picture: the data sets image_folder and image_list read pictures"},
      {"\xFF\xD8\xFF"sv,
       "is a JPEG picture: the data sets image_folder and image_list read pictures"},
      {"PK\x03\x04"sv, "is a ZIP file, such as a workbook of Excel: save the sheet as CSV UTF-8"},
      {"\xD0\xCF\x11\xE0"sv, "is a document of Office: save the sheet as CSV UTF-8"},
      {"\x1F\x8B"sv, "is compressed by gzip: decompress it"},
      {"PAR1"sv, "is a Parquet file: write it as CSV, with to_csv() of pandas for example"},
      {"\x93NUMPY"sv, "is an array of NumPy, which the data set npy reads"},
      {"%PDF-"sv, "is a PDF document: write the table as CSV"}};
  if (is_numpy_archive(bytes))
    return "is an archive of arrays of NumPy: save one of them alone, by numpy.save('x.npy', "
           "numpy.load('x.npz')['NAME']); the data set npy reads it";
  for (const Beginning& known : kKnown)
    if (bytes.starts_with(known.bytes)) return known.problem;
  if (bytes.find('\0') != std::string_view::npos)
    return "holds a zero byte, so it is no text in UTF-8: save the table as CSV in UTF-8";
  if (bytes.find('\r') != std::string_view::npos && bytes.find('\n') == std::string_view::npos)
    return "ends its lines with \\r alone: save it with line ends of \\n or \\r\\n";
  return {};
}

}  // namespace

void TableFindings::add(TableFinding finding) {
  ++count;
  if (list.size() < kKept) list.push_back(std::move(finding));
}

std::string text_of(const TableFinding& finding) {
  std::string text = finding.line > 0 ? line_text(finding.line) : "";
  if (!finding.column.empty())
    text += (text.empty() ? "" : ", ") + ("column '" + printable(finding.column) + "'");
  return text + (text.empty() ? "" : " ") + finding.problem;
}

/// Fills a TableText.
class TableReader {
 public:
  TableReader(const std::filesystem::path& path, const TableFormat& format, TableFindings* findings)
      : format_(format), findings_(findings) {
    table_.path_ = path.string();
    const std::string text = io::read_text(path == "-" ? kStandardInput : path, format.limit_bytes);
    table_.bytes_.assign(text.begin(), text.end());
  }
  TableReader(std::string_view text, const std::string& path, const TableFormat& format,
              TableFindings* findings)
      : format_(format), findings_(findings) {
    table_.path_ = path;
    table_.bytes_.assign(text.begin(), text.end());
  }

  TableText read() {
    const std::string problem = why_no_text({begin(), size()});
    if (!problem.empty()) fail("the file", problem);
    const auto extension = std::filesystem::path(table_.path_).extension();
    if (std::string_view(begin(), size()).starts_with(kMark)) at_ = kMark.size();
    const size_t first = std::string_view(begin(), size()).find_first_not_of(" \t\r\n", at_);
    const char start = first == std::string_view::npos ? '\0' : begin()[first];
    const bool piped = table_.path_ == "-" && (start == '{' || start == '[');
    const bool lines = format_.kind.empty() ? piped || extension == ".jsonl" ||
                                                  extension == ".ndjson" || extension == ".json"
                                            : format_.kind == "jsonl";
    check_kind(lines, first);
    if (lines && start == '[') split_array();
    lines ? read_objects() : read_records();
    if (table_.names_.empty() && findings_ && findings_->count > 0)  // no line could be read
      fail(line_text(findings_->list.front().line), findings_->list.front().problem);
    if (table_.names_.empty()) fail("head", "names no column: the file is empty");
    if (table_.lines_.empty() && (!findings_ || findings_->count == 0))
      fail("rows", "are missing: the file has no line behind its head");
    return std::move(table_);
  }

 private:
  [[nodiscard]] char* begin() { return table_.bytes_.data(); }
  [[nodiscard]] size_t size() const { return table_.bytes_.size(); }

  [[noreturn]] void fail(const std::string& part, const std::string& problem) const {
    throw FormatError(kWhere, table_.path_, part, problem);
  }
  void find(int64_t line, const std::string& problem) {
    if (!findings_) fail(line_text(line), problem);
    findings_->add({.path = table_.path_, .line = line, .problem = problem});
  }

  /// Throws FormatError for JSON that is read as CSV, and for a file without a line of JSON that is
  /// read as such.
  void check_kind(bool lines, size_t first) {
    if (first == std::string_view::npos) return;
    const std::string_view text = std::string_view(begin(), size()).substr(first);
    const bool by_name = format_.kind.empty() && table_.path_ != "-";
    if (!lines && begins_as_json(text))
      fail("the file", std::string("holds JSON and no CSV: the data set jsonl reads it") +
                           (by_name ? ", and its name must end in .jsonl or .json" : ""));
    const bool has_json = text.starts_with('{') || text.starts_with('[') ||
                          text.find("\n{") != std::string_view::npos;
    if (lines && !has_json)
      fail("the file", "begins with '" + start_of(text) +
                           "', which is no JSON object: the data set csv reads a table with "
                           "separators" +
                           (by_name ? ", and its name must end in .csv" : ""));
  }

  void set_names(std::vector<std::string> names) {
    std::set<std::string> seen;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty())
        fail("head", "has no name for column " + std::to_string(i + 1) +
                         ": give each column a name of its own");
      if (!seen.insert(names[i]).second)
        fail("head", "has the name '" + printable(names[i]) +
                         "' twice: give each column a name of its own");
    }
    table_.names_ = std::move(names);
  }

  /// Reads the fields of a record, which it unquotes in place, and moves behind its end. Returns
  /// whether the record could be read.
  bool next_record(char separator, std::vector<std::string_view>& fields) {
    fields.clear();
    const int64_t first = line_;
    std::string problem;
    bool ends = false;
    while (!ends) {
      while (at_ < size() && begin()[at_] == ' ') ++at_;
      char* const start = begin() + at_;
      char* out = start;
      const bool quoted = at_ < size() && begin()[at_] == '"';
      if (quoted) out = unquote(problem, out);
      char* const text_end = out;
      for (; at_ < size() && begin()[at_] != separator && begin()[at_] != '\n'; ++at_)
        *out++ = begin()[at_];
      const std::string_view rest(text_end, static_cast<size_t>(out - text_end));
      if (quoted && !trimmed(rest).empty() && problem.empty())
        problem = "has text behind the quote that ends a field: double a quote inside of a field";
      const std::string_view all(start, static_cast<size_t>((quoted ? text_end : out) - start));
      fields.push_back(quoted ? all : trimmed(all));
      ends = at_ >= size() || begin()[at_] == '\n';
      ++at_;
    }
    ++line_;
    for (const std::string_view field : fields)
      if (!is_utf8(field) && problem.empty()) problem = "is no UTF-8: save the file as UTF-8";
    if (!problem.empty()) find(first, problem);
    return problem.empty();
  }

  /// Copies a quoted field to `out`, at_ being at its first quote, and returns the end of the copy.
  /// Sets the problem of the record where no quote ends the field.
  char* unquote(std::string& problem, char* out) {
    for (++at_;; ++at_) {
      if (at_ >= size()) {
        problem = "has a quote that is not closed";
        return out;
      }
      const char c = begin()[at_];
      if (c == '"') {
        if (at_ + 1 >= size() || begin()[at_ + 1] != '"') break;
        ++at_;
      }
      if (c == '\n') ++line_;
      *out++ = c;
    }
    ++at_;
    return out;
  }

  void read_records() {
    const std::string given = format_.separator == "\\t" ? "\t" : format_.separator;
    if (given.size() > 1)
      throw ConfigError(kWhere, "separator", "must be one character",
                        ", or ; or | or \\t for a tab", given);
    const char separator =
        given.empty() ? separator_of({begin() + at_, size() - at_}) : given.front();
    std::vector<std::string_view> fields;
    for (bool named = false; at_ < size();) {
      const int64_t line = line_;
      const size_t start = std::string_view(begin(), size()).find_first_not_of(' ', at_);
      const bool is_quoted = start < size() && begin()[start] == '"';
      const bool is_read = next_record(separator, fields);
      if (fields.size() == 1 && fields.front().empty() && !is_quoted) continue;
      if (!named) {
        if (!is_read) fail("head", "cannot be read");
        std::vector<std::string> names(fields.begin(), fields.end());
        if (!format_.header)
          for (size_t i = 0; i < names.size(); ++i) names[i] = "column" + std::to_string(i + 1);
        set_names(std::move(names));
        named = true;
        if (format_.header) continue;
      }
      if (is_read) add_row(line, fields);
    }
  }

  void add_row(int64_t line, const std::vector<std::string_view>& fields) {
    const size_t wanted = table_.names_.size(), have = fields.size();
    if (have != wanted)
      return find(line, "has " + std::to_string(have) + (have == 1 ? " field" : " fields") +
                            ", and the head has " + std::to_string(wanted));
    table_.fields_.insert(table_.fields_.end(), fields.begin(), fields.end());
    table_.lines_.push_back(line);
  }

  /// Brings the elements of a JSON array to lines.
  void split_array() {
    constexpr int kDeepest = 2;  // a list in an object is refused, whatever is in the list
    using Json = nlohmann::ordered_json;
    const auto array = Json::parse(
        begin() + at_, begin() + size(),
        [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; },
        /*allow_exceptions=*/false);
    if (!array.is_array())
      fail("the file", "begins as a JSON array, but is none: " + why_no_array());
    std::string lines;
    for (const auto& element : array) lines += element.dump() + '\n';
    table_.bytes_.assign(lines.begin(), lines.end());
    at_ = 0;
  }

  [[nodiscard]] std::string why_no_array() {
    const std::string problem = number_problem({begin() + at_, size() - at_});
    return problem.empty() ? "write [{...}, {...}]" : "it " + problem;
  }

  /// Reads a JSON object from each line. The names are those of all lines, in order.
  void read_objects() {
    using Json = nlohmann::ordered_json;
    struct Line {
      int64_t number = 0;
      Json object{};
    };
    std::vector<Line> objects;
    std::vector<std::string> names;
    std::set<std::string> seen;
    for (; at_ < size(); ++line_) {
      const std::string_view all(begin() + at_, size() - at_);
      const std::string_view line = trimmed(all.substr(0, all.find('\n')));
      at_ += std::min(all.find('\n'), all.size() - 1) + 1;
      if (line.empty()) continue;
      std::set<std::string> keys;
      std::string twice;
      const auto see = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth == 1 && event == Json::parse_event_t::key) {
          const auto name = parsed.get<std::string>();
          if (!keys.insert(name).second) twice = name;
        }
        return depth <= 1;  // a list in an object is refused, whatever is in the list
      };
      auto object = Json::parse(line, see, /*allow_exceptions=*/false);
      if (!object.is_object()) {
        const std::string problem = number_problem(line);
        find(line_, problem.empty() ? "is no JSON object: write one object a line" : problem);
        continue;
      }
      if (!twice.empty()) {
        find(line_, "has the key '" + printable(twice) + "' twice: remove one");
        continue;
      }
      std::string nested;
      for (const auto& [name, value] : object.items())
        if (value.is_structured()) nested = name;
      if (!nested.empty()) {
        find(line_, "has a list or an object as '" + printable(nested) +
                        "': a field is a text, a number, true, false or null");
        continue;
      }
      for (const auto& [name, value] : object.items())
        if (seen.insert(name).second) names.push_back(name);
      objects.push_back({line_, std::move(object)});
    }
    set_names(std::move(names));
    // The texts lie behind one another in one piece, so that the views stay valid.
    std::vector<size_t> ends;
    std::vector<char> bytes;
    for (const auto& [number, object] : objects) {
      for (const std::string& name : table_.names_) {
        const auto field = object.find(name);
        const std::string text = field == object.end() ? "" : text_of(json(*field));
        bytes.insert(bytes.end(), text.begin(), text.end());
        ends.push_back(bytes.size());
      }
      table_.lines_.push_back(number);
    }
    table_.bytes_ = std::move(bytes);
    size_t start = 0;
    for (const size_t end : ends) {
      table_.fields_.emplace_back(table_.bytes_.data() + start, end - start);
      start = end;
    }
  }

  TableFormat format_;
  TableFindings* findings_;
  TableText table_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

TableText read_table(const std::filesystem::path& path, const TableFormat& format,
                     TableFindings* findings) {
  return TableReader(path, format, findings).read();
}

TableText table_in(std::string_view text, const std::string& path, const TableFormat& format,
                   TableFindings* findings) {
  return TableReader(text, path, format, findings).read();
}

}  // namespace tare
