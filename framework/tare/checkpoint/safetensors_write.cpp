// Writes safetensors files byte for byte as the reference implementation does.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "tare/base/bytes.h"
#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/checkpoint/dtypes.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/checkpoint/safetensors_format.h"
#include "tare/checkpoint/xxh3.h"

namespace tare::checkpoint {
namespace {

constexpr const char* kOperation = "safetensors.write";
constexpr size_t kAsideBytes = size_t{1} << 20;    // worth a thread
constexpr size_t kChunkBytes = size_t{512} << 10;  // hashed and written while it is in the cache

struct Planned {
  TensorInfo info;
  const at::Tensor* source = nullptr;
};

struct Plan {
  std::vector<Planned> tensors;                 // in file order
  std::map<std::string, std::string> metadata;  // with ties
  int64_t data_bytes = 0;

  [[nodiscard]] std::vector<TensorInfo> infos() const {
    std::vector<TensorInfo> all;
    for (const auto& t : tensors) all.push_back(t.info);
    sort_by_place(all);
    return all;
  }
};

void check(const NamedTensor& item, std::unordered_set<std::string>& names) {
  const auto fail = [&](const std::string& problem) {
    throw ConfigError(kOperation, "tensor '" + printable(item.name) + "' " + problem);
  };
  if (const auto problem = name_problem(item.name)) fail(*problem);
  if (!names.insert(item.name).second) fail("is given twice; names must differ");
  if (!item.tensor.defined()) fail("is undefined; omit it");
  if (item.tensor.layout() != c10::kStrided || item.tensor.is_meta())
    fail("has no dense data; make it dense first");
  if (item.tensor.dim() > kMaxRank)
    fail("has more than " + std::to_string(kMaxRank) + " dimensions");
  if (find_dtype(item.tensor.scalar_type()) == nullptr) {
    fail(std::string("has dtype ") + c10::toString(item.tensor.scalar_type()) + "; allowed are " +
         dtype_names());
  }
}

// Finds tensors that are the same view of one storage; the first stays, the others become metadata.
class TieFinder {
 public:
  /// Whether `item` is tied to an earlier tensor.
  bool tied(const NamedTensor& item) {
    const at::Tensor& t = item.tensor;
    if (t.numel() == 0) return false;
    const auto [place, added] = seen_.try_emplace(
        {t.const_data_ptr(), t.scalar_type(), t.is_neg(), t.sizes().vec(), t.strides().vec()},
        item.name);
    if (!added) ties_[item.name] = place->second;
    return !added;
  }
  [[nodiscard]] const nlohmann::json& ties() const { return ties_; }

