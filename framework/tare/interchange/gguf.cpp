// GGUF: metadata, a table of tensors, and their aligned bytes.
#include "tare/interchange/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
#include "tare/config/field.h"
#include "tare/config/node.h"
#include "tare/interchange/found_file.h"
#include "tare/interchange/gguf_values.h"
#include "tare/model/registry.h"

namespace tare::interchange {
namespace {

/// Returns the bytes of a token as characters that can be seen, as GPT-2's tokenizer has them: a
/// printable byte of Latin-1 as itself, the n-th of the others as U+0100 + n, in UTF-8. A blank is
/// U+0120, and the end of a line U+010A (Radford et al. 2019, encoder.py).
std::string visible(const std::string& token) {
  std::string text;
  for (const char character : token) {
    const auto byte = static_cast<unsigned char>(character);
    const auto is_shown = [](unsigned value) {
      return (value > 0x20 && value < 0x7F) || (value > 0xA0 && value != 0xAD);
    };
    unsigned code = byte;
    if (!is_shown(byte)) {
      code = 0x100;
      for (unsigned before = 0; before < byte; ++before) code += is_shown(before) ? 0 : 1;
    }
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xC0 | (code >> 6));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return text;
}

using gguf::kAlignment;
using gguf::kBlock;

[[noreturn]] void refuse(const std::string& problem) { throw ConfigError("export.gguf", problem); }

/// Collects little-endian numbers and texts.
class Bytes {
 public:
  template <class Number>
  void number(Number value) {
    static_assert(std::endian::native == std::endian::little);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<uint64_t>(value.size()));
    bytes_ += value;
  }
  void append(const Bytes& other) { bytes_ += other.bytes_; }
  void pad() { bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0'); }
  [[nodiscard]] const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

void write_value(Bytes& bytes, const GgufValue& value) {
  struct Write {
    Bytes& bytes;
    void operator()(uint32_t number) const {
      bytes.number(gguf::kUint32);
      bytes.number(number);
    }
    void operator()(float number) const {
      bytes.number(gguf::kFloat32);
      bytes.number(number);
    }
    void operator()(const std::string& text) const {
      bytes.number(gguf::kString);
      bytes.text(text);
    }
    void operator()(const std::vector<int32_t>& list) const {
      begin(gguf::kInt32, list.size());
      for (const int32_t number : list) bytes.number(number);
    }
    void operator()(const std::vector<std::string>& list) const {
      begin(gguf::kString, list.size());
      for (const std::string& text : list) bytes.text(text);
    }
    void begin(uint32_t type, size_t count) const {
      bytes.number(gguf::kArray);
      bytes.number(type);
      bytes.number(static_cast<uint64_t>(count));
    }
  };
  std::visit(Write{bytes}, value);
}

uint32_t number_of(GgufType type) {
  switch (type) {
    case GgufType::f32:
      return 0;
    case GgufType::f16:
      return 1;
    case GgufType::q8_0:
      return 8;
  }
  return 0;
}

uint64_t bytes_of(const GgufTensor& one) {
  const auto count = static_cast<uint64_t>(one.tensor.numel());
  switch (one.type) {
    case GgufType::f32:
      return 4 * count;
    case GgufType::f16:
      return 2 * count;
    case GgufType::q8_0:
      return count / kBlock * (2 + kBlock);
  }
  return 0;
}

/// Returns the blocks of a tensor: a scale, the largest magnitude / 127, and 32 rounded shares.
std::string quantised(const at::Tensor& tensor) {
  const float* in = tensor.const_data_ptr<float>();
  std::string bytes;
  for (int64_t i = 0; i < tensor.numel(); i += kBlock) {
    float most = 0;
    for (int64_t k = 0; k < kBlock; ++k) most = std::max(most, std::abs(in[i + k]));
    const float scale = most / 127, inverse = scale > 0 ? 1 / scale : 0;
    const c10::Half half(scale);
    bytes.append(reinterpret_cast<const char*>(&half.x), sizeof half.x);
    for (int64_t k = 0; k < kBlock; ++k)
      bytes += static_cast<char>(static_cast<int8_t>(std::lround(in[i + k] * inverse)));
  }
  return bytes;
}

std::string data_of(const GgufTensor& one) {
  const at::Tensor dense = one.tensor.contiguous();
  if (one.type == GgufType::q8_0) return quantised(dense);
  const at::Tensor stored = one.type == GgufType::f16 ? dense.to(at::kHalf) : dense;
  return {static_cast<const char*>(stored.const_data_ptr()), stored.nbytes()};
}

void check(const GgufTensor& one) {
  if (one.tensor.scalar_type() != at::kFloat)
    refuse("tensor " + one.name + " is " + c10::toString(one.tensor.scalar_type()) +
           ", where float32 is needed");
  if (one.type == GgufType::q8_0 && (one.tensor.dim() == 0 || one.tensor.size(-1) % kBlock != 0))
    refuse("tensor " + one.name +
           " has rows whose length 32 does not divide, for q8_0: choose fp16");
}

/// Returns the name of a tensor of a GPT in llama.cpp; unset: it is none of a GPT.
std::optional<std::string> name_in_llama(const std::string& name) {
  static const std::map<std::string, std::string> kOutside{{"wte.weight", "token_embd.weight"},
                                                           {"wpe.weight", "position_embd.weight"},
                                                           {"ln_f.weight", "output_norm.weight"},
                                                           {"ln_f.bias", "output_norm.bias"}};
  static const std::map<std::string, std::string> kInside{
      {"ln_1", "attn_norm"}, {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"},
      {"ln_2", "ffn_norm"},  {"mlp.c_fc", "ffn_up"},      {"mlp.c_proj", "ffn_down"}};
  if (const auto at = kOutside.find(name); at != kOutside.end()) return at->second;
  const size_t number = 2, behind = name.find('.', number), last = name.rfind('.');
  if (!name.starts_with("h.") || behind == std::string::npos || last <= behind) return {};
  const auto at = kInside.find(name.substr(behind + 1, last - behind - 1));
  if (at == kInside.end()) return {};
  return "blk." + name.substr(number, behind - number) + '.' + at->second + name.substr(last);
}

}  // namespace

void write_gguf(const std::filesystem::path& path,
                const std::vector<std::pair<std::string, GgufValue>>& metadata,
                const std::vector<GgufTensor>& tensors) {
  Bytes head, infos;
  head.number(gguf::kMagic);
  head.number(gguf::kVersion);
  head.number(static_cast<uint64_t>(tensors.size()));
  head.number(static_cast<uint64_t>(metadata.size() + 1));
  for (const auto& [key, value] : metadata) {
    head.text(key);
    write_value(head, value);
  }
  checkpoint::Digest seal;
  uint64_t offset = 0;
  for (const GgufTensor& one : tensors) {
    check(one);
    infos.text(one.name);
    infos.number(static_cast<uint32_t>(one.tensor.dim()));
    for (int64_t d = one.tensor.dim(); d-- > 0;)
      infos.number(static_cast<uint64_t>(one.tensor.size(d)));
    infos.number(number_of(one.type));
    infos.number(offset);
    offset += (bytes_of(one) + kAlignment - 1) / kAlignment * kAlignment;
    seal.tensors[one.name] = checkpoint::hash(data_of(one));
  }
  seal.layout = checkpoint::hash(head.str() + infos.str());
  head.text(kSealKey);
  write_value(head, seal_text(seal));
  head.append(infos);
  head.pad();
  io::write_atomically(path, [&](io::File& file) {
    file.write(head.str());
    for (const GgufTensor& one : tensors) {
      std::string data = data_of(one);
      data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
      file.write(data);
    }
  });
}

void check_gpt(const BundleManifest& manifest) {
  if (manifest.model.name != "gpt")
    refuse("the model is " + manifest.model.name + ": GGUF is for the model gpt");
}

void write_gpt_gguf(const std::filesystem::path& path, const BundleManifest& manifest,
                    const std::vector<NamedTensor>& tensors, GgufType type,
                    const std::string& manifest_text) {
  check_gpt(manifest);
  std::map<std::string, at::Tensor> by_name;
  std::vector<GgufTensor> written;
  for (const auto& [name, tensor] : tensors) {
    by_name[name] = tensor;
    const auto known = name_in_llama(name);
    if (!known) refuse("tensor " + name + " is not one of llama.cpp's gpt2");
    // llama.cpp has matrices as torch::nn::Linear does, GPT-2 has them transposed.
    const bool transposed = tensor.dim() == 2 && name.starts_with("h.");
    written.push_back({*known, (transposed ? tensor.t() : tensor).to(at::kFloat).contiguous(),
                       tensor.dim() == 2 ? type : GgufType::f32});
  }
  const auto options =
      config::read<ModelOptions>(config::parse_text(manifest.model.options, "model options"));
  constexpr int64_t kHeads = 12;  // GPT-2 small's
  const auto size = [&](const std::string& name, int64_t dimension) {
    const auto at = by_name.find(name);
    if (at == by_name.end()) refuse("tensor " + name + " is missing");
    return static_cast<uint32_t>(at->second.size(dimension));
  };
  uint32_t blocks = 0;
  while (by_name.contains("h." + std::to_string(blocks) + ".ln_1.weight")) ++blocks;
  const std::map<GgufType, uint32_t> file_types{
      {GgufType::f32, 0}, {GgufType::f16, 1}, {GgufType::q8_0, 7}};
  std::vector<std::pair<std::string, GgufValue>> metadata{
      {"general.architecture", "gpt2"},
      {"general.name", path.stem().string()},
      {"general.file_type", file_types.at(type)},
      {"gpt2.context_length", size("wpe.weight", 0)},
      {"gpt2.embedding_length", size("wte.weight", 1)},
      {"gpt2.feed_forward_length", size("h.0.mlp.c_fc.weight", 1)},
      {"gpt2.block_count", blocks},
      {"gpt2.attention.head_count",
       static_cast<uint32_t>(options.heads > 0 ? options.heads : kHeads)},
      {"gpt2.attention.layer_norm_epsilon", 1e-5F},
      {"tare.manifest", manifest_text}};
  if (!manifest.labels.empty()) {
    metadata.emplace_back("tokenizer.ggml.model", "gpt2");
    metadata.emplace_back("tokenizer.ggml.pre", "gpt-2");
    std::vector<std::string> tokens;
    for (const std::string& label : manifest.labels) tokens.push_back(visible(label));
    metadata.emplace_back("tokenizer.ggml.tokens", std::move(tokens));
    metadata.emplace_back("tokenizer.ggml.token_type",
                          std::vector<int32_t>(manifest.labels.size(), 1));
    metadata.emplace_back("tokenizer.ggml.merges", std::vector<std::string>());
  }
  write_gguf(path, metadata, written);
}

}  // namespace tare::interchange
