// Writes a pickle of protocol 2 (Python, Lib/pickletools.py) with tensors as torch.save() has them.
#include "tare/interchange/sample_inputs.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/checkpoint/torch_storages.h"
#include "tare/checkpoint/zip_writer.h"
#include "tare/interchange/replay.h"

namespace tare::interchange {
namespace {

/// Collects the instructions of a pickle.
class Pickler {
 public:
  Pickler& code(std::string_view instructions) {
    bytes_ += instructions;
    return *this;
  }
  /// Adds the function or class of a module: "torch.FloatStorage".
  Pickler& name(std::string_view full) {
    const size_t dot = full.rfind('.');
    return code("c").code(full.substr(0, dot)).code("\n").code(full.substr(dot + 1)).code("\n");
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
    const std::string_view storage = checkpoint::torch_storage_name(tensor.scalar_type());
    if (storage.empty())
      throw ConfigError("export", std::string("an input is of ") +
                                      c10::toString(tensor.scalar_type()) +
                                      ", which a .pt2 file cannot have as an input");
    name("torch._utils._rebuild_tensor_v2").code("((").text("storage");
    name(storage).text(key).text("cpu");
    number(tensor.numel()).code("tQ").number(0);
    numbers(tensor.sizes()).numbers(tensor.strides()).code("\x89");  // no gradients
    return name("collections.OrderedDict").code(")R").code("tR");
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
