// Lists a model's modules with their shapes, parameters and bytes.
#include "tare/learner/summary.h"

#include <algorithm>

#include "tare/base/bytes.h"
#include "tare/base/table.h"
#include "tare/learner/parts.h"

namespace tare {
namespace {

struct Row {
  std::string module{}, shapes{};
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

TableRow cells_of(const Row& row) {
  return {row.module, row.shapes, format_count(row.parameters), format_count(row.trainable),
          format_bytes(row.bytes)};
}

std::string group_names(const Model& model) {
  std::string names;
  for (const auto& group : model.layer_groups()) names += (names.empty() ? "" : ", ") + group.name;
  return names;
}

/// `setting`: a line below the name, or nothing.
std::string table(const Model& model, const std::string& setting, size_t width) {
  std::vector<Row> rows;
  for (const auto& parameter : model.parameters())
    add(rows, parameter.name, parameter.tensor, true);
  for (const auto& [name, tensor] : model.buffers()) add(rows, name, tensor, false);
  Row total{.module = "total"};
  std::vector<TableRow> cells;
  for (const auto& row : rows) {
    total.parameters += row.parameters;
    total.trainable += row.trainable;
    total.bytes += row.bytes;
    cells.push_back(cells_of(row));
  }
  cells.push_back(cells_of(total));
  const std::string name = model.spec() ? model.spec()->name + '\n' : "";
  const std::string groups = "layer groups: " + group_names(model);
  return name + setting +
         text_table({{.head = "module", .whole = true},
                     {.head = "shapes", .whole = true},
                     {.head = "parameters", .figure = true},
                     {.head = "trainable", .figure = true},
                     {.head = "size", .figure = true}},
                    cells, width) +
         (width == kAnyWidth ? groups : wrapped(groups, width, 0, 2)) + '\n';
}

}  // namespace

std::string summary(const Model& model, size_t width) { return table(model, "", width); }

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

std::string Learner::summary() const {
  const Parts& p = parts("learner.summary");
  std::string setting;
  if (p.data.train)
    setting = "sample " + shape_text(p.data.train->sample_shape()) + ", batch " +
              std::to_string(p.options.batch) + ", on " + p.device.str() + '\n';
  return table(p.model, setting, kAnyWidth);
}

}  // namespace tare
