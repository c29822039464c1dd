// Recognises a safetensors file by its first bytes.
#include "tare/inference/damaged_file.h"

#include <cstdint>

#include "tare/base/io.h"

namespace tare {

std::string kind_of_damaged(const std::filesystem::path& path) {
  constexpr size_t kStart = 8, kRead = size_t{64} << 10;
  constexpr uint64_t kLongestHeader = 100'000'000;  // of the format
  std::string text(kRead, '\0');
  io::File file(path, io::Mode::read);
  text.resize(file.read(text.data(), text.size()));
  if (text.size() <= kStart || text[kStart] != '{') return "";
  uint64_t length = 0;
  for (size_t i = kStart; i-- > 0;) length = length << 8 | static_cast<unsigned char>(text[i]);
  if (length > kLongestHeader) return "";
  return text.find("\"tare\":") == std::string::npos ? "safetensors" : "bundle";
}

}  // namespace tare
