// Checks the names of tensors and hashes the layout of a safetensors file.
#include "tare/checkpoint/safetensors_format.h"

#include "tare/base/bytes.h"
#include "tare/checkpoint/manifest.h"

namespace tare::checkpoint {
namespace {

// Length of the UTF-8 sequence at the front of `text`, 0 where there is none (overlong forms and
// surrogates included).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

}  // namespace

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
