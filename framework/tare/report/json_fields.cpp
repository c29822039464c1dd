// Takes values out of a JSON tree, and refuses others by file and key.
#include "tare/report/json_fields.h"

#include <limits>

#include "tare/base/error.h"

namespace tare::report {

using nlohmann::ordered_json;

std::string JsonValue::below(const std::string& name) const {
  return key_.empty() ? name : key_ + '.' + name;
}

std::optional<JsonValue> JsonValue::member(const std::string& name) const {
  const auto found = json_->find(name);
  if (found == json_->end()) return std::nullopt;
  return JsonValue(*found, *source_, below(name));
}

std::vector<JsonValue> JsonValue::items() const {
  if (!json_->is_array()) refuse_type("a list");
  std::vector<JsonValue> all;
  for (size_t i = 0; i < json_->size(); ++i)
    all.emplace_back((*json_)[i], *source_, key_ + '[' + std::to_string(i) + ']');
  return all;
}

void JsonValue::expect_object() const {
  if (!json_->is_object()) refuse_type("an object");
}

void JsonValue::refuse_type(const std::string& wanted) const {
  throw FormatError(source_->operation, source_->file, key_.empty() ? "the file" : key_,
                    "is not " + wanted + ", got " + printable(dump_json(*json_, -1), 60));
}

void JsonValue::refuse_without(const std::string& name) const {
  throw FormatError(source_->operation, source_->file, below(name),
                    "is missing, which every version of Tare writes: the file is damaged");
}

ordered_json parse_json(const std::string& text, const JsonSource& source) {
  constexpr int kDeepest = 64;  // the files of a run have fewer levels
  const auto limit = [&](int depth, ordered_json::parse_event_t, ordered_json&) {
    if (depth > kDeepest)
      throw FormatError(source.operation, source.file, "the file",
                        "has more than " + std::to_string(kDeepest) + " levels: it is damaged");
    return true;
  };
  auto json = ordered_json::parse(text, limit, /*allow_exceptions=*/false);
  if (json.is_discarded())
    throw FormatError(source.operation, source.file, "the file", "is not JSON: it is damaged");
  return json;
}

std::string dump_json(const ordered_json& json, int indent) {
  // NaN and infinite values become null. A label may hold any bytes.
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

void read_json(const JsonValue& from, bool& to) {
  if (!from.json().is_boolean()) from.refuse_type("true or false");
  to = from.json().get<bool>();
}

void read_json(const JsonValue& from, int64_t& to) {
  if (!from.json().is_number_integer()) from.refuse_type("a whole number");
  to = from.json().get<int64_t>();
}

void read_json(const JsonValue& from, double& to) {
  if (!from.json().is_number() && !from.json().is_null()) from.refuse_type("a number");
  to = from.json().is_null() ? std::numeric_limits<double>::quiet_NaN() : from.json().get<double>();
}

void read_json(const JsonValue& from, std::string& to) {
  if (!from.json().is_string()) from.refuse_type("text");
  to = from.json().get<std::string>();
}

void read_json(const JsonValue& from, std::filesystem::path& to) {
  std::string text;
  read_json(from, text);
  to = text;
}

}  // namespace tare::report
