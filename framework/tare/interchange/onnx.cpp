// The model around the nodes: inputs, outputs, weights.
#include "tare/interchange/onnx.h"

#include <variant>

#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
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

Message value_info(const Value& value, const std::string& name) {
  constexpr uint32_t kName = 1, kType = 2, kTensor = 1, kElement = 1, kShape = 2, kDim = 1,
                     kDimValue = 1, kDimSymbol = 2;
  Message shape;
  for (const Size& size : value.sizes) {
    Message dim;
    if (size.fixed())
      dim.number(kDimValue, size.constant);
    else if (size == Size{.batch = 1})
      dim.text(kDimSymbol, "batch");
    else if (size == Size{.length = 1})
      dim.text(kDimSymbol, "length");  // another size depends on these, and has no name
    shape.message(kDim, dim);
  }
  Message tensor;
  tensor.number(kElement, onnx_type(value.type)).message(kShape, shape);
  return Message().text(kName, name).message(kType, Message().message(kTensor, tensor));
}

Message tensor_head(const Weight& weight) {
  Message head;
  for (const int64_t size : weight.tensor.sizes()) head.number(tensor_field::kDims, size);
  head.number(tensor_field::kType, onnx_type(weight.tensor.scalar_type()))
      .text(tensor_field::kName, weight.name);
  return head;
}

Message entry(const std::string& key, const std::string& value) {
  return Message().text(1, key).text(2, value);
}

/// Returns the message of a weight in another file.
Message external(const Weight& weight, const std::string& file, int64_t offset) {
  Message tensor = tensor_head(weight);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", file},
                                   {"offset", std::to_string(offset)},
                                   {"length", std::to_string(weight.tensor.nbytes())}})
    tensor.message(tensor_field::kExternal, entry(key, value));
  return tensor.number(tensor_field::kLocation, 1);
}

}  // namespace

void check_onnx(const Graph& graph) { (void)onnx_nodes(graph); }

std::filesystem::path write_onnx(const std::filesystem::path& path, const Graph& graph,
                                 const OnnxOptions& options) {
  const OnnxNodes made = onnx_nodes(graph);
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
    body.add(Message().text(graph_field::kNode, node).bytes());
  body.add(Message().text(graph_field::kName, "model").bytes());
  for (const std::string& constant : made.constants)
    body.add(Message().text(graph_field::kInitializer, constant).bytes());
  for (const Weight& weight : graph.weights) {
    if (!used[weight.value]) continue;
    seal.tensors[weight.name] = hash_of(weight.tensor);
    if (!inside) {
      const auto at = static_cast<int64_t>(weights.size());
      const int64_t gap = (kDataAlignment - at % kDataAlignment) % kDataAlignment;
      weights.add(std::string(static_cast<size_t>(gap), '\0'));
      body.add(Message()
                   .message(graph_field::kInitializer,
                            external(weight, data.filename().string(), at + gap))
                   .bytes());
      weights.add(weight.tensor);
      continue;
    }
    Message head = tensor_head(weight);
    head.begin(tensor_field::kRaw, weight.tensor.nbytes());
    body.add(Message()
                 .begin(graph_field::kInitializer, head.bytes().size() + weight.tensor.nbytes())
                 .bytes() +
             head.bytes());
    body.add(weight.tensor);
  }
  for (const size_t input : graph.inputs)
    body.add(Message()
                 .message(graph_field::kInput, value_info(graph.values[input], made.names[input]))
                 .bytes());
  for (const size_t output : graph.outputs)
    body.add(
        Message()
            .message(graph_field::kOutput, value_info(graph.values[output], made.names[output]))
            .bytes());
  Message head;
  head.number(model_field::kIrVersion, kOnnxIr).text(model_field::kProducer, "tare");
  head.message(model_field::kOpset, Message().text(1, "").number(2, kOnnxOpset));
  for (const auto& [key, value] : options.metadata)
    head.message(model_field::kMetadata, entry(key, value));
  const Message graph_head = Message().begin(model_field::kGraph, body.size());
  seal.layout = std::string(16, '0');  // as long as a hash
  const size_t seal_bytes = entry(kSealKey, seal_text(seal)).bytes().size();
  seal.layout =
      checkpoint::hash(head.bytes() + Message().begin(model_field::kMetadata, seal_bytes).bytes() +
                       graph_head.bytes() + body.without_tensors());
  head.message(model_field::kMetadata, entry(kSealKey, seal_text(seal)));
  // The data first: a model without its data would be worse than data without a model.
  if (!inside) io::write_atomically(data, [&](io::File& file) { weights.write(file); });
  io::write_atomically(path, [&](io::File& file) {
    file.write(head.bytes());
    file.write(graph_head.bytes());
    body.write(file);
  });
  return inside ? std::filesystem::path() : data;
}

}  // namespace tare::interchange
