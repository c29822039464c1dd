// Reads, writes and checks fields through their types.
#include "tare/config/field.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cmath>

#include "tare/base/error.h"
#include "tare/base/familiar_names.h"
#include "tare/config/override.h"
#include "tare/config/scalar.h"

namespace tare::config {

Rule at_least(double low) { return {.kind = Rule::Kind::at_least, .low = low}; }
Rule above(double low) { return {.kind = Rule::Kind::above, .low = low}; }
Rule between(double low, double high) {
  return {.kind = Rule::Kind::between, .low = low, .high = high};
}
Rule text_or_null() { return {.takes_null = true}; }
Rule one_of(std::vector<std::string> names) {
  return {.kind = Rule::Kind::one_of, .names = std::move(names)};
}
Rule one_of(std::initializer_list<const char*> names) {
  return one_of(std::vector<std::string>(names.begin(), names.end()));
}
Rule entry_of(std::vector<std::string> names) {
  return {.kind = Rule::Kind::one_of, .names = std::move(names), .open = true};
}

namespace {
bool hints_at_own_programs = false;
}

void hint_at_own_programs() { hints_at_own_programs = true; }

std::string listed_entries(const std::vector<std::string>& names) {
  return listed(names) + (hints_at_own_programs
                              ? "; a name that a program of yours adds is known to that program "
                                "only: call it in place of tare"
                              : "");
}

Visitor& Visitor::add(Field field) {
  fields_.push_back(std::move(field));
  return *this;
}

void Visitor::add_named(std::span<const Field> fields, std::string_view name) {
  const auto found = std::ranges::find(
      fields, name, [](const Field& field) -> std::string_view { return field.name; });
  assert(found != fields.end());
  add(*found);
}

std::vector<std::string> names_of(std::span<const Field> fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) names.emplace_back(field.name);
  return names;
}

