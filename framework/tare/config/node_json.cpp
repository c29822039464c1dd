// Converts configuration trees to JSON.
#include "tare/config/node_json.h"

#include <nlohmann/json.hpp>

namespace tare::config {

using nlohmann::json;

json json_of(const Node& node) {
  if (node.kind == Kind::null) return nullptr;
  if (node.kind == Kind::sequence) {
    json list = json::array();
    for (const Node& item : node.items) list.push_back(json_of(item));
    return list;
  }
  if (node.kind == Kind::map) {
    json object = json::object();
    for (const Entry& entry : node.entries) object[entry.key] = json_of(entry.value);
    return object;
  }
  const json value = node.quoted ? json(json::value_t::discarded)
                                 : json::parse(node.text, nullptr, /*allow_exceptions=*/false);
  return value.is_number() || value.is_boolean() ? value : json(node.text);
}

}  // namespace tare::config
