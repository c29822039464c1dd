// Prints predictions.
#include "tare/cli/predict_output.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <utility>

#include "tare/base/csv.h"
#include "tare/base/error.h"

namespace tare::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = 1000;  // of a path or an error that is printed

std::string text_of(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

/// Returns the fewest digits that give the number back.
std::string text_of(float value) {
  char number[64];
  return {number, std::to_chars(number, std::end(number), value).ptr};
}

std::string text_of(const OutputPlace& place) {
  std::string text = printable(place.path, kMostBytes);
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (place.number > 0) text += " output " + std::to_string(place.number);
  return text;
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace

PredictForm predict_form(const Arguments& arguments) {
  const std::array<std::pair<const char*, PredictForm>, 3> forms{
      {{"json", PredictForm::json},
       {"json-lines", PredictForm::json_lines},
       {"csv", PredictForm::csv}}};
  const char* given = nullptr;
  PredictForm form = PredictForm::text;
  for (const auto& [name, of_name] : forms) {
    if (!arguments.has(name)) continue;
    if (given)
      throw ConfigError("tare predict",
                        std::string("--") + given + " and --" + name + " exclude each other");
    given = name;
    form = of_name;
  }
  return form;
}

void PredictPrinter::put(const OutputPlace& place, const json& described) {
  json entry{{"path", place.path}};
  if (place.line > 0) entry["line"] = place.line;
  if (place.number > 0) entry["output"] = place.number;
  entry.update(described);
  if (form_ == PredictForm::json_lines)
    std::puts(text_of(entry, -1).c_str());
  else
    all_.push_back(std::move(entry));
}

void PredictPrinter::print_row(const OutputPlace& place, int64_t index, const std::string& label,
                               const std::string& value) {
  if (!std::exchange(has_header_, true)) std::puts("path,line,output,index,label,value");
  const std::string line = place.line > 0 ? std::to_string(place.line) : "",
                    output = place.number > 0 ? std::to_string(place.number) : "";
  std::printf("%s,%s,%s,%lld,%s,%s\n", csv_text(place.path).c_str(), line.c_str(), output.c_str(),
              static_cast<long long>(index), label.c_str(), value.c_str());
}

void PredictPrinter::add(const OutputPlace& place, const std::vector<Prediction>& classes) {
  json list = json::array();
  for (const Prediction& p : classes) {
    if (is_json())
      list.push_back({{"label", p.label}, {"index", p.index}, {"probability", p.probability}});
    else if (form_ == PredictForm::csv)
      print_row(place, p.index, csv_text(p.label), text_of(static_cast<float>(p.probability)));
    else
      std::printf("%s: %s %.4f\n", text_of(place).c_str(), printable(p.label).c_str(),
                  p.probability);
  }
  if (is_json()) put(place, {{"predictions", list}});
}

void PredictPrinter::add(const OutputPlace& place, const OutputValues& values) {
  if (is_json()) {
    json described{{"shape", values.shape}, {"values", values.values}};
    if (!values.names.empty()) described["targets"] = values.names;
    return put(place, described);
  }
  if (form_ == PredictForm::csv) {  // a row for each value, whose label is the name of its target
    for (size_t i = 0; i < values.values.size(); ++i)
      print_row(place, static_cast<int64_t>(i),
                values.names.empty() ? "" : csv_text(values.names[i]), text_of(values.values[i]));
    return;
  }
  std::string line = text_of(place) + ":";
  if (values.shape.size() > 1) line += " " + text_of(values.shape);  // in front of more than a list
  for (const float value : values.values) line += ' ' + text_of(value);
  std::puts(line.c_str());
}

void PredictPrinter::add_mask(const OutputPlace& place, const std::string& file) {
  if (is_json())
    put(place, {{"mask", file}});
  else if (form_ == PredictForm::csv)
    print_row(place, 0, "", csv_text(file));
  else
    std::printf("%s: %s\n", text_of(place).c_str(), printable(file, kMostBytes).c_str());
}

void PredictPrinter::add_failure(const OutputPlace& place, const std::string& error) {
  if (is_json()) put(place, {{"error", printable(error, kMostBytes)}});
}

void PredictPrinter::finish(bool lists) const {
  if (lists && form_ == PredictForm::json) std::puts(text_of(all_, 2).c_str());
  if (std::fflush(stdout) != 0) throw IoError("tare predict", "standard output", errno);
}

}  // namespace tare::cli
