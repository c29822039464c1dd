// Finds the weights of an ONNX model.
//
// Format: onnx/onnx.proto of ONNX 1.13, in the wire format of Protocol Buffers.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "tare/base/error.h"
#include "tare/data/protobuf.h"
#include "tare/interchange/found_file.h"
#include "tare/interchange/onnx_fields.h"

namespace tare::interchange {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& part,
                         const std::string& problem) {
  throw FormatError(kReadFile, path.string(), part, problem);
}

struct Dtype {
  int64_t number = 0;
  const char* name = "";
  int64_t bytes = 0;  // of an element
};

const Dtype* dtype_of(int64_t number) {
  static constexpr std::array kAll{
      Dtype{1, "float32", 4},  Dtype{2, "uint8", 1},   Dtype{3, "int8", 1},
      Dtype{4, "uint16", 2},   Dtype{5, "int16", 2},   Dtype{6, "int32", 4},
      Dtype{7, "int64", 8},    Dtype{9, "bool", 1},    Dtype{10, "float16", 2},
      Dtype{11, "float64", 8}, Dtype{12, "uint32", 4}, Dtype{13, "uint64", 8},
      Dtype{16, "bfloat16", 2}};
  const auto found = std::ranges::find(kAll, number, &Dtype::number);
  return found == kAll.end() ? nullptr : &*found;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Holds a TensorProto.
struct Initializer {
  FoundTensor tensor{};
  std::string_view raw{};                         // its bytes in the message
  std::map<std::string, std::string> external{};  // where they are in another file
  bool is_elsewhere = false;
};

class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path), file_(path.string()) {
    found_.mappings.emplace_back(path);
  }

  FoundFile read() {
    const auto all = found_.mappings.front().bytes();
    const std::string_view text(reinterpret_cast<const char*>(all.data()), all.size());
    std::string_view graph;
    ProtobufReader model(text, kReadFile, file_);
    while (const auto field = model.next()) {
      if (field->number == model_field::kGraph) graph = model.bytes_of(*field, "graph");
      if (field->number == model_field::kMetadata)
        add_metadata(model.bytes_of(*field, "metadata"), model.below(*field, "metadata"));
    }
    if (graph.data() == nullptr) refuse(path_, "graph", "is missing");
    ProtobufReader initializers(graph, kReadFile, file_);
    while (const auto field = initializers.next())
      if (field->number == graph_field::kInitializer)
        add(initializer(initializers.below(*field, "initializer")));
    add_rest(text);
    return std::move(found_);
  }

 private:
  void add_metadata(std::string_view text, ProtobufReader entry) {
    std::string key, value;
    while (const auto field = entry.next()) {
      if (field->number == 1) key = entry.bytes_of(*field, "metadata");
      if (field->number == 2) value = entry.bytes_of(*field, "metadata");
    }
    if (key == kManifestKey) found_.manifest = value;
    if (key != kSealKey) return;
    found_.seal = read_seal(value, path_);
    apart_.push_back(text);
  }

  void add(Initializer one) {
    if (!is_weight(one)) return;
    if (one.is_elsewhere)
      one.tensor.bytes = elsewhere(one);
    else
      apart_.push_back(one.raw);
    found_.tensors.push_back(std::move(one.tensor));
  }

  /// Takes what is beside the hashes and the bytes of the weights.
  void add_rest(std::string_view text) {
    std::erase_if(apart_, [](std::string_view part) { return part.empty(); });
    std::ranges::sort(apart_, {}, [](std::string_view part) { return part.data(); });
    size_t kept = 0;
    for (const std::string_view part : apart_) {
      const auto begin = static_cast<size_t>(part.data() - text.data());
      if (begin < kept) continue;  // two graphs, of which the last counts
      found_.rest += text.substr(kept, begin - kept);
      kept = begin + part.size();
    }
    found_.rest += text.substr(kept);
  }

  /// Whether it is a tensor of the model, and no constant of the translation: only models of other
  /// programs have no list of them.
  [[nodiscard]] bool is_weight(const Initializer& one) const {
    return !found_.seal || found_.seal->tensors.contains(one.tensor.part.name);
  }

  Initializer initializer(ProtobufReader reader) const {
    Initializer one;
    int64_t type = 0;
    TensorPart& part = one.tensor.part;
    while (const auto field = reader.next()) switch (field->number) {
        case tensor_field::kDims:
          reader.add_integers(*field, part.shape, "dims");
          break;
        case tensor_field::kType:
          type = static_cast<int64_t>(field->value);
          break;
        case tensor_field::kName:
          part.name = reader.bytes_of(*field, "name");
          break;
        case tensor_field::kRaw:
          one.raw = reader.bytes_of(*field, "raw_data");
          break;
        case tensor_field::kExternal: {
          ProtobufReader entry = reader.below(*field, "external_data");
          std::string key, value;
          while (const auto text = entry.next())
            (text->number == 1 ? key : value) = entry.bytes_of(*text, "external_data");
          one.external[key] = value;
          break;
        }
        case tensor_field::kLocation:
          one.is_elsewhere = field->value == 1;
          break;
        default:
          break;
      }
    const Dtype* dtype = dtype_of(type);
    part.dtype = dtype ? dtype->name : "type " + std::to_string(type);
    part.bytes = static_cast<int64_t>(one.raw.size());
    one.tensor.bytes = as_bytes(one.raw);
    const auto bytes = dtype ? bytes_for(part.shape, dtype->bytes) : std::nullopt;
    if (dtype && !bytes) refuse(path_, "tensor " + printable(part.name), "has an impossible shape");
    // Numbers of other programs may stand in other fields of the message.
    if (!one.is_elsewhere && bytes && one.raw.data() != nullptr &&
        static_cast<int64_t>(one.raw.size()) != *bytes)
      refuse(path_, "tensor " + printable(part.name),
             "has " + std::to_string(one.raw.size()) + " bytes, and its shape needs " +
                 std::to_string(*bytes));
    if (bytes) part.bytes = *bytes;
    return one;
  }

  /// Returns the bytes of a weight in another file, which is in the folder of the model.
  std::span<const std::byte> elsewhere(const Initializer& one) {
    const std::string part = "tensor " + printable(one.tensor.part.name);
    const auto text = [&](const char* key) {
      const auto at = one.external.find(key);
      return at == one.external.end() ? std::string() : at->second;
    };
    const auto number = [&](const char* key) {
      const std::string digits = text(key);
      constexpr size_t kMost = 18;
      if (digits.empty() || digits.size() > kMost ||
          digits.find_first_not_of("0123456789") != std::string::npos)
        refuse(path_, part, std::string("has no ") + key + " in its file");
      return static_cast<size_t>(std::stoll(digits));
    };
    const fs::path name = text("location");
    if (name.empty() || name != name.filename() || name == "..")
      refuse(path_, part,
             "lies in '" + printable(name.string()) +
                 "', which is no file in the folder of the model");
    if (name.string() != other_) {
      other_ = name.string();
      found_.mappings.emplace_back(path_.parent_path() / name);
    }
    const auto all = found_.mappings.back().bytes();
    const size_t offset = number("offset"), length = number("length");
    if (offset > all.size() || length > all.size() - offset ||
        static_cast<int64_t>(length) != one.tensor.part.bytes)
      refuse(path_, part, "does not fit into '" + printable(other_) + "'");
    return all.subspan(offset, length);
  }

  const fs::path& path_;
  std::string file_, other_;
  std::vector<std::string_view> apart_;  // parts of the file that have no place in FoundFile::rest
  FoundFile found_;
};

}  // namespace

FoundFile find_onnx(const fs::path& path) { return Reader(path).read(); }

}  // namespace tare::interchange
