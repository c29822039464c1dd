// Checks the names of tensors and hashes the layout of a safetensors file.
#include "tare/checkpoint/safetensors_format.h"

#include "tare/base/bytes.h"
#include "tare/base/utf8.h"
#include "tare/checkpoint/manifest.h"

namespace tare::checkpoint {

std::optional<std::string> name_problem(std::string_view name) {
  if (name.empty()) return "is an empty name";
  if (name == kMetadataKey) return "is a reserved name";
  if (static_cast<int64_t>(name.size()) > kMaxNameBytes) {
    return "is a name longer than " + format_count(kMaxNameBytes) + " bytes";
  }
  for (size_t i = 0; i < name.size();) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const size_t length = utf8_length(name.substr(i));
    if (length == 0) return "is a name that is not UTF-8";
    if (byte < 0x20 || byte == 0x7f) return "is a name with a control character";
    i += length;
  }
  return std::nullopt;
}

std::string layout_hash(const std::vector<TensorInfo>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string text;
  const auto add = [&text](std::string_view part) { (text += part) += '\0'; };
  for (const auto& t : tensors) {
    add(t.name);
    add(describe(t.dtype, t.shape));
    add(std::to_string(t.offset));
  }
  for (const auto& [key, value] : metadata) {
    if (key == kManifestKey) continue;
    add(key);
    add(value);
  }
  return hash(text);
}

}  // namespace tare::checkpoint
