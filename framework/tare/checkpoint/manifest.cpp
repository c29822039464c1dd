// Parses JSON within limits, and seals manifests with their checksum.
#include "tare/checkpoint/manifest.h"

#include <torch/headeronly/version.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/content_hash.h"
#include "tare/base/error.h"

namespace tare::checkpoint {
namespace {

constexpr std::string_view kSealStart = "{\n \"checksum\": \"xxh3:";
constexpr std::string_view kSealEnd = "\",\n";
constexpr size_t kHexDigits = 16;

bool is_hash(const nlohmann::json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == kHexDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Reads without building a tree, so that what is refused takes no memory.
class ManifestGuard final : public nlohmann::json_sax<nlohmann::json> {
 public:
  [[nodiscard]] const std::string& problem() const { return problem_; }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(int64_t) override { return value(); }
  bool number_unsigned(uint64_t) override { return value(); }
  bool number_float(double, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(nlohmann::json::binary_t&) override { return value(); }
  bool start_array(size_t) override { return open(); }
  bool start_object(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool end_object() override { return close(); }
  bool key(std::string& text) override {
    keys_.back().push_back(text);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse("is not valid JSON, at byte " + std::to_string(position));
  }

 private:
  bool refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool value() {
    if (++values_ <= kMaxManifestValues) return true;
    return refuse("has more than " + format_count(kMaxManifestValues) + " values");
  }
  bool open() {
    keys_.emplace_back();
    if (static_cast<int64_t>(keys_.size()) > kMaxManifestDepth)
      return refuse("nests deeper than " + std::to_string(kMaxManifestDepth));
    return value();
  }
  // Looks for a key twice here, so that too many are refused before the work of comparing them.
  bool close() {
    std::vector<std::string> keys = std::move(keys_.back());
    keys_.pop_back();
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    return twice == keys.end() || refuse("has the key '" + printable(*twice) + "' twice");
  }

  std::vector<std::vector<std::string>> keys_;  // of every object or list that is open
  int64_t values_ = 0;
  std::string problem_;
};

}  // namespace

std::string hash(std::span<const std::byte> bytes) { return content_hash(bytes); }
std::string hash(std::string_view text) {
  return hash(std::as_bytes(std::span(text.data(), text.size())));
}

nlohmann::json parse_object(std::string_view text, std::string_view operation,
                            const std::filesystem::path& path, const std::string& part) {
  using nlohmann::json;
  const auto fail = [&](const std::string& problem) {
    throw FormatError(operation, path.string(), part, problem);
  };
  if (static_cast<int64_t>(text.size()) > kMaxManifestBytes)
    fail("is larger than " + format_bytes(kMaxManifestBytes));
  // The parser would take a zero byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) fail("has a zero byte");
  ManifestGuard guard;
  if (!json::sax_parse(text, &guard)) fail(guard.problem());
  json result = json::parse(text);
  if (!result.is_object()) fail("is no JSON object");
  return result;
}

std::string seal(const nlohmann::json& manifest) {
  const std::string body = manifest.dump(1).substr(2);  // without "{\n"
  return std::string(kSealStart) + hash(body) + std::string(kSealEnd) + body;
}

nlohmann::json unseal(std::string_view text, std::string_view operation,
                      const std::filesystem::path& path, const std::string& part) {
  const size_t body_start = kSealStart.size() + kHexDigits + kSealEnd.size();
  if (text.size() <= body_start || !text.starts_with(kSealStart) ||
      text.substr(kSealStart.size() + kHexDigits, kSealEnd.size()) != kSealEnd) {
    throw FormatError(operation, path.string(), part,
                      "does not begin with its checksum: it is damaged or not Tare's");
  }
  const std::string_view body = text.substr(body_start);
  if (hash(body) != text.substr(kSealStart.size(), kHexDigits)) {
    throw FormatError(operation, path.string(), part,
                      "has another checksum than it says: it was damaged or changed");
  }
  nlohmann::json manifest = parse_object(text, operation, path, part);
  manifest.erase("checksum");
  return manifest;
}

nlohmann::json to_json(const Digest& digest) {
  return {{"layout", digest.layout}, {"tensors", digest.tensors}};
}

Digest digest_from_json(const nlohmann::json& json, std::string_view operation,
                        const std::filesystem::path& path, const std::string& part) {
  const auto valid = [&] {
    if (!json.is_object() || !json.contains("layout") || !is_hash(json["layout"])) return false;
    if (!json.contains("tensors") || !json["tensors"].is_object()) return false;
    return std::ranges::all_of(json["tensors"], is_hash);
  };
  if (!valid()) {
    throw FormatError(operation, path.string(), part,
                      "needs 'layout' and 'tensors' with hashes of 16 digits");
  }
  return {json["layout"].get<std::string>(),
          json["tensors"].get<std::map<std::string, std::string>>()};
}

std::string tare_version() { return TARE_VERSION; }

std::string libtorch_version() {
  return std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR) + "." +
         std::to_string(TORCH_VERSION_PATCH);
}

}  // namespace tare::checkpoint
