#include "tare/learner/summary.h"

#include <algorithm>
#include <sstream>

#include "tare/base/bytes.h"
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

void print(std::ostream& out, const Row& row, size_t first, size_t second) {
  const auto pad = [&](const std::string& text, size_t width) {
    out << text << std::string(width > text.size() ? width - text.size() : 0, ' ') << "  ";
  };
  const auto right = [&](const std::string& text, size_t width) {
    out << std::string(width > text.size() ? width - text.size() : 0, ' ') << text << "  ";
  };
  pad(row.module, first);
  pad(row.shapes, second);
  right(format_count(row.parameters), 12);
  right(format_count(row.trainable), 12);
  right(format_bytes(row.bytes), 10);
  out << '\n';
}

std::string group_names(const Model& model) {
  std::string names;
  for (const auto& group : model.layer_groups()) names += (names.empty() ? "" : ", ") + group.name;
  return names;
}

/// `setting`: a line below the name, or nothing.
std::string table(const Model& model, const std::string& setting) {
  std::vector<Row> rows;
  for (const auto& parameter : model.parameters())
    add(rows, parameter.name, parameter.tensor, true);
  for (const auto& [name, tensor] : model.buffers()) add(rows, name, tensor, false);
  Row total{.module = "total"};
  size_t first = 6, second = 6;
  for (const auto& row : rows) {
    total.parameters += row.parameters;
    total.trainable += row.trainable;
    total.bytes += row.bytes;
    first = std::max(first, row.module.size());
    second = std::max(second, row.shapes.size());
  }
  std::ostringstream out;
  if (model.spec()) out << model.spec()->name << '\n';
  out << setting << "module" << std::string(first - 6, ' ') << "  shapes"
      << std::string(second - 6, ' ') << "    parameters     trainable        size\n";
  for (const auto& row : rows) print(out, row, first, second);
  print(out, total, first, second);
  out << "layer groups: " << group_names(model) << '\n';
  return out.str();
}

}  // namespace

std::string summary(const Model& model) { return table(model, ""); }

std::string summary_line(const Model& model) {
  int64_t parameters = 0, bytes = 0;
  for (const auto& parameter : model.parameters()) {
    parameters += parameter.tensor.numel();
    bytes += static_cast<int64_t>(parameter.tensor.nbytes());
  }
  for (const auto& [name, tensor] : model.buffers()) bytes += static_cast<int64_t>(tensor.nbytes());
  return (model.spec() ? model.spec()->name + ": " : "") + format_count(parameters) +
         " parameters, " + format_bytes(bytes) + " with buffers; layer groups: " + group_names(model);
}

std::string Learner::summary() const {
  const Parts& p = parts("learner.summary");
  std::string setting;
  if (p.data.train)
    setting = "sample " + shape_text(p.data.train->sample_shape()) + ", batch " +
              std::to_string(p.options.batch) + ", on " + p.device.str() + '\n';
  return table(p.model, setting);
}

}  // namespace tare
