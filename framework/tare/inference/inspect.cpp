// Describes bundles, checkpoints and files of weights as text.
#include "tare/inference/inspect.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/table.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/torch_file.h"
#include "tare/inference/bundle.h"
#include "tare/inference/damaged_file.h"
#include "tare/inference/one_score.h"
#include "tare/model/coded_weight.h"

namespace tare {
namespace {

constexpr size_t kTextLimit = 2000;
constexpr size_t kShownKeys = 20;

/// Text for so many columns.
struct Page {
  std::ostringstream text{};
  size_t width = kAnyWidth;
  bool is_damaged = false;
};
template <class T>
Page& operator<<(Page& page, const T& value) {
  page.text << value;
  return page;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// Adds a field with its value; blanks at the start of the value indent each of its lines.
void add_line(Page& out, std::string_view field, const std::string& value) {
  constexpr size_t kStart = 16, kLeast = 20;
  out << "  " << field << std::string(field.size() < 14 ? 14 - field.size() : 1, ' ');
  if (out.width == kAnyWidth || value.find_first_not_of(' ') == std::string::npos) {
    out << value << "\n";
    return;
  }
  const std::string blanks(value.find_first_not_of(' '), ' ');
  const size_t start = kStart + blanks.size(), space = out.width - std::min(out.width, start);
  std::string indent = blanks;
  for (const auto& line : cell_lines(value.substr(blanks.size()), std::max(kLeast, space))) {
    out << indent << line << "\n";
    indent = std::string(start, ' ');
  }
}

// Text of several lines, each escaped, below one field.
void add_lines(Page& out, std::string_view field, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); field = "")
    add_line(out, field, printable(line, kTextLimit));
}

std::string figures_of(const TensorPart& tensor) {
  std::vector<std::string> sizes;
  for (const int64_t size : tensor.shape) sizes.push_back(std::to_string(size));
  return tensor.dtype + " [" + listed(sizes) + "]  " + format_bytes(tensor.bytes);
}

/// Adds a line for all tensors, `total`, and one for each.
void add_tensors(Page& out, const char* title, const std::string& total,
                 const std::vector<TensorPart>& tensors) {
  constexpr size_t kLeastName = 16;
  add_line(out, title, total);
  size_t longest = 0, width = 0;
  for (const TensorPart& tensor : tensors) {
    width = std::max(width, std::min<size_t>(tensor.name.size(), 60));
    longest = std::max(longest, figures_of(tensor).size());
  }
  const size_t space = out.width - std::min(out.width, 6 + longest);
  const size_t names = out.width == kAnyWidth ? kAnyWidth : std::max(kLeastName, space);
  width = std::min(width, names);
  for (const TensorPart& tensor : tensors) {
    const auto lines = cell_lines(printable(tensor.name), names);
    out << "    " << lines[0] << std::string(width - std::min(width, lines[0].size()), ' ') << "  "
        << figures_of(tensor) << "\n";
    for (size_t i = 1; i < lines.size(); ++i) out << "    " << lines[i] << "\n";
  }
}

void add_tensors(Page& out, const char* title, const std::vector<NamedTensor>& tensors) {
  int64_t elements = 0, bytes = 0;
  std::set<const void*> seen;  // tied tensors count once
  std::vector<TensorPart> parts;
  for (const auto& [name, tensor] : tensors) {
    parts.push_back(part_of({name, tensor}));
    if (tensor.numel() > 0 && !seen.insert(tensor.const_data_ptr()).second) continue;
    elements += tensor.numel();
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  add_tensors(out, title,
              format_count(static_cast<int64_t>(tensors.size())) + " tensors, " +
                  format_count(elements) + " elements, " + format_bytes(bytes),
              parts);
}

/// "any x 3": the first size may be any.
std::string sizes_text(const std::vector<int64_t>& shape,
                       const std::vector<int64_t>& any_size = {}) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool any = std::ranges::find(any_size, static_cast<int64_t>(i)) != any_size.end();
    text += (text.empty() ? "" : " x ") + (any ? "any" : std::to_string(shape[i]));
  }
  return text.empty() ? "any size" : text;
}

