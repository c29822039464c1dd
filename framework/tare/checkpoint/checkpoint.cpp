// Writes and reads checkpoint folders with a manifest of their files.
#include "tare/checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/safetensors.h"

namespace tare::checkpoint {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kSave = "checkpoint.save";
constexpr const char* kLoad = "checkpoint.load";
constexpr const char* kFormat = "tare.checkpoint";
constexpr int64_t kVersion = 1;
constexpr const char* kManifestFile = "manifest.json";
constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kExtraFile = "extra.safetensors";
constexpr std::array kFiles = {kModelFile, kOptimizerFile, kExtraFile};

json write_part(const fs::path& path, const std::vector<NamedTensor>& tensors, bool flush) {
  io::File file(path, io::Mode::create);
  json entry = to_json(write(file, tensors));
  if (flush) file.flush();
  entry["bytes"] = file.size();
  file.close();
  return entry;
}

void write_manifest(const fs::path& path, const std::string& text, bool flush) {
  io::File file(path, io::Mode::create);
  file.write(text);
  if (flush) file.flush();
  file.close();
}

// Reads the manifest of a checkpoint and offers its parts, each checked where it is asked for.
class Manifest {
 public:
  explicit Manifest(const fs::path& folder)
      : path_(folder / kManifestFile),
        json_(unseal(io::read_text(path_, kMaxManifestBytes), kLoad, path_, kManifestFile)) {
    if (text("format") != kFormat) fail("format", "is not " + std::string(kFormat));
    const json& version = at("version");
    if (!version.is_number_unsigned() || version.get<uint64_t>() != kVersion) {
      fail("version",
           "is " + printable(version.dump()) + "; this Tare reads " + std::to_string(kVersion));
    }
    if (!at("state").is_object()) fail("state", "is not an object");
    check_files();
  }

  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) fail(key, "is not a text");
    return at(key).get<std::string>();
  }
  [[nodiscard]] std::string state() const { return at("state").dump(); }
  [[nodiscard]] bool lists(const char* file) const { return at("files").contains(file); }
  [[nodiscard]] int64_t bytes(const char* file) const {
    return at("files")[file]["bytes"].get<int64_t>();
  }
  [[nodiscard]] Digest digest(const char* file) const {
    return digest_from_json(at("files")[file], kLoad, path_, std::string("files.") + file);
  }

 private:
  [[noreturn]] void fail(const std::string& part, const std::string& problem) const {
    throw FormatError(kLoad, path_.string(), part, problem);
  }
  [[nodiscard]] const json& at(const char* key) const {
    if (!json_.contains(key)) fail(key, "is missing");
    return json_.at(key);
  }
  void check_files() const {
    const json& files = at("files");
    if (!files.is_object() || !files.contains(kModelFile))
      fail("files", "does not list " + std::string(kModelFile));
    for (const auto& [name, entry] : files.items()) {
      if (std::ranges::find(kFiles, name) == kFiles.end())
        fail("files", "lists the unknown file " + printable(name));
      if (!entry.is_object() || !entry.contains("bytes") || !entry["bytes"].is_number_unsigned()) {
        fail("files." + name, "has no size");
      }
    }
  }

  fs::path path_;
  json json_;
};

std::vector<NamedTensor> read_part(const fs::path& folder, const char* name,
                                   const Manifest& manifest) {
  if (!manifest.lists(name)) return {};
  const fs::path path = folder / name;
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw FormatError(kLoad, path.string(), name, "is missing: the manifest lists it");
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (bytes != manifest.bytes(name)) {
    throw FormatError(kLoad, path.string(), name,
                      "has " + std::to_string(bytes) + " bytes, the manifest lists " +
                          std::to_string(manifest.bytes(name)) +
                          ": it is truncated or not of this checkpoint");
  }
  const SafeTensors file = SafeTensors::open(path);
  verify(file, manifest.digest(name), kLoad);
  return file.all();
}

// The folder to read, known to hold a manifest.
fs::path checked_folder(const fs::path& path) {
  if (path.filename().extension() == ".partial") {
    throw FormatError(kLoad, path.string(), "",
                      "is a partial checkpoint of a save that did not end; load another one");
  }
  fs::path folder = io::current_directory(path);
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (!fs::exists(status)) throw IoError(kLoad, path.string(), ENOENT);
  if (!fs::is_directory(status))
    throw FormatError(kLoad, path.string(), "", "is a file, not a checkpoint directory");
  if (!fs::is_regular_file(folder / kManifestFile, error)) {
    throw FormatError(kLoad, path.string(), kManifestFile,
                      "is missing: the checkpoint is incomplete, or no checkpoint");
  }
  return folder;
}

}  // namespace

void save(const fs::path& path, const Contents& contents, const SaveOptions& options) {
  const json state = parse_object(contents.state, kSave, path, "state");
  if (path.has_parent_path()) io::make_directories(path.parent_path());
  io::write_directory_atomically(path, [&](const fs::path& folder) {
    json files = {{kModelFile, write_part(folder / kModelFile, contents.model, options.flush)}};
    const auto add = [&](const char* name, const std::vector<NamedTensor>& tensors) {
      if (!tensors.empty()) files[name] = write_part(folder / name, tensors, options.flush);
    };
    add(kOptimizerFile, contents.optimizer);
    add(kExtraFile, contents.extra);
    const std::string text = seal({{"format", kFormat},
                                   {"version", kVersion},
                                   {"tare", tare_version()},
                                   {"libtorch", libtorch_version()},
                                   {"files", files},
                                   {"state", state}});
    (void)unseal(text, kSave, path, kManifestFile);  // refuses now what load() would refuse
    write_manifest(folder / kManifestFile, text, options.flush);
  });
}

Loaded load(const fs::path& path, const LoadOptions& options) {
  const fs::path folder = checked_folder(path);
  const Manifest manifest(folder);
  Loaded loaded;
  loaded.model = read_part(folder, kModelFile, manifest);
  loaded.has_optimizer = manifest.lists(kOptimizerFile);
  if (options.with_optimizer) loaded.optimizer = read_part(folder, kOptimizerFile, manifest);
  loaded.extra = read_part(folder, kExtraFile, manifest);
  loaded.state = manifest.state();
  loaded.tare_version = manifest.text("tare");
  loaded.libtorch_version = manifest.text("libtorch");
  return loaded;
}

bool exists(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(io::current_directory(path) / kManifestFile, error);
}

}  // namespace tare::checkpoint
