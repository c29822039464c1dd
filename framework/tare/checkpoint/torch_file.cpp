// Opens files of torch.save, and finds the dict of tensors in what was saved.
#include "tare/checkpoint/torch_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/checkpoint/pickle.h"
#include "tare/checkpoint/safetensors_format.h"
#include "tare/checkpoint/safetensors_header.h"
#include "tare/checkpoint/torch_storages.h"
#include "tare/checkpoint/zip_archive.h"

namespace tare::checkpoint {
namespace {

using Kind = PickleValue::Kind;

constexpr const char* kOperation = "torch_file.open";
constexpr std::string_view kPickleEntry = "data.pkl";
constexpr std::array<std::string_view, 4> kNested{"state_dict", "model_state_dict", "model",
                                                  "module"};
constexpr size_t kMaxDepth = 8;  // of dicts in dicts
constexpr std::byte kProtocol{0x80};
// The pickle of a magic number of ten bytes; no header of safetensors is as long as it would say.
constexpr std::array kOldStart{kProtocol, std::byte{2}, std::byte{0x8a}, std::byte{10}};
constexpr size_t kShown = 8;

/// Finds the tensors of one file.
class Reader {
 public:
  Reader(const std::filesystem::path& path, std::shared_ptr<io::Mapping> mapping)
      : path_(path.string()), entries_(archive(mapping->bytes(), path)), folder_(find_folder()) {
    check_byte_order();
    pickle_ = read_pickle(entries_.at(folder_ + std::string(kPickleEntry)), torch_names(),
                          kOperation, path);
    storages_.emplace(entries_, folder_, std::move(mapping));
  }

  void read(std::vector<NamedTensor>& tensors, std::string& place,
            std::vector<std::string>& others) {
    const PickleValue& dict = find_state(place, others);
    std::unordered_set<std::string> seen;
    for (size_t i = 0; i < dict.items.size(); i += 2) {
      const std::string name = key_of(dict, i);
      if (!seen.insert(name).second) fail(name, "is given twice");
      const PickleValue& value = pickle_.at(dict.items[i + 1]);
      if (TorchStorages::is_tensor(value)) {
        check_new(name, tensors.size());
        tensors.push_back({name, storages_->tensor(pickle_, value, name, path_)});
      } else {
        others.push_back(name);
      }
    }
    if (tensors.empty()) fail_without_tensors(dict);
  }

 private:
  [[noreturn]] void fail(const std::string& part, std::string_view problem) const {
    throw FormatError(kOperation, path_, printable(part), problem);
  }

  [[nodiscard]] ZipEntries archive(std::span<std::byte> file,
                                   const std::filesystem::path& path) const {
    if (is_zip(file)) return read_zip(file, path);
    if (!file.empty() && file[0] == kProtocol)
      fail("file",
           "is no zip archive, but a pickle, as PyTorch wrote before version 1.6, which is not "
           "read; load and save it again in Python: torch.save(torch.load(path), path)");
    fail("file", "is neither a zip archive of torch.save nor a safetensors file");
  }

  // NAME/, where NAME/data.pkl is the one such entry.
  [[nodiscard]] std::string find_folder() const {
    std::string folder;
    for (const auto& [name, bytes] : entries_) {
      const size_t slash = name.find('/');
      if (slash == std::string::npos || name.substr(slash + 1) != kPickleEntry) continue;
      if (!folder.empty()) fail("archive", "has two entries data.pkl");
      folder = name.substr(0, slash + 1);
    }
    if (folder.empty()) fail("archive", "has no entry NAME/data.pkl, as torch.save writes it");
    if (entries_.contains(folder + "constants.pkl"))
      fail("archive",
           "is a TorchScript program, which is not read; save its weights in Python: "
           "torch.save(torch.jit.load(path).state_dict(), path)");
    return folder;
  }