std::string input_text(const BundleManifest& m) {
  switch (sample_kind(m)) {
    case SampleKind::image:
      return "images of " + sizes_text(m.sample_shape, m.any_size);
    case SampleKind::tokens:
      return "tokens, up to " + sizes_text(m.sample_shape) + " in the data";
    case SampleKind::features:
      return "numbers, " + sizes_text(m.sample_shape, m.any_size);
  }
  return {};
}

// Without scales.
int64_t elements(const std::vector<NamedTensor>& tensors, const std::filesystem::path& path) {
  int64_t all = 0;
  for (const auto& t : outlined(tensors, scales_in(tensors, "inspect", path)))
    all += t.tensor.numel();
  return all;
}

// The summary shows at most ten labels, so that it stays short.
std::string labels_text(std::vector<std::string> labels) {
  constexpr size_t kShown = 10;
  const bool more = labels.size() > kShown;
  if (more) labels.resize(kShown);
  return labels.empty() ? "" : " (" + listed(labels) + (more ? ", ...)" : ")");
}

void add_summary(Page& out, const BundleManifest& m, int64_t weights) {
  const std::string name =
      m.model.name.empty() ? "a model outside the registry" : printable(m.model.name);
  add_line(out, "model", name + ", " + format_count(weights) + " weights (parameters and buffers)");
  add_line(out, "input", input_text(m));
  const auto outputs = has_one_score(m) ? std::optional<int64_t>(2) : class_count(m);
  add_line(out,
           has_several_labels(m) ? "labels"
           : gives_classes(m)    ? "classes"
                                 : "outputs",
           (outputs ? format_count(*outputs) : "unknown") + labels_text(m.labels));
  std::string measured;
  for (const auto& metric : m.metrics)
    measured +=
        (measured.empty() ? "" : ", ") + printable(metric.name) + " " + number(metric.value);
  if (!measured.empty()) add_line(out, "metrics", measured);
  std::string trained;
  for (const auto& metric : m.trained_metrics)
    trained += (trained.empty() ? "" : ", ") + printable(metric.name) + " " + number(metric.value);
  if (!trained.empty()) add_line(out, "unrounded", trained);
  out << "\n";
}

// A line for each column.
std::string columns_text(const RowCoding& rows) {
  constexpr size_t kShown = 10;
  std::string text;
  for (const ColumnCoding& column : rows.columns) {
    text += printable(column.name) + ": ";
    if (column.kind == "category")
      text += format_count(static_cast<int64_t>(column.texts.size())) + " categories" +
              (column.texts.empty() ? "" : ", " + listed(column.texts, kShown));
    else
      text += "a number of mean " + number(column.mean) + " and deviation " +
              number(column.deviation) + "; where it is missing, " + number(column.missing);
    text += '\n';
  }
  return text;
}

