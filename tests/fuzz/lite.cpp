// Bundles for the engine without LibTorch. Input: the manifest as JSON, of a file that has the
// tensors of a small mlp, a resnet9 and a gpt; the digest of the tensors and the checksum are made
// right, as a forger would. What opens must predict.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/support.h"
#include "tare/base/error.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/safetensors_format.h"
#include "tare/lite/lite.h"

namespace tare::fuzz {

using nlohmann::json;

/// Holds the tensors of the file, whose values are all a quarter.
class Tensors {
 public:
  Tensors() {
    linear("hidden0", 3, 4);
    linear("head", 2, 3);
    convolution("prep", 2, 1);
    convolution("layer1", 2, 2);
    convolution("layer1.3.conv1", 2, 2);
    convolution("layer1.3.conv2", 2, 2);
    convolution("layer2", 2, 2);
    convolution("layer3", 2, 2);
    convolution("layer3.3.conv1", 2, 2);
    convolution("layer3.3.conv2", 2, 2);
    linear("fc", 2, 2);
    add("wte.weight", {5, 4});
    add("wpe.weight", {6, 4});
    for (const char* norm : {"ln_f", "h.0.ln_1", "h.0.ln_2"}) {
      add(std::string(norm) + ".weight", {4});
      add(std::string(norm) + ".bias", {4});
    }
    columns("h.0.attn.c_attn", 4, 12);
    columns("h.0.attn.c_proj", 4, 4);
    columns("h.0.mlp.c_fc", 4, 16);
    columns("h.0.mlp.c_proj", 16, 4);
    digest_.layout = checkpoint::layout_hash(infos_, {});
  }

  /// Returns a file of the tensors with this manifest.
  [[nodiscard]] std::string file(json manifest) const {
    manifest["digest"] = checkpoint::to_json(digest_);
    manifest.erase("checksum");
    json header;
    header["__metadata__"]["tare"] = checkpoint::seal(manifest);
    for (const checkpoint::TensorInfo& info : infos_)
      header[info.name] = {{"dtype", "F32"},
                           {"shape", info.shape},
                           {"data_offsets", {info.offset, info.offset + info.bytes}}};
    std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
    text.append((8 - text.size() % 8) % 8, ' ');
    const uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data_;
  }

 private:
  void add(const std::string& name, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    const std::vector<float> values(static_cast<size_t>(count), 0.25F);
    const std::string bytes(reinterpret_cast<const char*>(values.data()),
                            values.size() * sizeof(float));
    infos_.push_back({name, c10::ScalarType::Float, shape, static_cast<int64_t>(data_.size()),
                      static_cast<int64_t>(bytes.size())});
    digest_.tensors[name] = checkpoint::hash(std::string_view(bytes));
    data_ += bytes;
  }
  void linear(const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }
  void columns(const std::string& name, int64_t in, int64_t out) {
    add(name + ".weight", {in, out});
    add(name + ".bias", {out});
  }
  void convolution(const std::string& name, int64_t out, int64_t in) {
    add(name + ".0.weight", {out, in, 3, 3});
    for (const char* part : {".1.weight", ".1.bias", ".1.running_mean", ".1.running_var"})
      add(name + part, {out});
  }

  std::vector<checkpoint::TensorInfo> infos_;
  checkpoint::Digest digest_;
  std::string data_;
};

void predict(lite::Model& model) {
  constexpr int64_t kMost = 4096;  // numbers of a sample
  lite::Input input{.shape = {1}};
  int64_t count = 1;
  for (const int64_t size : model.manifest().sample_shape) {
    count = size > kMost ? kMost + 1 : count * size;
    input.shape.push_back(size);
    if (count > kMost) return;
  }
  const std::vector<float> numbers(static_cast<size_t>(count), 0.5F);
  const std::vector<int64_t> tokens(static_cast<size_t>(count), 1);
  if (model.takes_tokens())
    input.tokens = tokens.data();
  else
    input.numbers = numbers.data();
  const lite::Output output = model.predict(input);
  require(!output.shape.empty() && output.shape[0] == 1, "one sample has one output");
}

void run(std::string_view text) {
  static const Tensors tensors;
  static MemoryFile file;
  json manifest = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object()) return;
  file.set(tensors.file(std::move(manifest)));
  lite::Model model(file.path());
  predict(model);
}

}  // namespace tare::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tare::fuzz::run(tare::fuzz::text_of(data, size));
  } catch (const tare::Error&) {  // a format, a shape or a field that is refused
  }
  return 0;
}