namespace {

/// Returns a limit, a whole one without an exponent: 1000000000.
std::string limit_text(double limit) {
  constexpr double kLongest = 1e12;
  const bool is_whole = std::abs(limit) <= kLongest && limit == std::floor(limit);
  return is_whole ? std::to_string(static_cast<int64_t>(limit)) : number_text(limit);
}

/// Returns what is wrong with a scalar under the rule; empty for nothing.
std::string number_problem(const Rule& rule, double value) {
  if (std::isinf(value)) return "must be finite";
  switch (rule.kind) {
    case Rule::Kind::at_least:
      return value >= rule.low ? "" : "must be >= " + limit_text(rule.low);
    case Rule::Kind::above:
      return value > rule.low ? "" : "must be > " + limit_text(rule.low);
    case Rule::Kind::between:
      return value >= rule.low && value <= rule.high
                 ? ""
                 : "must be from " + limit_text(rule.low) + " to " + limit_text(rule.high);
    case Rule::Kind::any:
    case Rule::Kind::one_of:
      break;
  }
  return "";
}

void check_scalar(const Rule& rule, const Node& node) {
  if (rule.kind == Rule::Kind::one_of) {
    if (std::find(rule.names.begin(), rule.names.end(), node.text) != rule.names.end()) return;
    if (!rule.open) refuse_name(node, rule.names);
    throw ConfigError(node.source, "", "is not known" + did_you_mean(node.text, rule.names),
                      listed_entries(rule.names), describe(node));
  }
  const auto value = node.quoted ? std::nullopt : as_number(node.text);
  const std::string problem = value ? number_problem(rule, *value) : "";
  if (!problem.empty()) throw ConfigError(node.source, "", problem, "", describe(node));
}

void check_rule(const Rule& rule, const Node& node) {
  if (rule.kind == Rule::Kind::any) return;
  if (node.kind == Kind::scalar) check_scalar(rule, node);
  for (size_t i = 0; i < node.items.size(); ++i) {
    try {
      check_rule(rule, node.items[i]);
    } catch (const ConfigError& error) {
      throw error.within(std::to_string(i), {});
    }
  }
  for (const Entry& entry : node.entries) {
    try {
      check_rule(rule, entry.value);
    } catch (const ConfigError& error) {
      throw error.within(entry.key, {});
    }
  }
}

constexpr const char* kNoMapping = "must be a mapping";

[[noreturn]] void wrong_type(const Node& node, const char* wanted) {
  throw ConfigError(node.source, "", std::string("must be ") + wanted, "", describe(node));
}

/// Throws for a node that is not a number of the type; `range`: the values that the type has.
[[noreturn]] void no_number(const Node& node, const char* wanted, bool whole, const char* range) {
  if (node.kind == Kind::scalar && !node.quoted && is_out_of_range(node.text, whole))
    throw ConfigError(node.source, "", "is out of range", range, describe(node));
  wrong_type(node, wanted);
}

const Field* find(std::span<const Field> fields, std::string_view name) {
  const auto field = std::find_if(fields.begin(), fields.end(), [name](const Field& candidate) {
    return candidate.name == name;
  });
  return field == fields.end() ? nullptr : &*field;
}

bool differ_in_case_alone(const std::string& one, const std::string& other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

/// Returns the node with the word of the rule that it differs from in the case of letters alone,
/// and an empty text for a null that the rule takes.
Node as_the_rule_writes(const Rule& rule, Node node) {
  if (rule.takes_null && node.kind == Kind::null) {
    const Source source = node.source;
    node = Node::string("");
    node.source = source;
  }
  const auto known = std::ranges::find_if(
      rule.names, [&](const auto& name) { return differ_in_case_alone(name, node.text); });
  if (node.kind == Kind::scalar && known != rule.names.end()) node.text = *known;
  return node;
}

void read_field(const Field& field, const Entry& entry) {
  if (is_unset(entry.value)) return;
  try {
    const Node value = as_the_rule_writes(field.rule, entry.value);
    field.type->read(value, field.value);
    check_rule(field.rule, value);
  } catch (const ConfigError& error) {
    throw error.within(entry.key, entry.value.source);
  }
}

}  // namespace

namespace detail {

void read_scalar(const Node& node, bool& value) {
  const auto read = node.quoted ? std::nullopt : as_bool(node.text);
  if (node.kind != Kind::scalar || !read) wrong_type(node, "true or false");
  value = *read;
}

void read_scalar(const Node& node, int64_t& value) {
  const auto read = node.quoted ? std::nullopt : as_integer(node.text);
  if (node.kind != Kind::scalar || !read) {
    no_number(node, "a whole number", true, "-9223372036854775808 to 9223372036854775807");
  }
  value = *read;
}

void read_scalar(const Node& node, uint64_t& value) {
  const auto read = node.quoted ? std::nullopt : as_count(node.text);
  if (node.kind != Kind::scalar || !read) {
    no_number(node, "a whole number >= 0", true, "0 to 18446744073709551615");
  }
  value = *read;
}

void read_scalar(const Node& node, double& value) {
  const auto read = node.quoted ? std::nullopt : as_number(node.text);
  if (node.kind != Kind::scalar || !read) {
    no_number(node, "a number", false, "the numbers of a double, at most about 1.8e308");
  }
  value = *read;
}

void read_scalar(const Node& node, std::string& value) {
  if (node.kind != Kind::scalar) wrong_type(node, "text");
  value = node.text;
}

void read_scalar(const Node& node, std::filesystem::path& value) {
  if (node.kind != Kind::scalar) wrong_type(node, "a path");
  value = node.text;
}

Node write_scalar(bool value) { return Node::scalar(value ? "true" : "false"); }
Node write_scalar(int64_t value) { return Node::scalar(std::to_string(value)); }
Node write_scalar(uint64_t value) { return Node::scalar(std::to_string(value)); }
Node write_scalar(double value) { return Node::scalar(number_text(value)); }
Node write_scalar(const std::string& value) { return Node::string(value); }
Node write_scalar(const std::filesystem::path& value) { return Node::string(value.string()); }

namespace {

/// Returns ` (did you mean "epochs"?)` for a key that is not known, the key that a recipe has in
/// another place for a well-known name and what to know about it, or the place of the options that
/// only some entries have.
std::string likeliest_key(const std::string& key, const std::vector<std::string>& names) {
  const bool is_here = !familiar(key, names).empty();
  const std::string elsewhere = is_here ? "" : familiar_key(key), note = familiar_note(key);
  if (!note.empty() && !is_here && elsewhere.empty()) return " (" + note + ")";
  std::string text = elsewhere.empty()
                         ? did_you_mean(key, names)
                         : " (did you mean the key \"" + elsewhere + "\" of a recipe?)";
  if (!note.empty() && !text.empty()) text.insert(text.size() - 1, " " + note);
  if (!text.empty() || std::ranges::find(names, "options") == names.end()) return text;
  return " (if it is an option that only this choice has, write it as options." + key + ")";
}

}  // namespace

void read_fields(const Node& node, std::span<const Field> fields) {
  if (node.kind == Kind::null) return;
  if (node.kind != Kind::map)
    throw ConfigError(
        node.source, "", kNoMapping,
        fields.empty() ? "" : "{key: value} with the keys " + listed(names_of(fields)),
        describe(node));
  for (const Entry& entry : node.entries) {
    if (const Field* field = find(fields, entry.key)) {
      read_field(*field, entry);
      continue;
    }
    const std::vector<std::string> names = names_of(fields);
    throw ConfigError(entry.key_source, entry.key,
                      names.empty() ? "is not a known key; there are no options"
                                    : "is not a known key" + likeliest_key(entry.key, names),
                      listed(names));
  }
}

namespace {

/// Returns the text of what may have been meant as the items of a list: `8, 8` as it is.
std::string listed_text(const Node& node) {
  const bool several = node.kind == Kind::scalar && node.text.find(',') != std::string::npos;
  return several ? node.text : flow_text(node);
}

}  // namespace

void read_items(const Node& node, const Type& type, void* (*add)(void* list), void* list) {
  const bool is_name = &type == &type_of<std::string>();  // which may have a comma
  const bool is_one = node.kind == Kind::scalar && node.text.find(',') == std::string::npos;
  bool of_mappings = false;  // the items
  if (is_one || (is_name && node.kind == Kind::scalar)) {
    try {
      type.read(node, add(list));
      return;
    } catch (const ConfigError& error) {
      if (error.problem() != kNoMapping) throw;
      of_mappings = true;
    }
  }
  if (node.kind != Kind::sequence)
    throw ConfigError(node.source, "", "must be a list",
                      node.kind == Kind::null ? "[]"
                      : of_mappings           ? "[{key: value}]"
                                              : '[' + listed_text(node) + ']',
                      describe(node));
  for (size_t i = 0; i < node.items.size(); ++i) {
    try {
      type.read(node.items[i], add(list));
    } catch (const ConfigError& error) {
      throw error.within(std::to_string(i), node.items[i].source);
    }
  }
}

Node write_fields(std::span<const Field> fields) {
  Node node = Node::map();
  for (const Field& field : fields) node.set(field.name, field.type->write(field.value));
  return node;
}

std::string item_path(const std::string& path, size_t index) {
  return path + "." + std::to_string(index);
}

void check_fields(std::span<const Field> fields, std::string_view where, const std::string& path) {
  for (const Field& field : fields) {
    const std::string name = path.empty() ? field.name : path + "." + field.name;
    try {
      check_rule(field.rule, field.type->write(field.value));
    } catch (const ConfigError& error) {
      const ConfigError full = error.within(name, {});
      throw ConfigError(where, full.field(), full.problem(), full.allowed(), full.got());
    }
    field.type->check(field.value, where, name);
  }
}

}  // namespace detail
}  // namespace tare::config
