// From a bundle's manifest and tensors to a graph, its verification, and a file.
#include "tare/interchange/export_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/inference/manifest_json.h"
#include "tare/interchange/add_transforms.h"
#include "tare/interchange/fold_norms.h"
#include "tare/interchange/found_file.h"
#include "tare/interchange/gguf.h"
#include "tare/interchange/lent_storage.h"
#include "tare/interchange/onnx.h"
#include "tare/interchange/onnx_parts.h"
#include "tare/interchange/pt2.h"
#include "tare/interchange/read_file.h"
#include "tare/interchange/replay.h"
#include "tare/interchange/simplify.h"
#include "tare/interchange/trace_graph.h"
#include "tare/model/coded_weight.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/runtime/keep_generator.h"

namespace tare::interchange {
namespace {

constexpr const char* kExport = "tare export";
constexpr double kMostDifference = 1e-5;
constexpr std::array<int64_t, 3> kBatches{1, 2, kLargestCompared};

/// Makes the model of the registry, with weights of any values.
Model model_of(const BundleManifest& manifest) {
  if (manifest.model.name == "torchscript")
    throw ConfigError(kExport,
                      "the operators of a TorchScript program are not followed: export it from its "
                      "own source in Python, or export safetensors");
  if (manifest.model.name.empty())
    throw ConfigError(kExport,
                      "the model is not in the registry, so that nothing says what it computes: "
                      "add it by models::add(), call export_to() of its Learner with this format, "
                      "or export safetensors");
  return models::make(manifest.model);
}

std::vector<GraphInput> inputs_of(const BundleManifest& manifest) {
  const std::vector<int64_t> any = any_size(manifest);
  const auto input = [](const std::string& name, const std::string& dtype,
                        const std::vector<int64_t>& shape, const std::vector<int64_t>& any_dims) {
    return GraphInput{.name = name,
                      .type = bundle_dtype(dtype) == c10::kByte ? c10::kFloat : bundle_dtype(dtype),
                      .sample_shape = shape,
                      .length = any_dims.empty() ? -1 : any_dims.front()};
  };
  std::vector<GraphInput> all{input(manifest.input_name.empty() ? "input" : manifest.input_name,
                                    manifest.input, manifest.sample_shape, any)};
  for (const BundleInput& more : manifest.more_inputs)
    all.push_back(input(more.name, more.dtype, more.sample_shape, more.any_size));
  return all;
}

Graph graph_of(Model& model, const std::vector<GraphInput>& inputs, bool folds_norms) {
  Graph graph = trace_graph(model, inputs);
  simplify(graph);
  if (folds_norms) fold_norms(graph);
  return graph;
}

/// Returns values that the model takes as an input: codes and tokens below two are in any
/// vocabulary, also those among the numbers of a table, and a length of one is in any text.
at::Tensor values_for(const Value& value, const AnySizes& sizes, bool of_table) {
  const std::vector<int64_t> shape = shape_of(value, sizes);
  if (of_table) return at::randint(2, shape, at::TensorOptions(value.type));
  if (c10::isFloatingType(value.type)) return at::randn(shape).to(value.type);
  if (shape.size() < 2 || value.type == c10::kBool)
    return at::ones(shape, at::TensorOptions(value.type));
  return at::randint(2, shape, at::TensorOptions(value.type));
}

/// Returns the largest difference of the graph from the model behind the steps, over some batches.
double compare(const Graph& graph, const std::vector<Scaling>& steps,
               const std::vector<GraphInput>& inputs, const Model& model, bool of_table) {
  const c10::AutoGradMode without_gradients(false);
  double largest = 0;
  for (size_t i = 0; i < kBatches.size(); ++i) {
    AnySizes sizes{.batch = kBatches[i]};
    for (const GraphInput& input : inputs)
      if (input.length >= 0) {
        const int64_t longest = input.sample_shape.at(static_cast<size_t>(input.length));
        sizes.length = std::max<int64_t>(1, longest / static_cast<int64_t>(i + 1));
      }
    std::vector<at::Tensor> values;
    NamedTensors named;
    for (size_t n = 0; n < inputs.size(); ++n) {
      values.push_back(values_for(graph.values[graph.inputs[n]], sizes, of_table));
      at::Tensor input = values.back();
      for (const Scaling& step : steps)
        if (n == step.input) input = step.apply(input);
      named.push_back({inputs[n].name, std::move(input)});
    }
    const Outputs expected = model.forward(Batch(std::move(named), {}));
    const std::vector<at::Tensor> got = replay(graph, values);
    size_t n = 0;
    for (const at::Tensor& output : expected)
      largest = std::max(largest, difference(got.at(n++), output));
  }
  return largest;
}

/// Writes the weights alone, with the manifest and the hashes.
void write_weights(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                   const std::string& manifest, const checkpoint::Digest& digest) {
  std::vector<TensorPart> parts;
  for (const NamedTensor& one : tensors)
    if (digest.tensors.contains(one.name)) parts.push_back(part_of(one));
  const checkpoint::Digest seal{.layout = checkpoint::hash(manifest + outline(parts)),
                                .tensors = digest.tensors};
  checkpoint::write(path, tensors, {{kManifestKey, manifest}, {kSealKey, seal_text(seal)}});
}

GgufType gguf_type(const std::string& weights) {
  return weights == "q8_0" ? GgufType::q8_0 : weights == "fp16" ? GgufType::f16 : GgufType::f32;
}

/// Writes what a model computes, as pt2 or onnx.
ExportedFile write_graph(const std::filesystem::path& path, const std::string& format,
                         const BundleManifest& manifest, const std::vector<NamedTensor>& tensors,
                         const FileOptions& options) {
  const runtime::KeepGenerator keep(c10::kCPU);
  std::optional<Model> made;
  if (!options.module || !manifest.model.name.empty()) {
    made = model_of(manifest);
    load_stored(*made, tensors, /*strict=*/true, kExport, path);
  }
  Model& model = made ? *made : *options.module;
  LentStorage on_host;
  on_host.copy_to_host(model.state());
  const EvaluationScope evaluation(model);
  const std::vector<GraphInput> inputs = inputs_of(manifest);
  Graph graph = graph_of(model, inputs, options.fold_norms);
  BundleManifest left = manifest;
  const std::vector<Scaling> steps = add_transforms(graph, left);
  ExportedFile report{.largest_batch = kBatches.back()};
  report.difference = compare(graph, steps, inputs, model, manifest.rows.has_value());
  if (!(report.difference <= kMostDifference))
    throw ConfigError(kExport, "the graph of the model differs from the model by " +
                                   std::to_string(report.difference) +
                                   " of its largest output: the forward does what its operators "
                                   "do not show; export safetensors, or report it");
  const std::string about = manifest_json(left, checkpoint::digest(tensors));
  if (format == "pt2")
    write_pt2(path, graph, {.extra = {{kManifestFile, about}}});
  else
    report.second =
        write_onnx(path, graph, {.metadata = {{kManifestKey, about}}, .opset = options.opset});
  return report;
}

/// Reads the file back. Throws FormatError and removes it where it is not as it was written.
void verify_written(const std::filesystem::path& path, const std::filesystem::path& second) {
  try {
    verify_file(path);
  } catch (const FormatError&) {
    io::remove_all(path);
    if (!second.empty()) io::remove_all(second);
    throw;
  }
}

/// Returns the format, which has what the options ask for.
const FileFormat& chosen_format(const std::string& format, const FileOptions& options) {
  const FileFormat& chosen = file_format(format);
  const std::string& weights = options.weights;
  if (options.fold_norms && !chosen.graph)
    throw ConfigError(kExport, "--fold-norms", "is for graphs, and " + chosen.name + " has none",
                      "omit it, or the format onnx or pt2", "");
  if (options.opset != kOnnxOpset && chosen.name != "onnx")
    throw ConfigError(kExport, "--opset", "is for onnx, and the format is " + chosen.name,
                      "omit it, or the format onnx", std::to_string(options.opset));
  if (!is_opset(options.opset))
    throw ConfigError(kExport, "--opset", "is no version of ONNX's operators that Tare writes",
                      "18 or 23", std::to_string(options.opset));
  if (!weights.empty() && std::ranges::find(chosen.weights, weights) == chosen.weights.end())
    throw ConfigError(kExport, "--weights", "is no storage of " + chosen.name,
                      listed(chosen.weights), weights);
  return chosen;
}

}  // namespace

const std::vector<FileFormat>& file_formats() {
  static const std::vector<FileFormat> kAll{
      {"gguf", ".gguf", "llama.cpp and its relatives", {"fp32", "fp16", "q8_0"}},
      {"onnx", ".onnx", "ONNX Runtime, TensorRT, OpenVINO", {"fp32"}, true},
      {"pt2", ".pt2", "torch.export.load() of PyTorch, from 2.11 on", {"fp32"}, true},
      {"safetensors", ".safetensors", "safetensors of Python, Rust and others", {"fp32"}}};
  return kAll;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const FileFormat& format : file_formats()) names.push_back(format.name);
  return names;
}

