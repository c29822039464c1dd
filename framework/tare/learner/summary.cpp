// Lists a model's modules with their shapes, parameters and bytes.
#include "tare/learner/summary.h"

#include <algorithm>
#include <optional>

#include "tare/base/bytes.h"
#include "tare/base/log.h"
#include "tare/base/table.h"
#include "tare/learner/learner.h"
#include "tare/model/generators.h"
#include "tare/model/registry.h"
#include "tare/trace/trace.h"
#include "tare/train/layer_shapes.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

/// See layer_shapes(); unset: they are not known.
using Shapes = std::optional<std::map<std::string, std::vector<int64_t>>>;

constexpr const char* kNoOutput = "?";
constexpr const char* kWhyNoOutput =
    "?: no operator of the forward took a parameter of this module itself, so its output is not "
    "known";

struct Row {
  std::string module{}, shapes{}, output{};
  int64_t parameters = 0, trainable = 0, bytes = 0;
};

std::string shape_text(at::IntArrayRef sizes) {
  std::string text = "[";
  for (const auto size : sizes) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "]";
}

// One row for each module that has tensors of its own, in the order of the model.
void add(std::vector<Row>& rows, const std::string& name, const at::Tensor& tensor,
         bool parameter) {
  const auto dot = name.rfind('.');
  const std::string module = dot == std::string::npos ? "(model)" : name.substr(0, dot);
  auto row = std::ranges::find(rows, module, &Row::module);
  if (row == rows.end()) row = rows.insert(rows.end(), Row{.module = module});
  row->shapes +=
      (row->shapes.empty() ? "" : " ") + name.substr(dot + 1) + shape_text(tensor.sizes());
  row->bytes += static_cast<int64_t>(tensor.nbytes());
  if (!parameter) return;
  row->parameters += tensor.numel();
  if (tensor.requires_grad()) row->trainable += tensor.numel();
}

TableRow cells_of(const Row& row, bool with_outputs) {
  TableRow cells{row.module, row.shapes};
  if (with_outputs) cells.push_back(row.output);
  for (const int64_t count : {row.parameters, row.trainable}) cells.push_back(format_count(count));
  cells.push_back(format_bytes(row.bytes));
  return cells;
}

std::vector<TableColumn> columns(bool with_outputs) {
  std::vector<TableColumn> all{{.head = "module", .whole = true},
                               {.head = "shapes", .whole = true}};
  if (with_outputs) all.push_back({.head = "output", .whole = true});
  for (const char* head : {"parameters", "trainable", "size"})
    all.push_back({.head = head, .figure = true});
  return all;
}

std::string group_names(const Model& model) {
  std::string names;
  for (const auto& group : model.layer_groups()) names += (names.empty() ? "" : ", ") + group.name;
  return names;
}

// A model of the registry is built again, on the meta device: a forward of its own could change
// what the allocator of a run that is measured has at hand.
Shapes shapes_of_twin(const Model& model, const Batch& sample) {
  const GeneratorScope generators(c10::kCPU);
  const plan::MetaScope meta;
  Model twin = models::make(*model.spec());
  return layer_shapes(twin, {c10::kMeta}, [&] { (void)twin.forward(sample); });
}

/// Returns what `shapes` returns, or nothing, with a warning, where the forward fails.
template <class F>
Shapes known_shapes(F&& shapes) {
  try {
    return shapes();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    log::warning("the summary has no shapes of outputs: " +
                 printable(error.what_without_backtrace(), 400));
  } catch (const Error& error) {
    log::warning("the summary has no shapes of outputs: " + std::string(error.what()));
  }
  return std::nullopt;
}

/// Writes the outputs into their rows, or that they are not known. Whether all are known.
bool add_outputs(std::vector<Row>& rows, const Shapes& outputs) {
  bool all = true;
  for (Row& row : rows) {
    const auto found = outputs->find(row.module == "(model)" ? "" : row.module);
    const bool known = found != outputs->end();
    row.output = known ? shape_text(found->second) : kNoOutput;
    all = all && known;
  }
  return all;
}

/// Returns the table. `setting` is a line below the name, or empty; for `outputs` see
/// layer_shapes().
std::string table(const Model& model, const std::string& setting, const Shapes& outputs,
                  size_t width) {
  std::vector<Row> rows;
  for (const auto& parameter : model.parameters())
    add(rows, parameter.name, parameter.tensor, true);
  for (const auto& [name, tensor] : model.buffers()) add(rows, name, tensor, false);
  const bool complete = !outputs || add_outputs(rows, outputs);
  Row total{.module = "total"};
  std::vector<TableRow> cells;
  for (const auto& row : rows) {
    total.parameters += row.parameters;
    total.trainable += row.trainable;
    total.bytes += row.bytes;
    cells.push_back(cells_of(row, outputs.has_value()));
  }
  cells.push_back(cells_of(total, outputs.has_value()));
  const std::string name = model.spec() ? model.spec()->name + '\n' : "";
  const auto line = [width](const std::string& text) {
    return (width == kAnyWidth ? text : wrapped(text, width, 0, 2)) + '\n';
  };
  return name + setting + text_table(columns(outputs.has_value()), cells, width) +
         (complete ? "" : line(kWhyNoOutput)) + line("layer groups: " + group_names(model));
}

/// Returns the shapes of the outputs of a Learner's modules for `sample`, a batch of one on the
/// host. A Task is given the model itself, because its functions may hold others.
Shapes output_shapes(LearnerState& state, Batch sample) {
  Model& model = state.model;
  return known_shapes([&]() -> Shapes {
    if (model.spec() && !state.options.task) return shapes_of_twin(model, on_meta(sample));
    state.to_device(sample);
    return layer_shapes(model, state.devices(), [&] { (void)state.predict(sample); });
  });
}

/// Returns the shape of each input of one sample, behind its name where there are several.
std::string sample_text(const Dataset& data, const Batch& sample) {
  if (sample.inputs.size() == 1) return shape_text(data.sample_shape());
  std::string text;
  for (const auto& [name, tensor] : sample.inputs)
    text += (text.empty() ? "" : ", ") + name + ' ' + shape_text(tensor.sizes().slice(1));
  return text;
}

}  // namespace

std::string summary(const Model& model, size_t width, const Batch& sample) {
  const bool known = model.spec() && !sample.inputs.empty();
  return table(model, "",
               known ? known_shapes([&] { return shapes_of_twin(model, sample); }) : std::nullopt,
               width);
}

std::string summary_line(const Model& model) {
  int64_t parameters = 0, bytes = 0;
  for (const auto& parameter : model.parameters()) {
    parameters += parameter.tensor.numel();
    bytes += static_cast<int64_t>(parameter.tensor.nbytes());
  }
  for (const auto& [name, tensor] : model.buffers()) bytes += static_cast<int64_t>(tensor.nbytes());
  return (model.spec() ? model.spec()->name + ": " : "") + format_count(parameters) +
         " parameters, " + format_bytes(bytes) +
         " with buffers; layer groups: " + group_names(model);
}

std::string Learner::summary(size_t width) const {
  LearnerState& p = state("learner.summary");
  if (!p.data.train) return table(p.model, "", std::nullopt, width);
  const Batch sample = p.data.train->first_sample();
  const std::string setting = "sample " + sample_text(*p.data.train, sample) + ", batch " +
                              std::to_string(p.options.batch) + ", on " +
                              (p.stages.size() > 1 ? p.stages.str(p.model) : p.device.str()) + '\n';
  return table(p.model, setting, output_shapes(p, sample), width);
}

}  // namespace tare
