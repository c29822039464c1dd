// Files of torch.save. Input: 'r' and a file, or 'p' and a pickle, which becomes the archive of a
// file with two storages of 24 bytes; in a whole file most mutations would end in its directory.
#include "tare/checkpoint/torch_file.h"

#include <cstring>

#include "fuzz/support.h"
#include "tare/base/error.h"

namespace tare::fuzz {

template <class Number>
void add(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Adds an entry to the archive and to its directory.
void add_entry(std::string& file, std::string& directory, std::string_view name,
               std::string_view data) {
  std::string common(12, '\0');  // flags, method, time and checksum
  add(common, static_cast<uint32_t>(data.size()));
  add(common, static_cast<uint32_t>(data.size()));
  add(common, static_cast<uint16_t>(name.size()));
  add(common, uint16_t{0});
  directory.append("PK\x01\x02").append(4, '\0').append(common).append(10, '\0');
  add(directory, static_cast<uint32_t>(file.size()));
  directory.append(name);
  file.append("PK\x03\x04").append(2, '\0').append(common).append(name).append(data);
}

std::string file_of(std::string_view input) {
  const std::string_view rest = input.substr(1);
  if (input[0] == 'r') return std::string(rest);
  const std::string storage(24, '\1');
  std::string file, directory;
  add_entry(file, directory, "f/data.pkl", rest);
  add_entry(file, directory, "f/data/0", storage);
  add_entry(file, directory, "f/data/1", storage);
  const auto start = static_cast<uint32_t>(file.size());
  file.append(directory).append("PK\x05\x06").append(4, '\0');
  add(file, uint16_t{3});
  add(file, uint16_t{3});
  add(file, static_cast<uint32_t>(directory.size()));
  add(file, start);
  return file.append(2, '\0');
}

/// Reads the first and the last value of each tensor, which must lie in the file's memory.
void touch(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  const auto* first = static_cast<const volatile unsigned char*>(tensor.const_data_ptr());
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  static_cast<void>(first[0]);
  static_cast<void>(first[(last + 1) * tensor.element_size() - 1]);
}

void run(const std::string& file) {
  static MemoryFile memory;
  memory.set(file);
  const auto opened = checkpoint::TorchFile::open(memory.path());
  require(!opened.tensors().empty(), "a file that is read has tensors");
  for (const auto& [name, tensor] : opened.tensors()) {
    require(!name.empty(), "each tensor has a name");
    touch(tensor);
  }
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
