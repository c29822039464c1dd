// Files for other programs. Input: 'g', 'o' or 'p', and a GGUF, ONNX or .pt2 file.
#include "fuzz/support.h"
#include "tare/base/error.h"
#include "tare/interchange/found_file.h"

namespace tare::fuzz {

interchange::FoundFile find(char kind, const std::filesystem::path& path) {
  if (kind == 'g') return interchange::find_gguf(path);
  return kind == 'o' ? interchange::find_onnx(path) : interchange::find_pt2(path);
}

void run(char kind, std::string_view content) {
  static MemoryFile memory;
  memory.set(content);
  const interchange::FoundFile found = find(kind, memory.path());
  require(found.rest.size() <= content.size() * 2, "what is kept is paid for by the file");
  volatile uint8_t sum = 0;  // the bytes are read
  for (const auto& [part, bytes] : found.tensors) {
    for (const std::byte byte : bytes) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(byte));
    for (const int64_t size : part.shape) require(size >= 0 || !found.seal, "sizes are counts");
  }
}

}  // namespace tare::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tare::fuzz::run_kind<tare::Error>(data, size, tare::fuzz::run);
  return 0;
}
