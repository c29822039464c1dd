// Recognises files for other programs, and compares them with their hashes.
#include "tare/interchange/read_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/zip_archive.h"
#include "tare/inference/manifest_json.h"
#include "tare/interchange/found_file.h"

namespace tare::interchange {
namespace {

namespace fs = std::filesystem;

/// Whether it is a file of safetensors with the manifest of a model.
bool has_manifest(const fs::path& path) {
  try {
    const auto file = checkpoint::SafeTensors::open(path);
    return file.metadata().contains(kManifestKey) || file.metadata().contains(kSealKey);
  } catch (const FormatError&) {  // which inspect() describes
    return false;
  }
}

FoundFile find_safetensors(const fs::path& path) {
  FoundFile found{.weights = checkpoint::SafeTensors::open(path)};
  const auto& metadata = found.weights->metadata();
  if (const auto manifest = metadata.find(kManifestKey); manifest != metadata.end())
    found.manifest = found.rest = manifest->second;
  if (const auto seal = metadata.find(kSealKey); seal != metadata.end())
    found.seal = read_seal(seal->second, path);
  for (const checkpoint::TensorInfo& info : found.weights->tensors()) {
    found.tensors.push_back({.part = part_of({info.name, found.weights->tensor(info.name)}),
                             .bytes = found.weights->data(info)});
  }
  std::vector<TensorPart> parts;
  for (const FoundTensor& one : found.tensors) parts.push_back(one.part);
  found.rest += outline(parts);
  return found;
}

FoundFile find(const fs::path& path, const std::string& format) {
  if (format == "safetensors") return find_safetensors(path);
  if (format == "gguf") return find_gguf(path);
  return format == "pt2" ? find_pt2(path) : find_onnx(path);
}

/// Whether a zip archive says that it is a `.pt2` file; one that cannot be read is one by its name.
bool is_pt2(const fs::path& path) {
  const io::Mapping file(path);
  if (!checkpoint::is_zip(file.bytes())) return false;
  if (path.extension() == ".pt2") return true;
  try {
    for (const auto& [name, bytes] : checkpoint::read_zip(file.bytes(), path))
      if (name.ends_with("archive_format") && bytes.size() == 3)
        return std::string_view(reinterpret_cast<const char*>(bytes.data()), 3) == "pt2";
  } catch (const FormatError&) {  // a damaged file of another kind, which others describe
  }
  return false;
}

/// Returns what is not as it was written; empty: nothing.
std::string difference(const FoundFile& file) {
  std::vector<std::string> wrong, missing;
  for (const auto& [name, hash] : file.seal->tensors) {
    const auto at = std::ranges::find_if(
        file.tensors, [&](const FoundTensor& one) { return one.part.name == name; });
    if (at == file.tensors.end())
      missing.push_back(name);
    else if (checkpoint::hash(at->bytes) != hash)
      wrong.push_back(name);
  }
  constexpr size_t kMostNames = 20;
  std::string text;
  const auto add = [&](const std::string& problem) {
    text += (text.empty() ? "" : "; ") + problem;
  };
  if (!wrong.empty())
    add("these tensors are not as they were written: " + listed(wrong, kMostNames));
  if (!missing.empty()) add("these tensors are missing: " + listed(missing, kMostNames));
  if (checkpoint::hash(file.rest) != file.seal->layout)
    add("what is beside the tensors is not as it was written");
  if (text.empty() && !file.framed) add("the directory of the archive is not as it was written");
  return text;
}

}  // namespace

std::string format_of(const fs::path& path) {
  if (!fs::is_regular_file(path)) return {};
  std::string start(16, '\0');
  {
    io::File file(path, io::Mode::read);
    start.resize(file.read(start.data(), start.size()));
  }
  if (start.starts_with("GGUF")) return "gguf";
  constexpr size_t kLength = 8;  // bytes of a number in front of the header
  if (start.size() > kLength && start[kLength] == '{')
    return has_manifest(path) ? "safetensors" : "";
  const bool begins_as_onnx = start.starts_with('\x08') && path.extension() == ".onnx";
  if (begins_as_onnx || start.starts_with("\x08\x08\x12\x04tare")) return "onnx";
  return is_pt2(path) ? "pt2" : "";
}

FileParts read_parts(const fs::path& path) {
  FileParts parts{.kind = format_of(path), .bytes = static_cast<int64_t>(fs::file_size(path))};
  try {
    const FoundFile file = find(path, parts.kind);
    for (auto it = file.mappings.begin(); it != file.mappings.end(); ++it)
      if (it != file.mappings.begin()) parts.bytes += std::ssize(it->bytes());
    for (const FoundTensor& one : file.tensors) parts.tensors.push_back(one.part);
    if (file.seal) parts.problem = difference(file);
    if (file.seal) parts.verified = parts.problem.empty();
    if (!file.manifest.empty()) parts.manifest = manifest_from_json(file.manifest, path);
  } catch (const IoError&) {
    throw;
  } catch (const Error& error) {  // of the format, or of what the manifest says
    parts.verified = false;
    parts.problem = error.what();
  }
  return parts;
}

bool is_ours(const fs::path& path) {
  try {
    return find(path, format_of(path)).seal.has_value();
  } catch (const FormatError&) {  // a file that nobody can read
    return false;
  }
}

void verify_file(const fs::path& path) {
  const FileParts parts = read_parts(path);
  if (parts.problem.empty()) return;
  throw FormatError(kReadFile, path.string(), "content", parts.problem);
}

}  // namespace tare::interchange