void add_manifest(Page& out, const BundleManifest& m) {
  add_lines(out, "options", m.model.options);
  std::vector<std::string> sizes;
  for (const int64_t size : m.sample_shape) sizes.push_back(std::to_string(size));
  add_line(out, "sample shape", "[" + listed(sizes) + "]");
  add_line(out, "dtype", m.input);
  if (!m.input_name.empty()) add_line(out, "input", printable(m.input_name));
  for (const BundleInput& input : m.more_inputs)
    add_line(out, "input " + printable(input.name),
             input.dtype + " " + sizes_text(input.sample_shape, input.any_size));
  if (m.text_length > 0)
    add_line(out, "text length", std::to_string(m.text_length) + " bytes; longer texts are cut");
  if (m.rows) {
    add_lines(out, "columns", columns_text(*m.rows));
    if (m.rows->targets.empty())
      add_line(out, "target", printable(m.rows->target));
    else
      add_line(out, "targets", listed(m.rows->targets));
  }
  if (!m.targets.empty()) add_line(out, "targets", listed(m.targets));
  if (m.weights == "fp8") add_line(out, "weights", "fp8: float8_e4m3fn, a float32 scale a row");
  if (m.weights == "int8") add_line(out, "weights", "int8, a float32 scale a row");
  if (m.weights == "bf16" || m.weights == "fp16")
    add_line(out, "weights", m.weights + ": matrices in 16 bits");
  if (!m.transforms.steps().empty())
    add_lines(out, "transforms", config::to_yaml(config::to_node(m.transforms)));
  for (const std::string& name : m.unknown_transforms)
    add_line(out, "unknown",
             "this program has no transform '" + printable(name) +
                 "', so it cannot predict with the bundle");
  add_line(out, "activation", m.activation);
  if (!m.loss.empty()) add_line(out, "loss", m.loss);
  if (!m.labels.empty())
    add_line(out, "labels", std::to_string(m.labels.size()) + ": " + listed(m.labels));
  add_line(out, "written by",
           "Tare " + printable(m.tare_version) + ", LibTorch " + printable(m.libtorch_version));
}

void add_title(Page& out, const std::filesystem::path& path, const std::string& rest) {
  out << printable(path.string(), kTextLimit) << ": " << rest << "\n";
}

std::string row_text(const nlohmann::json& row) {
  std::string text;
  const auto add = [&](const std::string& name, const nlohmann::json& value) {
    if (value.is_number())
      text += (text.empty() ? "" : ", ") + printable(name) + " " + number(value.get<double>());
  };
  for (const char* name : {"train_loss", "valid_loss"})
    if (row.contains(name)) add(name, row[name]);
  if (!row.contains("metrics") || !row["metrics"].is_array()) return text;
  for (const auto& metric : row["metrics"])
    if (metric.is_object() && metric.contains("value"))
      add(metric.value("name", ""), metric["value"]);
  return text;
}

// A Learner's checkpoint has this state; the state of another writer is shown as it is, below.
void add_progress(Page& out, const std::string& text) {
  const auto state = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!state.is_object() || !state.contains("epochs_done") ||
      !state["epochs_done"].is_number_unsigned())
    return;
  add_line(out, "trained",
           format_count(state["epochs_done"].get<int64_t>()) + " whole epochs" +
               (state.contains("fit") ? ", saved inside a fit, which can be resumed" : ""));
  if (state.contains("history") && state["history"].is_array() && !state["history"].empty())
    add_line(out, "metrics", row_text(state["history"].back()));
  out << "\n";
}

void inspect_checkpoint(Page& out, const std::filesystem::path& path) {
  try {
    const auto loaded = checkpoint::load(path);
    add_title(out, path, "checkpoint, verified");
    add_line(out, "model",
             format_count(elements(loaded.model, path)) + " weights (parameters and buffers)");
    add_progress(out, loaded.state);
    add_line(out, "written by",
             "Tare " + printable(loaded.tare_version) + ", LibTorch " +
                 printable(loaded.libtorch_version));
    add_line(out, "state", printable(loaded.state, kTextLimit));
    add_tensors(out, "model", loaded.model);
    if (!loaded.optimizer.empty()) add_tensors(out, "optimizer", loaded.optimizer);
    if (!loaded.extra.empty()) add_tensors(out, "extra", loaded.extra);
  } catch (const FormatError& error) {
    if (!checkpoint::exists(path)) throw;
    out.is_damaged = true;
    add_title(out, path, "checkpoint, damaged");
    add_line(out, "problem", error.what());
  }
}

void inspect_unreadable(Page& out, const std::filesystem::path& path, const FormatError& error) {
  const std::string kind = kind_of_damaged(path);
  if (kind.empty()) throw error;
  out.is_damaged = true;
  const auto size = format_bytes(static_cast<int64_t>(std::filesystem::file_size(path)));
  add_title(out, path, (kind == "bundle" ? kind : kind + " file") + ", " + size + ", damaged");
  add_line(out, "problem", error.what());
}

