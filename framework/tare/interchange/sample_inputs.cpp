// Writes a pickle of protocol 2 (Python, Lib/pickletools.py) with tensors as torch.save() has them.
#include "tare/interchange/sample_inputs.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/checkpoint/zip_writer.h"
#include "tare/interchange/replay.h"

namespace tare::interchange {
namespace {

/// Returns the name of PyTorch's class for memory of a dtype.
std::string storage_class(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return "FloatStorage";
    case c10::ScalarType::Double:
      return "DoubleStorage";
    case c10::ScalarType::Half:
      return "HalfStorage";
    case c10::ScalarType::BFloat16:
      return "BFloat16Storage";
    case c10::ScalarType::Long:
      return "LongStorage";
    case c10::ScalarType::Int:
      return "IntStorage";
    case c10::ScalarType::Byte:
      return "ByteStorage";
    case c10::ScalarType::Bool:
      return "BoolStorage";
    default:
      throw ConfigError("export", std::string("an input is of ") + c10::toString(type) +
                                      ", which a .pt2 file cannot have as an input");
  }
}

/// Collects the instructions of a pickle.
class Pickler {
 public:
  Pickler& code(std::string_view instructions) {
    bytes_ += instructions;
    return *this;
  }
  Pickler& name(const std::string& module, const std::string& name) {
    return code("c" + module + '\n' + name + '\n');
  }
  Pickler& text(std::string_view value) {
    return code("X").little_endian(value.size(), 4).code(value);
  }
  Pickler& number(int64_t value) {  // LONG1 of eight bytes
    return code("\x8a\x08").little_endian(static_cast<uint64_t>(value), 8);
  }
  Pickler& numbers(c10::IntArrayRef values) {
    code("(");
    for (const int64_t value : values) number(value);
    return code("t");
  }
  /// Adds a tensor whose memory is the entry data/`key`.
  Pickler& tensor(const at::Tensor& tensor, const std::string& key) {
    name("torch._utils", "_rebuild_tensor_v2").code("((").text("storage");
    name("torch", storage_class(tensor.scalar_type())).text(key).text("cpu");
    number(tensor.numel()).code("tQ").number(0);
    numbers(tensor.sizes()).numbers(tensor.strides()).code("\x89");  // no gradients
    return name("collections", "OrderedDict").code(")R").code("tR");
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  Pickler& little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xff);
    return *this;
  }
  std::string bytes_;
};

}  // namespace

std::string sample_inputs(const Graph& graph) {
  constexpr int64_t kTwo = 2;  // one would be compiled as a constant
  const AnySizes sizes{.batch = kTwo,
                       .length = graph.longest == 0 ? kTwo : std::min(kTwo, graph.longest)};
  std::vector<at::Tensor> inputs;
  for (const size_t input : graph.inputs) {
    const Value& value = graph.values[input];
    const std::vector<int64_t> shape = shape_of(value, sizes);
    const bool counts = c10::isIntegralType(value.type, /*includeBool=*/true) && shape.size() < 2;
    inputs.push_back(counts ? at::ones(shape, at::TensorOptions(value.type))
                            : at::zeros(shape, at::TensorOptions(value.type)));
  }
  Pickler pickle;
  pickle.code("\x80\x02(");
  for (size_t i = 0; i < inputs.size(); ++i) pickle.tensor(inputs[i], std::to_string(i));
  pickle.code("t}\x86.");  // the pair of the tuple and an empty dict
  std::string file;
  checkpoint::ZipWriter zip(file);
  zip.add("inputs/data.pkl", pickle.bytes());
  zip.add("inputs/byteorder", "little");
  for (size_t i = 0; i < inputs.size(); ++i)
    zip.add("inputs/data/" + std::to_string(i),
            {static_cast<const std::byte*>(inputs[i].const_data_ptr()), inputs[i].nbytes()});
  zip.add("inputs/version", "3\n");
  zip.finish();
  return file;
}

}  // namespace tare::interchange
