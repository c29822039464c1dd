// The model around the nodes: inputs, outputs, weights.
#include "tare/interchange/onnx.h"

#include <variant>

#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
#include "tare/data/protobuf.h"
#include "tare/interchange/found_file.h"
#include "tare/interchange/onnx_fields.h"
#include "tare/interchange/onnx_nodes.h"

namespace tare::interchange {
namespace {

constexpr int64_t kDataAlignment = 4096;  // so that tensors of a second file can be mapped

/// Is a piece of a file: bytes, or a tensor without gaps.
using Piece = std::variant<std::string, at::Tensor>;

/// Collects the pieces of a message that is too large to be copied.
class Pieces {
 public:
  void add(std::string bytes) {
    size_ += bytes.size();
    pieces_.emplace_back(std::move(bytes));
  }
  void add(const at::Tensor& tensor) {
    size_ += tensor.nbytes();
    pieces_.emplace_back(tensor);
  }
  [[nodiscard]] uint64_t size() const { return size_; }
  /// Returns the pieces that are no tensors, one behind the other.
  [[nodiscard]] std::string without_tensors() const {
    std::string all;
    for (const Piece& piece : pieces_)
      if (const auto* bytes = std::get_if<std::string>(&piece)) all += *bytes;
    return all;
  }
  void write(io::File& file) const {
    for (const Piece& piece : pieces_) {
      if (const auto* bytes = std::get_if<std::string>(&piece)) {
        file.write(*bytes);
        continue;
      }
      const at::Tensor dense = std::get<at::Tensor>(piece).contiguous();
      file.write(dense.const_data_ptr(), dense.nbytes());
    }
  }

 private:
  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

ProtobufWriter value_info(const Value& value, const std::string& name) {
  constexpr uint32_t kName = 1, kType = 2, kTensor = 1, kElement = 1, kShape = 2, kDim = 1,
                     kDimValue = 1, kDimSymbol = 2;
  ProtobufWriter shape;
  for (const Size& size : value.sizes) {
    ProtobufWriter dim;
    if (size.fixed())
      dim.integer(kDimValue, size.constant);
    else if (size == Size{.batch = 1})
      dim.bytes(kDimSymbol, "batch");
    else if (size == Size{.length = 1})
      dim.bytes(kDimSymbol, "length");  // another size depends on these, and has no name
    shape.message(kDim, dim);
  }
  ProtobufWriter tensor;
  tensor.integer(kElement, onnx_type(value.type)).message(kShape, shape);
  return ProtobufWriter()
      .bytes(kName, name)
      .message(kType, ProtobufWriter().message(kTensor, tensor));
}

ProtobufWriter tensor_head(const Weight& weight) {
  ProtobufWriter head;
  for (const int64_t size : weight.tensor.sizes()) head.integer(tensor_field::kDims, size);
  head.integer(tensor_field::kType, onnx_type(weight.tensor.scalar_type()))
      .bytes(tensor_field::kName, weight.name);
  return head;
}

ProtobufWriter entry(const std::string& key, const std::string& value) {
  return ProtobufWriter().bytes(1, key).bytes(2, value);
}

/// Returns the message of a weight in another file.
ProtobufWriter external(const Weight& weight, const std::string& file, int64_t offset) {
  ProtobufWriter tensor = tensor_head(weight);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", file},
                                   {"offset", std::to_string(offset)},
                                   {"length", std::to_string(weight.tensor.nbytes())}})
    tensor.message(tensor_field::kExternal, entry(key, value));
  return tensor.integer(tensor_field::kLocation, 1);
}

}  // namespace

void check_onnx(const Graph& graph, int64_t opset) { (void)onnx_nodes(graph, opset); }

std::filesystem::path write_onnx(const std::filesystem::path& path, const Graph& graph,
                                 const OnnxOptions& options) {
  const OnnxNodes made = onnx_nodes(graph, options.opset);
  int64_t bytes = 0;
  for (const Weight& weight : graph.weights) bytes += static_cast<int64_t>(weight.tensor.nbytes());
  const bool inside = bytes <= options.most_inside_bytes;
  const std::filesystem::path data = path.string() + ".data";

  std::vector<bool> used(graph.values.size(), false);  // ONNX Runtime warns of weights that are not
  for (const Node& node : graph.nodes) each_tensor(node, [&](size_t value) { used[value] = true; });
  for (const size_t output : graph.outputs) used[output] = true;

  Pieces body, weights;
  checkpoint::Digest seal;
  for (const std::string& node : made.nodes)
    body.add(ProtobufWriter().bytes(graph_field::kNode, node).text());
  body.add(ProtobufWriter().bytes(graph_field::kName, "model").text());
  for (const std::string& constant : made.constants)
    body.add(ProtobufWriter().bytes(graph_field::kInitializer, constant).text());
  for (const Weight& weight : graph.weights) {
    if (!used[weight.value]) continue;
    seal.tensors[weight.name] = hash_of(weight.tensor);
    if (!inside) {
      const auto at = static_cast<int64_t>(weights.size());
      const int64_t gap = (kDataAlignment - at % kDataAlignment) % kDataAlignment;
      weights.add(std::string(static_cast<size_t>(gap), '\0'));
      body.add(ProtobufWriter()
                   .message(graph_field::kInitializer,
                            external(weight, data.filename().string(), at + gap))
                   .text());
      weights.add(weight.tensor);
      continue;
    }
    ProtobufWriter head = tensor_head(weight);
    head.begin(tensor_field::kRaw, weight.tensor.nbytes());
    body.add(ProtobufWriter()
                 .begin(graph_field::kInitializer, head.text().size() + weight.tensor.nbytes())
                 .text() +
             head.text());
    body.add(weight.tensor);
  }
  for (const size_t input : graph.inputs)
    body.add(ProtobufWriter()
                 .message(graph_field::kInput, value_info(graph.values[input], made.names[input]))
                 .text());
  for (const size_t output : graph.outputs)
    body.add(
        ProtobufWriter()
            .message(graph_field::kOutput, value_info(graph.values[output], made.names[output]))
            .text());
  ProtobufWriter head;
  constexpr int64_t kIr = 8, kAttentionIr = 11;  // versions of the format that have the opsets
  head.integer(model_field::kIrVersion, options.opset == kOnnxOpset ? kIr : kAttentionIr)
      .bytes(model_field::kProducer, "tare");
  head.message(model_field::kOpset, ProtobufWriter().bytes(1, "").integer(2, options.opset));
  for (const auto& [key, value] : options.metadata)
    head.message(model_field::kMetadata, entry(key, value));
  const ProtobufWriter graph_head = ProtobufWriter().begin(model_field::kGraph, body.size());
  seal.layout = std::string(16, '0');  // as long as a hash
  const size_t seal_bytes = entry(kSealKey, seal_text(seal)).text().size();
  seal.layout = checkpoint::hash(head.text() +
                                 ProtobufWriter().begin(model_field::kMetadata, seal_bytes).text() +
                                 graph_head.text() + body.without_tensors());
  head.message(model_field::kMetadata, entry(kSealKey, seal_text(seal)));
  // The data first: a model without its data would be worse than data without a model.
  if (!inside) io::write_atomically(data, [&](io::File& file) { weights.write(file); });
  io::write_atomically(path, [&](io::File& file) {
    file.write(head.text());
    file.write(graph_head.text());
    body.write(file);
  });
  return inside ? std::filesystem::path() : data;
}

}  // namespace tare::interchange