void inspect_torch(Page& out, const std::filesystem::path& path) {
  try {
    const auto file = checkpoint::TorchFile::open(path);
    add_title(out, path,
              "state dict of PyTorch, " + format_bytes(file.file_bytes()) +
                  ", well-formed (its checksums are not compared)");
    if (!file.place().empty()) add_line(out, "place", printable(file.place()));
    if (!file.others().empty()) add_line(out, "not read", listed(file.others(), kShownKeys));
    add_tensors(out, "tensors", file.tensors());
  } catch (const FormatError& error) {
    out.is_damaged = true;
    add_title(out, path, "file of PyTorch, which cannot be read");
    add_line(out, "problem", error.what());
  }
}

void inspect_readable(Page& out, const std::filesystem::path& path) {
  const auto file = checkpoint::SafeTensors::open(path);
  const std::string size = format_bytes(file.file_bytes());
  if (file.metadata().contains("tare")) {
    try {
      const Bundle bundle = open_to_describe(path);
      add_title(out, path, "bundle, " + size + ", verified");
      add_summary(out, bundle.manifest(), bundle.elements());
      add_manifest(out, bundle.manifest());
    } catch (const FormatError& error) {
      out.is_damaged = true;
      add_title(out, path, "bundle, " + size + ", damaged");
      add_line(out, "problem", error.what());
    }
  } else {
    add_title(out, path, "safetensors file, " + size + ", well-formed (it has no checksums)");
    for (const auto& [key, value] : file.metadata())
      add_line(out, "metadata", printable(key) + ": " + printable(value));
  }
  add_tensors(out, "tensors", file.all());
}

}  // namespace

TensorPart part_of(const NamedTensor& tensor) {
  const std::string dtype = checkpoint::describe(tensor.tensor.scalar_type(), {});  // "float32 []"
  return {.name = tensor.name,
          .dtype = dtype.substr(0, dtype.find(' ')),
          .shape = tensor.tensor.sizes().vec(),
          .bytes = static_cast<int64_t>(tensor.tensor.nbytes())};
}

Description describe(const std::filesystem::path& path, const FileParts& parts, size_t width) {
  Page out{.width = width, .is_damaged = !parts.problem.empty()};
  const char* state = out.is_damaged   ? "damaged"
                      : parts.verified ? "verified"
                                       : "well-formed (it has no hashes of Tare)";
  add_title(out, path, parts.kind + " file, " + format_bytes(parts.bytes) + ", " + state);
  if (out.is_damaged) add_line(out, "problem", parts.problem);
  int64_t bytes = 0;
  uint64_t elements = 0;  // a damaged file may name any shape
  for (const TensorPart& tensor : parts.tensors) {
    bytes += tensor.bytes;
    uint64_t count = 1;
    for (const int64_t size : tensor.shape) count *= static_cast<uint64_t>(size);
    elements += count;
  }
  if (parts.manifest) {
    add_summary(out, *parts.manifest, static_cast<int64_t>(elements));
    add_manifest(out, *parts.manifest);
  }
  add_tensors(out, "tensors",
              format_count(std::ssize(parts.tensors)) + " tensors, " + format_bytes(bytes),
              parts.tensors);
  return {out.text.str(), out.is_damaged};
}

Description inspect(const std::filesystem::path& path, size_t width) {
  Page out{.width = width};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    inspect_checkpoint(out, path);
  } else if (checkpoint::is_torch_file(path)) {
    inspect_torch(out, path);
  } else {
    try {
      inspect_readable(out, path);
    } catch (const FormatError& damaged) {
      inspect_unreadable(out, path, damaged);
    }
  }
  return {out.text.str(), out.is_damaged};
}

}  // namespace tare
