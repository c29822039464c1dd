// Finds the weights of a `.pt2` file.
//
// Format: torch/csrc/export/pt2_archive_constants.h of LibTorch; weights as payloads without
// pickle.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/checkpoint/zip_archive.h"
#include "tare/checkpoint/zip_writer.h"
#include "tare/interchange/found_file.h"

namespace tare::interchange {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kConfig = "data/weights/model_weights_config.json";

struct Dtype {
  const char* name = "";
  int64_t bytes = 0;  // of an element; 0: there is no such dtype
};

/// Returns the dtype of a number of torch/csrc/utils/generated_serialization_types.h.
Dtype dtype_of(int64_t number) {
  static constexpr std::array<Dtype, 14> kAll{{{},
                                               {"uint8", 1},
                                               {"int8", 1},
                                               {"int16", 2},
                                               {"int32", 4},
                                               {"int64", 8},
                                               {"float16", 2},
                                               {"float32", 4},
                                               {"float64", 8},
                                               {},
                                               {},
                                               {},
                                               {"bool", 1},
                                               {"bfloat16", 2}}};
  return number >= 0 && number < std::ssize(kAll) ? kAll[static_cast<size_t>(number)] : Dtype{};
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether the headers and the directory of an archive are as Tare writes them.
bool has_own_headers(std::span<const std::byte> file, const checkpoint::ZipEntries& entries) {
  const std::string_view all = text_of(file);
  std::vector<std::pair<std::string_view, std::span<const std::byte>>> in_order(entries.begin(),
                                                                                entries.end());
  std::ranges::sort(in_order, {}, [](const auto& entry) { return entry.second.data(); });
  size_t at = 0;
  bool same = true;
  checkpoint::ZipWriter writer([&](std::string_view bytes) {
    same = same && all.substr(std::min(at, all.size())).starts_with(bytes);
    at += bytes.size();
  });
  for (const auto& [name, bytes] : in_order) writer.add(std::string(name), bytes);
  writer.finish();
  return same && at == all.size();
}

}  // namespace

FoundFile find_pt2(const fs::path& path) {
  FoundFile found;
  found.mappings.emplace_back(path);
  const auto refuse = [&](const std::string& part, const std::string& problem) {
    throw FormatError(kReadFile, path.string(), part, problem);
  };
  const checkpoint::ZipEntries entries = checkpoint::read_zip(found.mappings.front().bytes(), path);
  std::map<std::string_view, std::span<const std::byte>> sorted(entries.begin(), entries.end());
  const auto config = std::ranges::find_if(
      sorted, [](const auto& entry) { return entry.first.ends_with(kConfig); });
  if (config == sorted.end()) refuse(std::string(kConfig), "is missing");
  const std::string root(config->first.substr(0, config->first.size() - kConfig.size()));
  const std::string extra = root + "extra/";
  const auto take = [&](const std::string& name) {
    const auto entry = sorted.find(name);
    return std::string(entry == sorted.end() ? std::string_view() : text_of(entry->second));
  };
  if (const std::string seal = take(extra + kSealFile); !seal.empty())
    found.seal = read_seal(seal, path);
  if (found.seal) found.framed = has_own_headers(found.mappings.front().bytes(), entries);
  found.manifest = take(extra + kManifestFile);
  std::map<std::string, std::span<const std::byte>> weights;
  try {
    const Json list = Json::parse(text_of(config->second)).at("config");
    for (const auto& [name, payload] : list.items()) {
      FoundTensor one{.part = {.name = name}};
      const std::string entry = root + "data/weights/" + payload.at("path_name").get<std::string>();
      const auto bytes = sorted.find(entry);
      if (bytes == sorted.end()) refuse("tensor " + printable(name), "is missing");
      const Json& meta = payload.at("tensor_meta");
      const Dtype dtype = dtype_of(meta.at("dtype").get<int64_t>());
      one.part.dtype = dtype.bytes > 0 ? dtype.name : "type " + meta.at("dtype").dump();
      for (const Json& size : meta.at("sizes"))
        one.part.shape.push_back(size.at("as_int").get<int64_t>());
      one.bytes = bytes->second;
      one.part.bytes = std::ssize(one.bytes);
      const auto needed = dtype.bytes > 0 ? bytes_for(one.part.shape, dtype.bytes) : std::nullopt;
      // Another program may store views of one storage.
      if (found.seal && needed != one.part.bytes)
        refuse("tensor " + printable(name), "does not have the bytes of its shape");
      weights.emplace(entry, one.bytes);
      found.tensors.push_back(std::move(one));
    }
  } catch (const Json::exception& error) {
    refuse(std::string(kConfig), std::string("is not as PyTorch writes it: ") + error.what());
  }
  for (const auto& [name, bytes] : sorted) {
    if (weights.contains(std::string(name)) || name == extra + kSealFile) continue;
    found.rest += name;
    found.rest += '\n';
    found.rest += text_of(bytes);
  }
  return found;
}

}  // namespace tare::interchange