bool is_opset(int64_t version) { return version == kOnnxOpset || version == kOnnxAttentionOpset; }

const FileFormat& file_format(const std::string& name) {
  const auto found = std::ranges::find(file_formats(), name, &FileFormat::name);
  if (found != file_formats().end()) return *found;
  throw ConfigError(kExport, "--format", "is not known", "tare, " + listed(format_names()), name);
}

void check_replaceable(const std::filesystem::path& path, const std::string& format) {
  if (!std::filesystem::exists(path)) return;
  const std::string name = "'" + printable(path.string()) + "' ";
  if (!std::filesystem::is_regular_file(path))
    throw ConfigError(kExport, name + "is no regular file: give the name of a file");
  if (std::filesystem::file_size(path) == 0) return;  // it is nobody's
  if (format_of(path) == format && is_ours(path)) return;
  throw ConfigError(kExport, name + "would be replaced, and is no " + format +
                                 " file that Tare has written: give another name, or remove the "
                                 "file");
}

void check_file(const std::string& format, const BundleManifest& manifest,
                const FileOptions& options) {
  const FileFormat& chosen = chosen_format(format, options);
  if (chosen.name == "safetensors") return;
  if (chosen.name == "gguf") return check_gpt(manifest);
  const runtime::KeepGenerator keep(c10::kCPU);
  std::optional<Model> made;
  if (!options.module || !manifest.model.name.empty()) made = model_of(manifest);
  Graph graph = graph_of(made ? *made : *options.module, inputs_of(manifest), options.fold_norms);
  BundleManifest left = manifest;
  add_transforms(graph, left);
  chosen.name == "pt2" ? check_pt2(graph) : check_onnx(graph, options.opset);
}

ExportedFile export_file(const std::filesystem::path& path, const std::string& format,
                         const BundleManifest& manifest, const std::vector<NamedTensor>& tensors,
                         const FileOptions& options) {
  const FileFormat& chosen = chosen_format(format, options);
  check_replaceable(path, format);
  std::vector<NamedTensor> plain = dequantised(tensors, kExport, path);
  for (NamedTensor& one : plain) one.tensor = one.tensor.cpu();  // those of the host stay
  const checkpoint::Digest digest = checkpoint::digest(plain);
  ExportedFile report;
  if (chosen.name == "safetensors")
    write_weights(path, plain, manifest_json(manifest, digest), digest);
  else if (chosen.name == "gguf")
    write_gpt_gguf(path, manifest, plain, gguf_type(options.weights),
                   manifest_json(manifest, digest));
  else
    report = write_graph(path, format, manifest, plain, options);
  verify_written(path, report.second);
  report.bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  if (!report.second.empty())
    report.bytes += static_cast<int64_t>(std::filesystem::file_size(report.second));
  return report;
}

}  // namespace tare::interchange
