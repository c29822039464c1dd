// Safetensors. Input: 'r' and a file, or 'h' and a header, up to its last brace, with data behind
// it; the header's length is put in front then, at which else nearly every mutation would end.
#include "tare/checkpoint/safetensors.h"

#include <cstring>

#include "fuzz/support.h"
#include "tare/base/error.h"

namespace tare::fuzz {

std::string file_of(std::string_view input) {
  const std::string_view rest = input.substr(1);
  if (input[0] == 'r') return std::string(rest);
  const uint64_t length = rest.rfind('}') + 1;  // npos + 1 is 0
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file.append(rest);
}

void check_header(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  const checkpoint::Header header = checkpoint::parse_header(bytes, "file");
  int64_t end = header.data_start;
  for (const auto& tensor : header.tensors) {
    require(header.data_start + tensor.offset == end, "tensors lie side by side");
    end += tensor.bytes;
  }
  require(end == static_cast<int64_t>(file.size()), "tensors fill the file");
}

// Checks that a file that was read can be written, and reads equal again.
void check_rewriting(const checkpoint::SafeTensors& file) {
  static MemoryFile copy;
  io::File out(copy.path(), io::Mode::create);
  const checkpoint::Digest written = checkpoint::write(out, file.all());
  out.close();
  const auto again = checkpoint::SafeTensors::open(copy.path());
  checkpoint::verify(again, written, "fuzz");
  require(checkpoint::digest(file).tensors == written.tensors || !file.ties().empty(),
          "a rewritten file holds the same tensors");
}

void run(const std::string& file) {
  static MemoryFile memory;
  check_header(file);
  memory.set(file);
  const auto opened = checkpoint::SafeTensors::open(memory.path());
  checkpoint::verify(opened, checkpoint::digest(opened), "fuzz");
  check_rewriting(opened);
}

}  // namespace tare::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    tare::fuzz::run(tare::fuzz::file_of(tare::fuzz::text_of(data, size)));
  } catch (const tare::FormatError&) {
  }
  return 0;
}
