// Writes the models of the tests in each format, with inputs and outputs, for readers_test.py.
//
// Usage: interchange_files FOLDER
#include <fstream>
#include <nlohmann/json.hpp>

#include "interchange/modules.h"
#include "tare/interchange/add_transforms.h"
#include "tare/interchange/gguf.h"
#include "tare/interchange/onnx.h"
#include "tare/interchange/pt2.h"
#include "tare/runtime/init.h"

namespace {

using namespace tare;
using namespace tare::interchange;

/// Writes the bytes of a tensor, and returns what a reader needs to know about them.
nlohmann::json write(const std::filesystem::path& path, const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.contiguous();
  const char* const dtype = tensor.scalar_type() == torch::kLong   ? "int64"
                            : tensor.scalar_type() == torch::kBool ? "bool"
                                                                   : "float32";
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(dense.data_ptr()),
             static_cast<std::streamsize>(dense.nbytes()));
  return {{"file", path.filename().string()}, {"dtype", dtype}, {"shape", tensor.sizes().vec()}};
}

/// Returns a manifest with transforms for pictures and for tables.
BundleManifest scaled(const ZooCase& one) {
  BundleManifest manifest{.sample_shape = one.inputs.front().sample_shape};
  if (one.model == "tabular") {
    const auto categories = static_cast<size_t>(one.name == "rows_of_categories" ? 2 : 0);
    manifest.rows = RowCoding{.columns = std::vector<ColumnCoding>(5)};
    for (size_t i = categories; i < 5; ++i)
      manifest.rows->columns[i] = {.mean = 2.5, .deviation = 0.75};
  } else if (manifest.sample_shape.size() == 3) {
    const bool colours = manifest.sample_shape.front() == 3;
    manifest.transforms =
        Transforms{Normalise{{0.25}, {2.0}},
                   colours ? Normalise{{0.1, 0.2, 0.3}, {0.5, 0.6, 0.7}} : Normalise{{0.1}, {0.3}}};
  }
  return manifest;
}

/// Writes inputs and outputs of some batches, and returns what a reader needs to know about them.
nlohmann::json run_of(const std::filesystem::path& folder, const std::string& model_name,
                      const Model& model, const Graph& graph, const std::vector<Scaling>& steps) {
  nlohmann::json runs = nlohmann::json::array();
  for (const AnySizes sizes : {AnySizes{1, 7}, AnySizes{4, 16}, AnySizes{7, 3}}) {
    const std::string name = model_name + "_" + std::to_string(sizes.batch);
    auto inputs = inputs_for(graph, sizes);
    nlohmann::json run{{"inputs", nlohmann::json::array()}};
    for (size_t i = 0; i < inputs.size(); ++i)
      run["inputs"].push_back(write(folder / (name + "_" + std::to_string(i)), inputs[i]));
    for (const Scaling& step : steps) inputs[step.input] = step.apply(inputs[step.input]);
    run["output"] = write(folder / (name + "_output"), output_of(model, inputs));
    runs.push_back(std::move(run));
  }
  return {{"name", model_name}, {"runs", std::move(runs)}};
}

}  // namespace

int main(int argc, char** argv) {
  init({.cuda = CudaMode::off});
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  torch::manual_seed(3);
  nlohmann::json all = nlohmann::json::array(), weights;
  for (const ZooCase& one : zoo_cases()) {
    Model model = one.made();
    const Graph graph = graph_of(model, one.inputs);
    write_pt2(folder / (one.name + ".pt2"), graph, {.extra = {{"tare.json", "{}"}}});
    write_onnx(folder / (one.name + ".onnx"), graph);
    write_onnx(folder / (one.name + ".opset23.onnx"), graph, {.opset = 23});
    if (one.name == "gpt")
      for (const auto& [name, type] : {std::pair<std::string, GgufType>{"f32", GgufType::f32},
                                       {"f16", GgufType::f16},
                                       {"q8_0", GgufType::q8_0}}) {
        BundleManifest manifest{.model = *model.spec(), .labels = {"a", "b"}};
        write_gpt_gguf(folder / ("gpt." + name + ".gguf"), manifest, model.state(), type, "{}");
        for (const NamedTensor& tensor : model.state())
          weights[tensor.name] = write(folder / ("weight_" + tensor.name), tensor.tensor);
      }
    all.push_back(run_of(folder, one.name, model, graph, {}));
    BundleManifest manifest = scaled(one);
    Graph with_steps = graph;
    const std::vector<Scaling> steps = add_transforms(with_steps, manifest);
    if (steps.empty()) continue;
    const std::string name = one.name + "_scaled";
    write_pt2(folder / (name + ".pt2"), with_steps, {.extra = {{"tare.json", "{}"}}});
    write_onnx(folder / (name + ".onnx"), with_steps);
    all.push_back(run_of(folder, name, model, with_steps, steps));
  }
  std::ofstream(folder / "models.json") << all;
  std::ofstream(folder / "weights.json") << weights;
}
