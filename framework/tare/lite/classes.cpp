// Finds the most probable classes of an output.
#include "tare/lite/classes.h"

#include <nlohmann/json.hpp>

#include "tare/base/highest.h"

namespace tare::lite {

bool has_classes(const Model& model, const std::vector<int64_t>& shape) {
  return model.gives_classes() &&
         (shape.size() == 1 || (shape.size() == 2 && model.takes_tokens()));
}

std::vector<ClassScore> classes(const Model& model, const std::vector<int64_t>& shape,
                                std::span<const float> values, std::optional<int64_t> top) {
  const Manifest& manifest = model.manifest();
  const auto& labels = manifest.labels;
  const size_t step = shape.size() == 2 ? static_cast<size_t>(shape[1]) : 1;  // to the next class
  std::vector<float> scores;
  for (size_t i = step - 1; i < values.size(); i += step) scores.push_back(values[i]);
  const bool sigmoid = manifest.activation == "sigmoid", one = scores.size() == 1;
  // The probability of labels of 0 and 1 in one column, which have no names.
  if (labels.empty() && sigmoid && one)
    return {{.label = "1", .index = 1, .probability = scores.front()}};
  if (sigmoid && one && labels.size() == 2) scores = {1 - scores.front(), scores.front()};
  const size_t all = sigmoid && !one ? scores.size() : 1;
  std::vector<ClassScore> result;
  for (const size_t at : highest(scores, top ? static_cast<size_t>(*top) : all))
    result.push_back({at < labels.size() ? labels[at] : std::to_string(at),
                      static_cast<int64_t>(at), scores[at]});
  return result;
}

std::vector<std::string> value_names(const Model& model, size_t values) {
  const auto& targets = model.manifest().targets;
  return targets.size() == values ? targets : std::vector<std::string>();
}

nlohmann::json described(const Model& model, const std::vector<int64_t>& shape,
                         std::span<const float> values, std::optional<int64_t> top) {
  using nlohmann::json;
  if (has_classes(model, shape)) {
    json list = json::array();
    for (const ClassScore& p : classes(model, shape, values, top))
      list.push_back(
          {{"label", p.label}, {"index", p.index}, {"probability", double{p.probability}}});
    return {{"predictions", list}};
  }
  json result{{"shape", shape}, {"values", std::vector<float>(values.begin(), values.end())}};
  if (const auto names = value_names(model, values.size()); !names.empty())
    result["targets"] = names;
  return result;
}

}  // namespace tare::lite
