// Opens safetensors files, maps their tensors, and hashes and verifies their content.
#include "tare/checkpoint/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/safetensors_format.h"

namespace tare::checkpoint {
namespace {

constexpr const char* kOperation = "safetensors.open";

using Ties = std::map<std::string, std::string>;
using Index = std::unordered_map<std::string, size_t>;

Ties read_ties(const Header& header, const Index& index, const std::filesystem::path& path) {
  Ties ties;
  const auto entry = header.metadata.find(kTiedKey);
  if (entry == header.metadata.end()) return ties;
  const auto fail = [&](const std::string& name, const char* problem) {
    throw FormatError(kOperation, path.string(), kTiedKey, "'" + printable(name) + "' " + problem);
  };
  const nlohmann::json listed = parse_object(entry->second, kOperation, path, kTiedKey);
  for (const auto& [name, target] : listed.items()) {
    if (const auto problem = name_problem(name)) fail(name, problem->c_str());
    if (index.contains(name)) fail(name, "is a tensor of its own");
    if (!target.is_string() || !index.contains(target.get<std::string>())) {
      fail(name, "is tied to no tensor of this file");
    }
    ties.emplace(name, target.get<std::string>());
  }
  return ties;
}

bool is_bool_data(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes,
                             [](std::byte b) { return b == std::byte{0} || b == std::byte{1}; });
}

}  // namespace

SafeTensors SafeTensors::open(const std::filesystem::path& path) {
  SafeTensors file;
  file.path_ = path;
  file.mapping_ = std::make_shared<io::Mapping>(path);
  auto header = std::make_shared<Header>(parse_header(file.mapping_->bytes(), path));
  auto index = std::make_shared<Index>();
  for (size_t i = 0; i < header->tensors.size(); ++i) index->emplace(header->tensors[i].name, i);
  file.ties_ = std::make_shared<const Ties>(read_ties(*header, *index, path));
  file.header_ = std::move(header);
  file.index_ = std::move(index);
  return file;
}

int64_t SafeTensors::file_bytes() const { return static_cast<int64_t>(mapping_->bytes().size()); }

bool SafeTensors::contains(const std::string& name) const {
  return index_->contains(name) || ties_->contains(name);
}

const TensorInfo& SafeTensors::info(const std::string& name) const {
  const auto tie = ties_->find(name);
  const auto found = index_->find(tie == ties_->end() ? name : tie->second);
  if (found != index_->end()) return header_->tensors[found->second];
  std::vector<std::string> names;
  for (const auto& t : tensors()) names.push_back(t.name);
  const std::string near = nearest(name, names);
  throw FormatError(
      "safetensors.tensor", path_.string(), printable(name),
      "is not in the file" + (near.empty() ? "" : "; the nearest name is '" + near + "'"));
}

std::span<const std::byte> SafeTensors::data(const TensorInfo& info) const {
  return mapping_->bytes().subspan(static_cast<size_t>(header_->data_start + info.offset),
                                   static_cast<size_t>(info.bytes));
}

at::Tensor SafeTensors::make(const TensorInfo& info) const {
  const auto options = c10::TensorOptions(info.dtype);
  const auto bytes = mapping_->bytes().subspan(
      static_cast<size_t>(header_->data_start + info.offset), static_cast<size_t>(info.bytes));
  if (info.dtype == c10::ScalarType::Bool && !is_bool_data(bytes)) {
    throw FormatError("safetensors.tensor", path_.string(), printable(info.name),
                      "has a bool that is neither 0 nor 1");
  }
  const bool aligned =
      reinterpret_cast<uintptr_t>(bytes.data()) % c10::elementSize(info.dtype) == 0;
  if (aligned && !bytes.empty()) {
    return at::from_blob(
        bytes.data(), info.shape, [keep = mapping_](void*) {}, options);
  }
  at::Tensor copy = at::empty(info.shape, options);
  if (!bytes.empty()) std::memcpy(copy.mutable_data_ptr(), bytes.data(), bytes.size());
  return copy;
}

at::Tensor SafeTensors::tensor(const std::string& name) const { return make(info(name)); }

std::vector<NamedTensor> SafeTensors::all() const {
  std::vector<NamedTensor> result;
  result.reserve(tensors().size() + ties_->size());
  for (const auto& info : tensors()) result.push_back({info.name, make(info)});
  for (const auto& [name, target] : *ties_)
    result.push_back({name, result[index_->at(target)].tensor});
  return result;
}

Digest digest(const SafeTensors& file) {
  Digest result{layout_hash(file.tensors(), file.metadata()), {}};
  for (const auto& t : file.tensors()) result.tensors.emplace(t.name, hash(file.data(t)));
  return result;
}

void verify(const SafeTensors& file, const Digest& expected, std::string_view operation) {
  const auto fail = [&](const std::string& part, const char* problem) {
    throw FormatError(operation, file.path().string(), printable(part), problem);
  };
  for (const auto& [name, unused] : expected.tensors) {
    if (!file.contains(name)) fail(name, "is missing: the manifest lists it");
  }
  for (const auto& t : file.tensors()) {
    const auto known = expected.tensors.find(t.name);
    if (known == expected.tensors.end()) fail(t.name, "is not listed in the manifest");
    if (known->second != hash(file.data(t))) {
      fail(t.name,
           "has another hash than the manifest lists: the file was damaged or changed; use another "
           "copy");
    }
  }
  if (layout_hash(file.tensors(), file.metadata()) != expected.layout) {
    fail("header",
         "names, dtypes, shapes or metadata differ from the manifest: the file was damaged or "
         "changed");
  }
}

}  // namespace tare::checkpoint
