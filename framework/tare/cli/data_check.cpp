// Prints what a check of pictures has found.
#include "tare/cli/data_check.h"

#include <nlohmann/json.hpp>

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

json json_of(const std::vector<PictureFinding>& findings) {
  json list = json::array();
  for (const auto& [path, problem] : findings)
    list.push_back({{"path", path}, {"problem", problem}});
  return list;
}

json json_of(const LengthRange& range) {
  return {{"min", range.least}, {"median", range.median}, {"max", range.most}};
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
  text += format_count(check.pictures) + " pictures";
  if (check.pictures > 0) text += ": " + counts(check.formats) + "; " + counts(check.channels);
  const auto counted = [](size_t count, const std::string& what) {
    return format_count(static_cast<int64_t>(count)) + ' ' + what + (count == 1 ? "" : "s");
  };
  return text + "\n" + counted(check.problems.size(), "error") + ", " +
         counted(check.warnings.size(), "warning") + '\n';
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
                 {"problems", json_of(check.problems)},
                 {"warnings", json_of(check.warnings)}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tare::cli
