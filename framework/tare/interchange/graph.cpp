// The parts of a graph that need code.
#include "tare/interchange/graph.h"

#include <algorithm>
#include <cctype>
#include <functional>

namespace tare::interchange {

std::string Node::str() const {
  const std::string name = op.starts_with("aten::") ? op.substr(6) : op;
  return overload.empty() ? name : name + "." + overload;
}

std::string plain_name(std::string wish) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::ranges::replace_if(wish, std::not_fn(is_letter), '_');
  if (wish.empty() || std::isdigit(static_cast<unsigned char>(wish[0]))) wish.insert(0, "v_");
  return wish;
}

std::string take_name(std::set<std::string>& taken, const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !taken.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

const Weight* Graph::weight(size_t value) const {
  const auto at = std::ranges::find(weights, value, &Weight::value);
  return at == weights.end() ? nullptr : &*at;
}

}  // namespace tare::interchange
