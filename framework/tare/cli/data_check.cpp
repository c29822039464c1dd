// Prints what a check of pictures, texts, a table or arrays has found.
#include "tare/cli/data_check.h"

#include <c10/util/ArrayRef.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/table.h"

namespace tare::cli {
namespace {

using nlohmann::json;

std::string counts(const std::map<std::string, int64_t>& by_name) {
  std::string text;
  for (const auto& [name, count] : by_name)
    text += (text.empty() ? "" : ", ") + format_count(count) + " " + name;
  return text;
}

TableRow row_of(const char* side, const LengthRange& range) {
  return {side, std::to_string(range.least), std::to_string(range.median),
          std::to_string(range.most)};
}

std::string table_of_classes(const PictureCheck& check, size_t width) {
  const bool splits = !check.classes.empty() && !check.classes.front().split.empty();
  std::vector<TableColumn> columns{{.head = "class"}, {.head = "pictures", .figure = true}};
  if (splits) columns.insert(columns.begin(), {.head = "split"});
  std::vector<TableRow> rows;
  for (const PictureClass& one : check.classes) {
    rows.push_back({one.name.empty() ? "(none)" : printable(one.name), format_count(one.pictures)});
    if (splits) rows.back().insert(rows.back().begin(), one.split);
  }
  return text_table(columns, rows, width);
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string table_of_targets(const PictureCheck& check, size_t width) {
  std::vector<TableRow> rows;
  for (const TargetRange& target : check.targets)
    rows.push_back(
        {printable(target.name), figure(target.least), figure(target.mean), figure(target.most)});
  return text_table({{.head = "target"},
                     {.head = "min", .figure = true},
                     {.head = "mean", .figure = true},
                     {.head = "max", .figure = true}},
                    rows, width);
}

json json_of(const std::vector<TargetRange>& targets) {
  json list = json::array();
  for (const auto& [name, least, mean, most] : targets)
    list.push_back({{"name", name}, {"min", least}, {"mean", mean}, {"max", most}});
  return list;
}

/// Returns a row for each kind of files that are skipped.
std::string table_of_skipped(const PictureCheck& check, size_t width) {
  std::vector<TableRow> rows;
  for (const auto& [extension, kind] : check.skipped) {
    std::string first;
    for (const std::string& name : kind.first)
      first += (first.empty() ? "" : ", ") + printable(name);
    if (kind.files > static_cast<int64_t>(kind.first.size())) first += ", ...";
    rows.push_back({extension.empty() ? "(none)" : printable(extension), format_count(kind.files),
                    std::move(first)});
  }
  return text_table({{.head = "skipped"},
                     {.head = "files", .figure = true},
                     {.head = "of another kind than pictures", .whole = true}},
                    rows, width);
}

json json_of(const std::map<std::string, SkippedFiles>& skipped) {
  json list = json::array();
  for (const auto& [extension, kind] : skipped)
    list.push_back({{"extension", extension}, {"files", kind.files}, {"first", kind.first}});
  return list;
}

json json_of(const std::vector<PictureFinding>& findings) {
  json list = json::array();
  for (const auto& [path, problem] : findings)
    list.push_back({{"path", path}, {"problem", problem}});
  return list;
}

json json_of(const LengthRange& range) {
  return {{"min", range.least}, {"median", range.median}, {"max", range.most}};
}

std::string counted(int64_t count, const std::string& what) {
  return format_count(count) + ' ' + what + (count == 1 ? "" : "s");
}

/// Returns a line for each finding, with its file where the findings are in several, or are about
/// the file as a whole.
std::string lines_of(const char* word, const TableFindings& findings) {
  const auto first = std::ranges::find_if(
      findings.list, [](const TableFinding& finding) { return !finding.path.empty(); });
  const bool several = std::ranges::any_of(first, findings.list.end(), [&](const auto& finding) {
    return !finding.path.empty() && finding.path != first->path;
  });
  std::string text;
  for (const TableFinding& finding : findings.list) {
    const bool named = several || (finding.line == 0 && finding.column.empty());
    const std::string file = named && !finding.path.empty() ? printable(finding.path) + ": " : "";
    text += word + (": " + file + printable(tare::text_of(finding), 2000)) + '\n';
  }
  const auto kept = static_cast<int64_t>(findings.list.size());
  if (findings.count > kept)
    text += word + (": the first " + format_count(kept) + " of " + format_count(findings.count)) +
            " are listed\n";
  return text;
}

/// Whether an array has an element that is finite.
bool has_figures(const NpyCheck& array) {
  int64_t elements = array.shape.empty() ? 0 : 1;
  for (const int64_t size : array.shape) elements *= size;
  return elements > array.not_finite;
}

json json_of(const TableFindings& findings) {
  json list = json::array();
  for (const TableFinding& finding : findings.list)
    list.push_back({{"file", finding.path.empty() ? json() : json(finding.path)},
                    {"line", finding.line > 0 ? json(finding.line) : json()},
                    {"column", finding.column.empty() ? json() : json(finding.column)},
                    {"problem", finding.problem}});
  return list;
}

}  // namespace

std::string text_of(const PictureCheck& check, size_t width) {
  std::string text;
  for (const auto& [path, problem] : check.problems)
    text += "error: " + printable(path) + ": " + printable(problem, 2000) + '\n';
  for (const auto& [path, problem] : check.warnings)
    text += "warning: " + printable(path) + ": " + printable(problem, 2000) + '\n';
  if (!text.empty()) text += '\n';
  text += table_of_classes(check, width) + '\n';
  if (check.pictures > 0)
    text += text_table({{.head = "pixels"},
                        {.head = "min", .figure = true},
                        {.head = "median", .figure = true},
                        {.head = "max", .figure = true}},
                       {row_of("height", check.height), row_of("width", check.width)}, width) +
            '\n';
  if (!check.targets.empty()) text += table_of_targets(check, width) + '\n';
  if (!check.skipped.empty()) text += table_of_skipped(check, width) + '\n';
  text += format_count(check.pictures) + " pictures";
  if (check.pictures > 0) text += ": " + counts(check.formats) + "; " + counts(check.channels);
  return text + "\n" + counted(std::ssize(check.problems), "error") + ", " +
         counted(std::ssize(check.warnings), "warning") + '\n';
}

std::string json_of(const PictureCheck& check, const std::string& folder) {
  json classes = json::array();
  for (const PictureClass& one : check.classes)
    classes.push_back({{"split", one.split}, {"name", one.name}, {"pictures", one.pictures}});
  const json all{{"folder", folder},
                 {"pictures", check.pictures},
                 {"classes", classes},
                 {"formats", check.formats},
                 {"channels", check.channels},
                 {"height", json_of(check.height)},
                 {"width", json_of(check.width)},
                 {"targets", json_of(check.targets)},
                 {"skipped", json_of(check.skipped)},
                 {"problems", json_of(check.problems)},
                 {"warnings", json_of(check.warnings)}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string text_of(const TableCheck& check, size_t width) {
  std::string text = lines_of("error", check.problems) + lines_of("warning", check.warnings);
  if (!text.empty()) text += '\n';
  std::vector<TableRow> rows;
  for (const CheckedColumn& column : check.columns) {
    const bool number = column.kind == "number" || column.kind == "label";
    rows.push_back({printable(column.name), column.kind + (column.target ? ", target" : ""),
                    format_count(column.missing), format_count(column.different),
                    number ? figure(column.least) : "", number ? figure(column.mean) : "",
                    number ? figure(column.most) : ""});
  }
  text += text_table({{.head = "column"},
                      {.head = "kind"},
                      {.head = "missing", .figure = true},
                      {.head = "different", .figure = true},
                      {.head = "min", .figure = true},
                      {.head = "mean", .figure = true},
                      {.head = "max", .figure = true}},
                     rows, width) +
          '\n';
  constexpr size_t kShown = 20;
  text += counted(check.rows, "row");
  if (!check.classes.empty())
    text +=
        "; " + std::to_string(check.classes.size()) + " classes: " + listed(check.classes, kShown);
  return text + '\n' + counted(check.problems.count, "error") + ", " +
         counted(check.warnings.count, "warning") + '\n';
}

namespace {

/// Returns what a model cannot learn from such classes; empty: there are enough of them.
std::string class_warning(const TextCheck& check) {
  if (check.classes.size() > 1 || check.problems.count > 0) return {};
  return std::string("a model learns nothing from texts of ") +
         (check.classes.empty() ? "no class" : "one class");
}

}  // namespace

std::string text_of(const TextCheck& check, const std::string& name,
                    const std::string& description) {
  constexpr size_t kShown = 20;
  std::string text = lines_of("error", check.problems);
  if (!text.empty()) text += '\n';
  text += name + ": " +
          (description.empty() ? counted(check.texts, "text") : printable(description, 2000)) +
          '\n';
  std::vector<std::string> classes;
  for (const TextClass& one : check.classes)
    classes.push_back(format_count(one.texts) + ' ' + one.name);
  if (!classes.empty())
    text += std::to_string(classes.size()) + (classes.size() == 1 ? " class: " : " classes: ") +
            listed(classes, kShown) + '\n';
  const std::string warning = class_warning(check);
  if (!warning.empty()) text += "warning: " + warning + '\n';
  return text + counted(check.problems.count, "error") + ", " +
         counted(warning.empty() ? 0 : 1, "warning") + '\n';
}

std::string json_of(const TextCheck& check, const std::string& description) {
  json classes = json::array(), warnings = json::array();
  for (const TextClass& one : check.classes)
    classes.push_back({{"name", one.name}, {"texts", one.texts}});
  if (const std::string warning = class_warning(check); !warning.empty())
    warnings.push_back(
        {{"file", json()}, {"line", json()}, {"column", json()}, {"problem", warning}});
  const json all{{"data", description.empty() ? json() : json(description)},
                 {"texts", check.texts},
                 {"classes", classes},
                 {"problems", json_of(check.problems)},
                 {"problem_count", check.problems.count},
                 {"warnings", warnings}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string text_of(const std::vector<NpyCheck>& arrays, const std::string& description,
                    size_t width) {
  std::string text;
  std::vector<TableRow> rows;
  int64_t problems = 0, warnings = 0;
  const auto add = [&](const char* kind, int64_t& count, const NpyCheck& array,
                       const std::string& finding) {
    if (finding.empty()) return;
    ++count;
    text += kind + (": " + printable(array.file.string())) + ": " + finding + '\n';
  };
  for (const NpyCheck& array : arrays) {
    add("error", problems, array, array.problem);
    add("warning", warnings, array, array.warning);
    const bool any = has_figures(array);
    rows.push_back({printable(array.file.string()), array.dtype,
                    c10::str(c10::IntArrayRef(array.shape)), format_count(array.not_finite),
                    any ? figure(array.least) : "", any ? figure(array.mean) : "",
                    any ? figure(array.most) : ""});
  }
  if (!text.empty()) text += '\n';
  return text +
         text_table({{.head = "array"},
                     {.head = "dtype"},
                     {.head = "shape"},
                     {.head = "not finite", .figure = true},
                     {.head = "min", .figure = true},
                     {.head = "mean", .figure = true},
                     {.head = "max", .figure = true}},
                    rows, width) +
         '\n' + (description.empty() ? "" : printable(description, 2000) + '\n') +
         counted(problems, "error") + ", " + counted(warnings, "warning") + "\n";
}

std::string json_of(const std::vector<NpyCheck>& arrays, const std::string& description) {
  json list = json::array(), problems = json::array(), warnings = json::array();
  for (const NpyCheck& array : arrays) {
    const auto value = [&](double figure) { return has_figures(array) ? json(figure) : json(); };
    list.push_back(
        {{"file", array.file.string()},
         {"dtype", array.dtype},
         {"shape", array.shape},
         {"not_finite", array.not_finite},
         {"first_not_finite", array.not_finite > 0 ? json(array.first_not_finite) : json()},
         {"min", value(array.least)},
         {"mean", value(array.mean)},
         {"max", value(array.most)}});
    if (!array.problem.empty())
      problems.push_back({{"file", array.file.string()}, {"problem", array.problem}});
    if (!array.warning.empty())
      warnings.push_back({{"file", array.file.string()}, {"problem", array.warning}});
  }
  const json all{{"data", description.empty() ? json() : json(description)},
                 {"arrays", list},
                 {"problem_count", problems.size()},
                 {"problems", problems},
                 {"warnings", warnings}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string json_of(const std::string& description) {
  return json{{"data", description}, {"problem_count", 0}}.dump(2, ' ', false,
                                                                json::error_handler_t::replace) +
         "\n";
}

std::string json_of(const TableCheck& check, const std::string& file) {
  json columns = json::array();
  for (const CheckedColumn& column : check.columns) {
    const auto value = [&](double figure) {
      return column.kind == "number" || column.kind == "label" ? json(figure) : json();
    };
    columns.push_back({{"name", column.name},
                       {"kind", column.kind},
                       {"target", column.target},
                       {"missing", column.missing},
                       {"different", column.different},
                       {"min", value(column.least)},
                       {"mean", value(column.mean)},
                       {"max", value(column.most)}});
  }
  const json all{{"file", file},
                 {"rows", check.rows},
                 {"columns", columns},
                 {"classes", check.classes},
                 {"problems", json_of(check.problems)},
                 {"problem_count", check.problems.count},
                 {"warnings", json_of(check.warnings)}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tare::cli
