// Opens bundles: verifies the hashes, reads the manifest and checks shapes.
#include "tare/lite/bundle.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/safetensors_format.h"
#include "tare/config/field.h"
#include "tare/config/node.h"

namespace tare::lite {
namespace {

using c10::ScalarType;
using checkpoint::TensorInfo;
using nlohmann::json;

constexpr const char* kOpen = "lite.open";
constexpr uint64_t kLastVersion = 5;

std::optional<Storage> storage_of(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return Storage::f32;
    case ScalarType::BFloat16:
      return Storage::bf16;
    case ScalarType::Half:
      return Storage::fp16;
    case ScalarType::Float8_e4m3fn:
      return Storage::fp8;
    case ScalarType::Char:
      return Storage::int8;
    default:
      return std::nullopt;
  }
}

bool has_codes(Storage storage) { return storage == Storage::fp8 || storage == Storage::int8; }

/// Reads the fields of a manifest, of which those that are missing have their default.
class Reader {
 public:
  Reader(const json& manifest, std::string path) : json_(manifest), path_(std::move(path)) {}

  template <class T>
  T get(const char* name, T fallback) const {
    return get(json_, name, std::move(fallback));
  }
  template <class T>
  T get(const json& from, const char* name, T fallback) const {
    if (!from.contains(name)) return fallback;
    try {
      return from.at(name).get<T>();
    } catch (const json::exception&) {
      throw FormatError(kOpen, path_, name, "is not of the right type");
    }
  }
  [[nodiscard]] const json& object(const char* name) const {
    if (!json_.contains(name) || !json_.at(name).is_object())
      throw FormatError(kOpen, path_, name, "is missing, or is no object");
    return json_.at(name);
  }

 private:
  const json& json_;
  std::string path_;
};

Manifest read_manifest(const json& manifest, const std::string& path) {
  const Reader reader(manifest, path);
  const auto refuse = [&](const char* part, const std::string& problem) {
    throw FormatError(kOpen, path, part, problem);
  };
  if (reader.get<std::string>("format", "") != "tare.bundle")
    refuse("format", "is not tare.bundle");
  const auto version = reader.get<uint64_t>("version", 0);
  if (version < 1 || version > kLastVersion)
    refuse("version", "is " + std::to_string(version) + "; this Tare reads 1 to 5");
  if (manifest.contains("more_inputs") && !manifest["more_inputs"].empty())
    throw Unsupported("takes one input, and the model has several");
  if (manifest.contains("rows")) throw Unsupported("takes no rows of a table");
  const json& model = reader.object("model");
  using Sizes = std::vector<int64_t>;
  using Texts = std::vector<std::string>;
  Manifest result{.family = reader.get<std::string>(model, "name", ""),
                  .options = reader.get<std::string>(model, "options", ""),
                  .sample_shape = reader.get("sample_shape", Sizes()),
                  .any_size = reader.get("any_size", Sizes()),
                  .input = reader.get<std::string>("input", "float32"),
                  .transforms = reader.get<std::string>("transforms", ""),
                  .antialias = reader.get("antialias", false),
                  .labels = reader.get("labels", Texts()),
                  .targets = reader.get("targets", Texts()),
                  .activation = reader.get<std::string>("activation", "none"),
                  .loss = reader.get<std::string>("loss", ""),
                  .weights = reader.get<std::string>("weights", "as_is")};
  if (!manifest.contains("input") && result.family == "gpt") result.input = "int64";
  const auto is_size = [](int64_t size) { return size >= 1 && size <= INT32_MAX; };
  if (!std::ranges::all_of(result.sample_shape, is_size))
    refuse("sample_shape", "must be sizes >= 1");
  if (std::ranges::any_of(result.any_size, [&](int64_t dimension) {
        return dimension < 0 || std::cmp_greater_equal(dimension, result.sample_shape.size());
      }))
    refuse("any_size", "must be dimensions of sample_shape");
  return result;
}

}  // namespace

Unsupported::Unsupported(const std::string& reason)
    : Error("[lite] the engine without LibTorch " + reason) {}

