// Hashes of files for other programs, and the bytes of shapes.
#include "tare/interchange/found_file.h"

#include <nlohmann/json.hpp>

#include "tare/checkpoint/manifest.h"

namespace tare::interchange {

std::string seal_text(const checkpoint::Digest& seal) { return checkpoint::to_json(seal).dump(); }

checkpoint::Digest read_seal(std::string_view text, const std::filesystem::path& path) {
  return checkpoint::digest_from_json(checkpoint::parse_object(text, kReadFile, path, "hashes"),
                                      kReadFile, path, "hashes");
}

std::string outline(const std::vector<TensorPart>& tensors) {
  nlohmann::json all = nlohmann::json::object();  // sorted by name
  for (const TensorPart& one : tensors) all[one.name] = {one.dtype, one.shape};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string hash_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return checkpoint::hash(
      std::span(static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()));
}

std::optional<int64_t> bytes_for(const std::vector<int64_t>& shape, int64_t element) {
  int64_t bytes = element;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace tare::interchange
