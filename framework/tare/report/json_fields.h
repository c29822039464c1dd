// JSON of structs that list their fields once, in a visit_fields() of their namespace. Internal.
//
//   template <class Visit>
//   void visit_fields(Visit& visit, EpochRow& row) {
//     visit("epoch", row.epoch);
//     visit("samples", row.samples, Presence::since_later);
//     visit.by_name("metrics", row.metrics);                // {"accuracy": 0.5}
//     visit.one_of("reason", row.reason, kStopReasons);     // an enumeration by its names
//   }
//
// Field types: bool, int64_t, double (NaN and infinite values are null), std::string,
// std::filesystem::path, std::optional<T> (null: unset), std::vector<T>, and structs with a list.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tare/report/presence.h"

namespace tare::report {

/// Names the origin of a JSON text in messages.
struct JsonSource {
  std::string operation{}, file{};
};

/// Holds a value of a JSON text with its key, such as "phases[0].seconds". Refers to the text's
/// tree and to its source, which must outlive it.
class JsonValue {
 public:
  JsonValue(const nlohmann::ordered_json& json, const JsonSource& source, std::string key = {})
      : json_(&json), source_(&source), key_(std::move(key)) {}

  [[nodiscard]] const nlohmann::ordered_json& json() const { return *json_; }
  [[nodiscard]] std::optional<JsonValue> member(const std::string& name) const;
  [[nodiscard]] std::vector<JsonValue> items() const;  ///< of a list
  void expect_object() const;
  /// Throws the FormatError that names file and key: "seconds: is not a number, got \"x\"".
  [[noreturn]] void refuse_type(const std::string& wanted) const;
  [[noreturn]] void refuse_without(const std::string& name) const;

 private:
  [[nodiscard]] std::string below(const std::string& name) const;

  const nlohmann::ordered_json* json_;
  const JsonSource* source_;
  std::string key_;
};

/// Throws FormatError for what is not JSON.
[[nodiscard]] nlohmann::ordered_json parse_json(const std::string& text, const JsonSource& source);
/// Returns the text on one line, or indented where `indent` is not negative; bytes that are not
/// UTF-8 become U+FFFD.
[[nodiscard]] std::string dump_json(const nlohmann::ordered_json& json, int indent);

void read_json(const JsonValue& from, bool& to);
void read_json(const JsonValue& from, int64_t& to);
void read_json(const JsonValue& from, double& to);  ///< null: NaN
void read_json(const JsonValue& from, std::string& to);
void read_json(const JsonValue& from, std::filesystem::path& to);

class JsonReader;
class JsonWriter;

template <class T>
concept HasFields = requires(JsonReader& visit, T& value) {
  visit_fields(visit, value);
};

template <HasFields T>
void read_json(const JsonValue& from, T& to);

template <class T>
void read_json(const JsonValue& from, std::optional<T>& to) {
  to.reset();
  if (!from.json().is_null()) read_json(from, to.emplace());
}

template <class T>
void read_json(const JsonValue& from, std::vector<T>& to) {
  to.clear();
  for (const JsonValue& item : from.items()) read_json(item, to.emplace_back());
}

/// Reads one object; keys that are not listed are skipped. Throws FormatError.
class JsonReader {
 public:
  explicit JsonReader(JsonValue object) : object_(std::move(object)) { object_.expect_object(); }

  template <class T>
  void operator()(const char* key, T& value, Presence presence = Presence::always) {
    if (const auto member = object_.member(key))
      read_json(*member, value);
    else if (presence == Presence::always)
      object_.refuse_without(key);
  }

  /// Reads the members of an object into structs {name, value}.
  template <class T>
  void by_name(const char* key, std::vector<T>& values) {
    const JsonValue all = required(key);
    all.expect_object();
    values.clear();
    for (const auto& [name, json] : all.json().items())
      read_json(*all.member(name), values.emplace_back(T{.name = name}).value);
  }

  template <class Enum, size_t N>
  void one_of(const char* key, Enum& value, const std::array<const char*, N>& names) {
    const JsonValue text = required(key);
    std::string allowed;
    for (size_t i = 0; i < N; ++i) {
      if (text.json() == names[i]) {
        value = static_cast<Enum>(i);
        return;
      }
      allowed += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    text.refuse_type("one of " + allowed);
  }

 private:
  [[nodiscard]] JsonValue required(const char* key) const {
    auto member = object_.member(key);
    if (!member) object_.refuse_without(key);
    return *std::move(member);
  }

  JsonValue object_;
};

template <HasFields T>
void read_json(const JsonValue& from, T& to) {
  JsonReader visit(from);
  visit_fields(visit, to);
}

template <class T>
[[nodiscard]] nlohmann::ordered_json json_of(const T& value) {
  return value;
}
[[nodiscard]] inline nlohmann::ordered_json json_of(const std::filesystem::path& path) {
  return path.string();
}
template <HasFields T>
[[nodiscard]] nlohmann::ordered_json json_of(const T& value);

template <class T>
[[nodiscard]] nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : nlohmann::ordered_json();
}

template <class T>
[[nodiscard]] nlohmann::ordered_json json_of(const std::vector<T>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const T& value : values) list.push_back(json_of(value));
  return list;
}

/// Writes one object, its keys in the order of the list.
class JsonWriter {
 public:
  template <class T>
  void operator()(const char* key, const T& value, Presence presence = Presence::always) {
    if (presence != Presence::where_set || is_set(value)) object_[key] = json_of(value);
  }

  template <class T>
  void by_name(const char* key, const std::vector<T>& values) {
    auto& object = object_[key] = nlohmann::ordered_json::object();
    for (const T& each : values) object[each.name] = json_of(each.value);
  }

  template <class Enum, size_t N>
  void one_of(const char* key, const Enum& value, const std::array<const char*, N>& names) {
    object_[key] = names.at(static_cast<size_t>(value));
  }

  [[nodiscard]] nlohmann::ordered_json take() { return std::move(object_); }

 private:
  template <class T>
  static bool is_set(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) return value != T{};
    if constexpr (requires { value.empty(); }) return !value.empty();
    return true;
  }
  template <class T>
  static bool is_set(const std::optional<T>& value) {
    return value.has_value();
  }

  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

template <HasFields T>
nlohmann::ordered_json json_of(const T& value) {
  JsonWriter visit;
  visit_fields(visit, const_cast<T&>(value));  // only read: one list serves both directions
  return visit.take();
}

/// Returns the struct as JSON; `indent` as for dump_json().
template <HasFields T>
[[nodiscard]] std::string json_text(const T& value, int indent = -1) {
  return dump_json(json_of(value), indent);
}

/// Reads a struct from its JSON text. Throws FormatError with the source's file and the key.
template <HasFields T>
[[nodiscard]] T from_json_text(const std::string& text, const JsonSource& source) {
  const auto json = parse_json(text, source);
  T value{};
  read_json(JsonValue(json, source), value);
  return value;
}

}  // namespace tare::report
