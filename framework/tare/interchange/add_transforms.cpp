// Adds the nodes of transforms in front of a graph.
#include "tare/interchange/add_transforms.h"

#include <ATen/ops/div.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace tare::interchange {
namespace {

at::Tensor numbers(const std::vector<double>& values) {
  return at::tensor(values, at::TensorOptions(c10::kFloat));
}

/// Adds nodes and values to the beginning of a graph.
class Front {
 public:
  explicit Front(Graph& graph) : graph_(graph) {
    for (const Value& value : graph.values) names_.insert(value.name);
  }

  /// Lets the input be what (input - mean) / deviation is made of.
  void add(const Scaling& step) {
    const size_t scaled = graph_.inputs[step.input];
    Value input = graph_.values[scaled];
    graph_.values[scaled].name = take_name(names_, input.name + "_scaled");
    Value centred = input;
    centred.name = take_name(names_, input.name + "_centred");
    const size_t in = add(std::move(input)), middle = add(std::move(centred));
    const Size one{.constant = 1};
    const std::vector<Node> nodes{
        {.op = "aten::sub",
         .overload = "Tensor",
         .arguments = {Ref{in}, constant(step.mean, "mean"), one},
         .results = {middle}},
        {.op = "aten::div",
         .overload = "Tensor",
         .arguments = {Ref{middle}, constant(step.deviation, "deviation")},
         .results = {scaled}}};
    graph_.nodes.insert(graph_.nodes.begin(), nodes.begin(), nodes.end());
    graph_.inputs[step.input] = in;
  }

 private:
  size_t add(Value value) {
    graph_.values.push_back(std::move(value));
    return graph_.values.size() - 1;
  }
  Ref constant(const at::Tensor& tensor, const std::string& wish) {
    Value value{.name = take_name(names_, wish), .type = tensor.scalar_type()};
    for (const int64_t size : tensor.sizes()) value.sizes.push_back({.constant = size});
    const std::string name = value.name;
    const size_t place = add(std::move(value));
    graph_.weights.push_back(
        {.name = name, .kind = Weight::Kind::constant, .value = place, .tensor = tensor});
    return {place};
  }

  Graph& graph_;
  std::set<std::string> names_;
};

/// Takes the steps that come last out of the transforms of pictures; the last one first.
std::vector<Scaling> take_last(BundleManifest& manifest) {
  std::vector<Scaling> taken;
  std::vector<Transform> steps = manifest.transforms.steps();
  while (!steps.empty()) {
    const auto* step = std::get_if<Normalise>(&steps.back());
    if (!step) break;
    const auto channels = static_cast<int64_t>(step->mean.size());
    taken.push_back({.mean = numbers(step->mean).view({channels, 1, 1}),
                     .deviation = numbers(step->std).view({channels, 1, 1})});
    steps.pop_back();
  }
  manifest.transforms = Transforms(std::move(steps));
  return taken;
}

/// Takes the means and deviations of columns of numbers out of a table's coding.
std::vector<Scaling> take_columns(RowCoding& rows) {
  std::vector<double> mean, deviation;
  for (ColumnCoding& column : rows.columns) {
    mean.push_back(std::exchange(column.mean, 0));
    deviation.push_back(std::exchange(column.deviation, 1));
  }
  const bool changes = std::ranges::any_of(mean, [](double value) { return value != 0; }) ||
                       std::ranges::any_of(deviation, [](double value) { return value != 1; });
  if (!changes) return {};
  return {{.mean = numbers(mean), .deviation = numbers(deviation)}};
}

}  // namespace

at::Tensor Scaling::apply(const at::Tensor& values) const {
  return at::div(at::sub(values, mean), deviation);
}

std::vector<Scaling> add_transforms(Graph& graph, BundleManifest& manifest) {
  const bool of_pictures = manifest.sample_shape.size() == 3;
  const auto is_float = [&](size_t input) {
    return graph.values[graph.inputs[input]].type == c10::kFloat;
  };
  if (graph.inputs.empty() || !is_float(0) || (!of_pictures && !manifest.rows)) return {};
  const std::vector<Scaling> taken =
      manifest.rows ? take_columns(*manifest.rows) : take_last(manifest);
  Front front(graph);
  std::vector<Scaling> steps;
  for (size_t input = 0; input < graph.inputs.size(); ++input) {
    // Pictures get the transforms as inputs after the first, too; other inputs do not.
    const bool has = input == 0 || (of_pictures && is_float(input) &&
                                    graph.values[graph.inputs[input]].sizes.size() == 4);
    for (Scaling step : taken) {
      if (!has) continue;
      step.input = input;
      front.add(step);
      steps.insert(steps.begin(), std::move(step));
    }
  }
  return steps;
}

}  // namespace tare::interchange
