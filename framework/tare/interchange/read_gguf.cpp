// Finds the tensors of a GGUF file.
//
// Format: docs/gguf.md of ggml, version 3.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <string_view>

#include "tare/base/error.h"
#include "tare/interchange/found_file.h"
#include "tare/interchange/gguf_values.h"

namespace tare::interchange {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

/// Describes how a tensor is stored: in blocks of `elements`, each of which takes `bytes`.
struct Storage {
  uint32_t number = 0;
  const char* name = "";
  int64_t elements = 1, bytes = 0;
};

constexpr std::array kStorages{Storage{0, "float32", 1, 4}, Storage{1, "float16", 1, 2},
                               Storage{8, "q8_0", gguf::kBlock, gguf::kBlock + 2},
                               Storage{30, "bfloat16", 1, 2}};

/// Reads numbers and texts one behind the other.
class Cursor {
 public:
  Cursor(Bytes all, const fs::path& path) : all_(all), path_(path) {}
  [[nodiscard]] size_t at() const { return at_; }
  [[noreturn]] void refuse(const std::string& part, const std::string& problem) const {
    throw FormatError(kReadFile, path_.string(), part, problem);
  }
  Bytes take(uint64_t count) {
    if (count > all_.size() - at_) refuse("header", "ends at byte " + std::to_string(all_.size()));
    const Bytes part = all_.subspan(at_, count);
    at_ += count;
    return part;
  }
  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() {
    const Bytes bytes = take(number<uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Goes behind a value of the metadata; `depth`: of lists around it.
  void skip(uint32_t type, int depth = 0) {
    constexpr int kDeepest = 4;
    if (type == gguf::kString) {
      (void)text();
    } else if (type == gguf::kArray) {
      if (depth == kDeepest) refuse("metadata", "has lists of lists of lists");
      const auto items = number<uint32_t>();
      for (auto count = number<uint64_t>(); count > 0; --count) skip(items, depth + 1);
    } else if (type < gguf::kSizes.size() && gguf::kSizes[type] > 0) {
      (void)take(gguf::kSizes[type]);
    } else {
      refuse("metadata", "has a value of the unknown type " + std::to_string(type));
    }
  }

 private:
  Bytes all_;
  const fs::path& path_;
  size_t at_ = 0;
};

TensorPart part_of(Cursor& in, uint64_t& offset) {
  TensorPart part{.name = std::string(in.text())};
  const std::string place = "tensor " + printable(part.name);
  constexpr uint32_t kMostDimensions = 4;
  const auto dimensions = in.number<uint32_t>();
  if (dimensions > kMostDimensions) in.refuse(place, "has more than four dimensions");
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = in.number<uint64_t>();
    if (size > INT64_MAX) in.refuse(place, "has an impossible shape");
    part.shape.insert(part.shape.begin(), static_cast<int64_t>(size));
  }
  const auto type = in.number<uint32_t>();
  offset = in.number<uint64_t>();
  const auto storage = std::ranges::find(kStorages, type, &Storage::number);
  part.dtype = storage == kStorages.end() ? "type " + std::to_string(type) : storage->name;
  if (storage == kStorages.end()) return part;
  const auto bytes = bytes_for(part.shape, storage->bytes);
  const bool is_cut = !part.shape.empty() && part.shape.back() % storage->elements != 0;
  if (!bytes || is_cut) in.refuse(place, "has an impossible shape");
  part.bytes = *bytes / storage->elements;
  return part;
}

}  // namespace

FoundFile find_gguf(const fs::path& path) {
  FoundFile found;
  found.mappings.emplace_back(path);
  const Bytes all = found.mappings.front().bytes();
  Cursor in(all, path);
  if (in.number<uint32_t>() != gguf::kMagic) in.refuse("header", "does not begin with GGUF");
  const auto version = in.number<uint32_t>();
  if (version != gguf::kVersion)
    in.refuse("header", "is of version " + std::to_string(version) + "; Tare reads version 3");
  const auto tensors = in.number<uint64_t>();
  uint64_t alignment = gguf::kAlignment;
  size_t seal_begin = 0, seal_end = 0;
  for (auto count = in.number<uint64_t>(); count > 0; --count) {
    const size_t begin = in.at();
    const std::string_view key = in.text();
    const auto type = in.number<uint32_t>();
    if (type == gguf::kString && key == kSealKey) {
      found.seal = read_seal(in.text(), path);
      seal_begin = begin;
      seal_end = in.at();
    } else if (type == gguf::kString && key == kManifestKey) {
      found.manifest = in.text();
    } else if (key == "general.alignment" && type == gguf::kUint32) {
      alignment = in.number<uint32_t>();
      if (!std::has_single_bit(alignment)) in.refuse("metadata", "has an impossible alignment");
    } else {
      in.skip(type);
    }
  }
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < tensors; ++i) {
    offsets.push_back(0);
    found.tensors.push_back({.part = part_of(in, offsets.back())});
  }
  const auto text = [&](size_t begin, size_t end) {
    return std::string_view(reinterpret_cast<const char*>(all.data()) + begin, end - begin);
  };
  found.rest = std::string(text(0, seal_begin)) + std::string(text(seal_end, in.at()));
  const uint64_t data = (in.at() + alignment - 1) / alignment * alignment;
  size_t end = data;
  for (size_t i = 0; i < found.tensors.size(); ++i) {
    FoundTensor& one = found.tensors[i];
    const auto bytes = static_cast<uint64_t>(one.part.bytes);
    if (data > all.size() || offsets[i] > all.size() - data ||
        bytes > all.size() - data - offsets[i])
      in.refuse("tensor " + printable(one.part.name), "ends behind the end of the file");
    one.bytes = all.subspan(data + offsets[i], bytes);
    end = std::max(end, (data + offsets[i] + bytes + alignment - 1) / alignment * alignment);
  }
  if (end < all.size()) found.rest += text(end, all.size());
  return found;
}

}  // namespace tare::interchange
