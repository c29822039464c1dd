// Reads the errors of an option for wrong values.
#include "tare/recipe/option_facts.h"

#include "tare/base/parts.h"

namespace tare {
namespace {

using config::Node;

std::string without_must_be(const std::string& problem) {
  constexpr std::string_view kStart = "must be ";
  return problem.starts_with(kStart) ? problem.substr(kStart.size()) : problem;
}

/// Returns "a list of whole numbers" for "a whole number".
std::string list_of(const std::string& item) {
  const bool counts = item.starts_with("a ") && item.ends_with("number");
  return "a list of " + (counts ? item.substr(2) + 's' : item);
}

bool wants_a_name(const std::optional<ConfigError>& error) {
  return error && error->problem().starts_with("is not");
}

std::string type_of(const OptionProbe& refusal, const std::optional<ConfigError>& word) {
  const auto list = refusal(Node::sequence({Node()}));
  const std::string of_list = list ? without_must_be(list->problem()) : "";
  const bool is_list_of_words = !word && !refusal(Node::sequence({}));  // which one word is too
  if (is_list_of_words) return list_of(of_list);
  const auto several = refusal(Node::string("?, ?"));  // one number is a list of one
  if (several && several->problem() == "must be a list")
    return of_list.empty() ? "a list" : list_of(of_list);
  if (!word || wants_a_name(word)) return of_list;
  return without_must_be(word->problem());
}

std::string range_of(const OptionProbe& refusal) {
  for (const char* value : {"-9000000000000000000", "9000000000000000000", "-1"}) {
    const auto error = refusal(Node::scalar(value));
    if (error &&
        (error->problem().starts_with("must be >") || error->problem().starts_with("must be from")))
      return error->problem();
  }
  return "";
}

}  // namespace

OptionFacts facts_of(const OptionProbe& refusal) {
  const auto word = refusal(Node::string("?"));
  OptionFacts facts{.type = type_of(refusal, word), .range = range_of(refusal)};
  if (facts.type == "true or false") facts.words = {"true", "false"};
  if (wants_a_name(word)) {
    const std::string names = word->allowed();  // behind a semicolon: what else to do
    facts.words = parts_of(names.substr(0, names.find(';')), ',');
  }
  return facts;
}

std::string default_text(const Node& value) {
  if (value.kind == config::Kind::null || value.kind == config::Kind::map) return "";
  if (value.kind == config::Kind::scalar) return value.text;
  std::string items;
  for (const auto& item : value.items) {
    if (item.kind != config::Kind::scalar) return "";
    items += (items.empty() ? "" : ", ") + item.text;
  }
  return items.empty() ? "" : '[' + items + ']';
}

}  // namespace tare