Bundle::Bundle(const std::filesystem::path& path)
    : path_(path), mapping_(std::make_shared<io::Mapping>(path)) {
  header_ =
      std::make_shared<const checkpoint::Header>(checkpoint::parse_header(mapping_->bytes(), path));
  const auto entry = header_->metadata.find(checkpoint::kManifestKey);
  if (entry == header_->metadata.end())
    refuse(checkpoint::kManifestKey, "is missing: this is a safetensors file, but no bundle");
  const json manifest = checkpoint::unseal(entry->second, kOpen, path, "manifest");
  manifest_ = read_manifest(manifest, path.string());
  const auto digest =
      checkpoint::digest_from_json(manifest.value("digest", json()), kOpen, path, "digest");
  for (const TensorInfo& tensor : header_->tensors) {
    const auto known = digest.tensors.find(tensor.name);
    if (known == digest.tensors.end()) refuse(tensor.name, "is not listed in the manifest");
    if (known->second != checkpoint::hash(data(tensor)))
      refuse(tensor.name,
             "has another hash than the manifest lists: the file was damaged or changed; use "
             "another copy");
    tensors_.emplace(tensor.name, &tensor);
  }
  if (digest.tensors.size() != tensors_.size() ||
      digest.layout != checkpoint::layout_hash(header_->tensors, header_->metadata))
    refuse("header",
           "names, dtypes, shapes or metadata differ from the manifest: the file was damaged or "
           "changed");
}

void Bundle::refuse(const std::string& part, const std::string& problem) const {
  throw FormatError(kOpen, path_.string(), printable(part), problem);
}

bool Bundle::contains(const std::string& name) const { return tensors_.contains(name); }

const TensorInfo& Bundle::info(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) refuse(name, "is missing: the model needs it");
  return *found->second;
}

const std::vector<int64_t>& Bundle::shape(const std::string& name) const {
  return info(name).shape;
}

std::span<const std::byte> Bundle::data(const TensorInfo& info) const {
  return mapping_->bytes().subspan(static_cast<size_t>(header_->data_start + info.offset),
                                   static_cast<size_t>(info.bytes));
}

const TensorInfo& Bundle::checked(const std::string& name,
                                  const std::vector<int64_t>& shape) const {
  const TensorInfo& found = info(name);
  if (found.shape != shape || std::ranges::find(shape, 0) != shape.end())
    refuse(name, "is " + checkpoint::describe(found.dtype, found.shape) + ", and the model needs " +
                     checkpoint::describe(found.dtype, shape));
  return found;
}

Matrix Bundle::weight(const std::string& name, const std::vector<int64_t>& shape) const {
  const TensorInfo& found = checked(name, shape);
  const auto storage = storage_of(found.dtype);
  if (!storage)
    throw Unsupported("takes no weights like " + printable(name) + ", " +
                      checkpoint::describe(found.dtype, found.shape));
  int64_t columns = 1;
  for (size_t i = 1; i < shape.size(); ++i) columns *= shape[i];
  if (has_codes(*storage))
    for (const float scale : numbers(name + "_scale", shape[0]))
      if (!(scale > 0) || !std::isfinite(scale))
        throw Unsupported("takes no scales like one of " + printable(name) +
                          "_scale, which is not a finite number above 0");
  return {.data = data(found).data(),
          .storage = *storage,
          .scales = has_codes(*storage) ? numbers(name + "_scale", shape[0]).data() : nullptr,
          .rows = shape[0],
          .columns = columns,
          .stride = columns};
}

std::span<const float> Bundle::numbers(const std::string& name, int64_t count) const {
  const TensorInfo& found = checked(name, {count});
  if (found.dtype != ScalarType::Float)
    throw Unsupported("takes no numbers like " + printable(name) + ", " +
                      checkpoint::describe(found.dtype, found.shape));
  return {reinterpret_cast<const float*>(data(found).data()), static_cast<size_t>(count)};
}

int64_t Bundle::option(std::string_view name, int64_t fallback) const {
  const config::Node options = config::parse_text(manifest_.options, "model options");
  const config::Node* found = options.find(name);
  if (!found) return fallback;
  const auto value = config::read<int64_t>(*found);
  return value > 0 ? value : fallback;
}

}  // namespace tare::lite