 private:
  using View =
      std::tuple<const void*, c10::ScalarType, bool, std::vector<int64_t>, std::vector<int64_t>>;
  std::map<View, std::string> seen_;
  nlohmann::json ties_ = nlohmann::json::object();
};

// In safetensors' own order: dtypes as in dtypes(), then names.
void place(Plan& plan) {
  std::ranges::sort(plan.tensors, [](const Planned& a, const Planned& b) {
    const Dtype* const left = find_dtype(a.info.dtype);
    const Dtype* const right = find_dtype(b.info.dtype);
    return left != right ? left < right : a.info.name < b.info.name;
  });
  for (auto& t : plan.tensors) {
    t.info.offset = plan.data_bytes;
    plan.data_bytes += t.info.bytes;
  }
}

Plan make_plan(const std::vector<NamedTensor>& tensors,
               std::map<std::string, std::string> metadata) {
  if (static_cast<int64_t>(tensors.size()) > kMaxTensors) {
    throw ConfigError(kOperation, "more than " + format_count(kMaxTensors) + " tensors");
  }
  Plan plan{{}, std::move(metadata), 0};
  std::unordered_set<std::string> names;
  TieFinder finder;
  for (const auto& item : tensors) {
    check(item, names);
    if (finder.tied(item)) continue;
    const at::Tensor& t = item.tensor;
    plan.tensors.push_back(
        {{item.name, t.scalar_type(), t.sizes().vec(), 0, static_cast<int64_t>(t.nbytes())}, &t});
  }
  if (!finder.ties().empty()) plan.metadata[kTiedKey] = finder.ties().dump();
  place(plan);
  return plan;
}

std::string metadata_json(const std::map<std::string, std::string>& metadata) {
  try {
    return nlohmann::json(metadata).dump();
  } catch (const nlohmann::json::exception&) {
    throw ConfigError(kOperation, "the metadata is not UTF-8");
  }
}

// Length and JSON, padded so that the data is aligned to 8 bytes. Written by hand to keep
// safetensors' order of fields.
std::string header_bytes(const Plan& plan) {
  std::string json;
  const auto add = [&json](const std::string& key, const std::string& value) {
    json += (json.empty() ? '{' : ',') + nlohmann::json(key).dump() + ':' + value;
  };
  if (!plan.metadata.empty()) add(kMetadataKey, metadata_json(plan.metadata));
  for (const auto& [info, unused] : plan.tensors) {
    add(info.name, std::string(R"({"dtype":")") + find_dtype(info.dtype)->name + R"(","shape":)" +
                       nlohmann::json(info.shape).dump() + R"(,"data_offsets":)" +
                       nlohmann::json({info.offset, info.offset + info.bytes}).dump() + "}");
  }
  if (json.empty()) json = "{";
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (static_cast<int64_t>(json.size()) > kMaxHeaderBytes) {
    throw ConfigError(kOperation, "the header would be longer than " +
                                      std::to_string(kMaxHeaderBytes) + " bytes");
  }
  const uint64_t length = json.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + json;
}

std::span<const std::byte> bytes_of(const at::Tensor& host) {
  return {static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()};
}

at::Tensor host_copy(const at::Tensor& tensor) {
  return tensor.detach().cpu().resolve_neg().contiguous();
}

// A large tensor is hashed on another thread while it is written, where the system has one to give.
std::string write_hashed(io::File& file, std::span<const std::byte> bytes) {
  if (bytes.size() >= kAsideBytes) {
    auto digest = std::async([bytes] { return hash(bytes); });
    file.write(bytes.data(), bytes.size());
    return digest.get();
  }
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset(&state);
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min(bytes.size(), kChunkBytes));
    XXH3_64bits_update(&state, chunk.data(), chunk.size());
    file.write(chunk.data(), chunk.size());
    bytes = bytes.subspan(chunk.size());
  }
  return hash_text(XXH3_64bits_digest(&state));
}

}  // namespace

Digest digest(const std::vector<NamedTensor>& tensors,
              const std::map<std::string, std::string>& metadata) {
  const Plan plan = make_plan(tensors, metadata);
  Digest result{layout_hash(plan.infos(), plan.metadata), {}};
  for (const auto& t : plan.tensors)
    result.tensors.emplace(t.info.name, hash(bytes_of(host_copy(*t.source))));
  return result;
}

Digest write(io::File& file, const std::vector<NamedTensor>& tensors,
             const std::map<std::string, std::string>& metadata) {
  const Plan plan = make_plan(tensors, metadata);
  const std::string header = header_bytes(plan);
  file.allocate(static_cast<int64_t>(header.size()) + plan.data_bytes);
  file.write(header);
  Digest result{layout_hash(plan.infos(), plan.metadata), {}};
  for (const auto& t : plan.tensors) {
    result.tensors.emplace(t.info.name, write_hashed(file, bytes_of(host_copy(*t.source))));
  }
  return result;
}

Digest write(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
             const std::map<std::string, std::string>& metadata) {
  Digest result;
  io::write_atomically(path, [&](io::File& file) { result = write(file, tensors, metadata); });
  return result;
}

}  // namespace tare::checkpoint