  // Files from before PyTorch 2.1 have no such entry, and are little-endian.
  void check_byte_order() const {
    const auto entry = entries_.find(folder_ + "byteorder");
    if (entry == entries_.end()) return;
    const std::string_view order(reinterpret_cast<const char*>(entry->second.data()),
                                 entry->second.size());
    if (order != "little")
      fail("byteorder", "is '" + printable(order) + "', and only 'little' is read");
  }

  [[nodiscard]] std::string key_of(const PickleValue& dict, size_t i) const {
    const PickleValue& key = pickle_.at(dict.items[i]);
    if (key.kind == Kind::integer) return std::to_string(key.integer);
    if (key.kind != Kind::text) fail("data.pkl", "has a key that is neither a text nor an integer");
    return std::string(key.text);
  }

  void check_new(const std::string& name, size_t count) const {
    if (const auto problem = name_problem(name)) fail(name, *problem);
    if (static_cast<int64_t>(count) == kMaxTensors)
      fail(name, "is one tensor more than " + format_count(kMaxTensors));
  }

  /// Opens dicts in dicts; `place` gets the keys, `others` the ones beside them.
  const PickleValue& find_state(std::string& place, std::vector<std::string>& others) const {
    const PickleValue* dict = &pickle_.at(pickle_.root);
    for (size_t depth = 0;; ++depth) {
      if (dict->kind != Kind::dict)
        fail("data.pkl", "holds no dict of tensors; save model.state_dict() in Python");
      const auto inner = nested_in(*dict);
      if (!inner) return *dict;
      if (depth == kMaxDepth) fail("data.pkl", "has dicts in dicts without an end");
      const std::string key = key_of(*dict, *inner);
      place += (place.empty() ? "" : ".") + key;
      for (size_t i = 0; i < dict->items.size(); i += 2)
        if (i != *inner) others.push_back(key_of(*dict, i));
      dict = &pickle_.at(dict->items[*inner + 1]);
    }
  }

  [[nodiscard]] std::optional<size_t> nested_in(const PickleValue& dict) const {
    std::optional<size_t> found;
    for (size_t i = 0; i < dict.items.size(); i += 2) {
      const PickleValue &key = pickle_.at(dict.items[i]), &value = pickle_.at(dict.items[i + 1]);
      if (key.kind != Kind::text || value.kind != Kind::dict ||
          std::ranges::find(kNested, key.text) == kNested.end())
        continue;
      if (found)
        fail("data.pkl", "has the dicts '" + key_of(dict, *found) + "' and '" + key_of(dict, i) +
                             "'; save one of them alone in Python");
      found = i;
    }
    return found;
  }

  [[noreturn]] void fail_without_tensors(const PickleValue& dict) const {
    std::vector<std::string> keys;
    for (size_t i = 0; i < dict.items.size(); i += 2) keys.push_back(key_of(dict, i));
    fail("data.pkl", "has no tensor in its dict" +
                         (keys.empty() ? std::string(", which is empty")
                                       : ", which has the keys " + listed(keys, kShown)) +
                         "; save model.state_dict() in Python");
  }

  std::string path_;
  ZipEntries entries_;
  std::string folder_;
  Pickle pickle_;
  std::optional<TorchStorages> storages_;
};

}  // namespace

bool is_torch_file(const std::filesystem::path& path) {
  const io::Mapping file(path);
  const std::span<const std::byte> bytes = file.bytes();
  return is_zip(bytes) || (bytes.size() >= kOldStart.size() &&
                           std::ranges::equal(bytes.first(kOldStart.size()), kOldStart));
}

TorchFile TorchFile::open(const std::filesystem::path& path) {
  auto mapping = std::make_shared<io::Mapping>(path);
  TorchFile file;
  file.path_ = path;
  file.file_bytes_ = static_cast<int64_t>(mapping->bytes().size());
  Reader(path, std::move(mapping)).read(file.tensors_, file.place_, file.others_);
  return file;
}

}  // namespace tare::checkpoint
