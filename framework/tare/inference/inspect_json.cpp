// Describes bundles, checkpoints and files of weights as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/torch_file.h"
#include "tare/config/node_json.h"
#include "tare/inference/bundle.h"
#include "tare/inference/damaged_file.h"
#include "tare/inference/inspect.h"
#include "tare/inference/one_score.h"

namespace tare {
namespace {

using nlohmann::json;

json to_json(const std::vector<TensorPart>& tensors) {
  json list = json::array();
  for (const TensorPart& tensor : tensors)
    list.push_back({{"name", tensor.name},
                    {"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes}});
  return list;
}

json to_json(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorPart> parts;
  for (const NamedTensor& tensor : tensors) parts.push_back(part_of(tensor));
  return to_json(parts);
}

const char* name_of(SampleKind kind) {
  return kind == SampleKind::image ? "image" : kind == SampleKind::tokens ? "tokens" : "features";
}

json options_of(const ModelSpec& model) {
  try {
    return config::json_of(config::parse_text(model.options, "model options"));
  } catch (const ConfigError&) {  // a model outside the registry may have options of another form
    return model.options;
  }
}

void add_manifest(json& out, const BundleManifest& m) {
  out["model"] = {{"name", m.model.name}, {"options", options_of(m.model)}};
  out["input"] = {
      {"name", m.input_name},    {"kind", name_of(sample_kind(m))},
      {"dtype", m.input},        {"shape", m.sample_shape},
      {"any_size", any_size(m)}, {"levels", m.levels.empty() ? json() : json(m.levels)}};
  out["more_inputs"] = json::array();
  for (const BundleInput& input : m.more_inputs)
    out["more_inputs"].push_back({{"name", input.name},
                                  {"dtype", input.dtype},
                                  {"shape", input.sample_shape},
                                  {"any_size", input.any_size}});
  out["text_length"] = m.text_length;
  out["rows"] = m.rows ? config::json_of(config::to_node(*m.rows)) : json();
  const auto outputs = class_count(m);
  out["outputs"] = outputs ? json(*outputs) : json();
  out["classes"] = has_one_score(m) ? json(2) : gives_classes(m) ? out["outputs"] : json();
  out["labels"] = m.labels;
  out["targets"] = target_names(m);
  out["transforms"] = config::json_of(config::to_node(m.transforms));
  out["unknown_transforms"] = m.unknown_transforms;
  out["activation"] = m.activation;
  out["loss"] = m.loss;
  out["weights"] = m.weights;
  for (const auto& [name, figures] :
       {std::pair("metrics", &m.metrics), {"trained_metrics", &m.trained_metrics}}) {
    out[name] = json::array();
    for (const auto& metric : *figures) {
      const json value = std::isfinite(metric.value) ? json(metric.value) : json();
      out[name].push_back({{"name", metric.name}, {"value", value}});
    }
  }
  out["tare"] = m.tare_version;
  out["libtorch"] = m.libtorch_version;
}

uintmax_t bytes_in(const std::filesystem::path& folder) {
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

void add_checkpoint(json& out, const std::filesystem::path& path) {
  out["kind"] = "checkpoint";
  out["bytes"] = bytes_in(path);
  try {
    const auto loaded = checkpoint::load(path);
    out["verified"] = true;
    out["tare"] = loaded.tare_version;
    out["libtorch"] = loaded.libtorch_version;
    out["state"] = json::parse(loaded.state);
    out["tensors"] = to_json(loaded.model);
    out["optimizer"] = to_json(loaded.optimizer);
    out["extra"] = to_json(loaded.extra);
  } catch (const FormatError& error) {
    if (!checkpoint::exists(path)) throw;
    out["verified"] = false;
    out["problem"] = error.what();
  }
}

void add_unreadable(json& out, const std::filesystem::path& path, const FormatError& error) {
  out["kind"] = kind_of_damaged(path);
  if (out["kind"] == "") throw error;
  out["bytes"] = std::filesystem::file_size(path);
  out["verified"] = false;
  out["problem"] = error.what();
}

void add_torch(json& out, const std::filesystem::path& path) {
  out["kind"] = "pytorch";
  out["bytes"] = std::filesystem::file_size(path);
  try {
    const auto file = checkpoint::TorchFile::open(path);
    out["verified"] = nullptr;  // its checksums are not compared
    out["place"] = file.place();
    out["not_read"] = file.others();
    out["tensors"] = to_json(file.tensors());
  } catch (const FormatError& error) {
    out["verified"] = false;
    out["problem"] = error.what();
  }
}

void add_readable(json& out, const std::filesystem::path& path) {
  const auto file = checkpoint::SafeTensors::open(path);
  out["bytes"] = file.file_bytes();
  if (file.metadata().contains("tare")) {
    out["kind"] = "bundle";
    try {
      add_manifest(out, open_to_describe(path).manifest());
      out["verified"] = true;
    } catch (const FormatError& error) {
      out["verified"] = false;
      out["problem"] = error.what();
    }
  } else {
    out["kind"] = "safetensors";
    out["verified"] = nullptr;  // it has no checksums
    out["metadata"] = file.metadata();
  }
  out["tensors"] = to_json(file.all());
}

Description finished(const json& out) {
  return {out.dump(2, ' ', false, json::error_handler_t::replace) + '\n', out["verified"] == false};
}

}  // namespace

Description describe_json(const std::filesystem::path& path, const FileParts& parts) {
  json out{{"path", path.string()}, {"kind", parts.kind}, {"bytes", parts.bytes}};
  if (parts.manifest) add_manifest(out, *parts.manifest);
  out["verified"] = parts.verified ? json(*parts.verified) : json();
  if (!parts.problem.empty()) out["problem"] = parts.problem;
  out["tensors"] = to_json(parts.tensors);
  return finished(out);
}

Description inspect_json(const std::filesystem::path& path) {
  json out{{"path", path.string()}};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    add_checkpoint(out, path);
  } else if (checkpoint::is_torch_file(path)) {
    add_torch(out, path);
  } else {
    try {
      add_readable(out, path);
    } catch (const FormatError& damaged) {
      add_unreadable(out, path, damaged);
    }
  }
  return finished(out);
}

}  // namespace tare
