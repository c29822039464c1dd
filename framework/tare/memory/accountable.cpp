// Registers living objects, and counts each storage of their ledgers once.
#include "tare/memory/accountable.h"

#include <algorithm>

#include "tare/base/bytes.h"
#include "tare/base/immortal.h"

namespace tare {
namespace {

std::vector<const Accountable*>& registry() {
  static Immortal<std::vector<const Accountable*>> list;  // outlives static Accountables
  return *list;
}

}  // namespace

const char* to_string(Category category) {
  switch (category) {
    case Category::parameters:
      return "parameters";
    case Category::buffers:
      return "buffers";
    case Category::gradients:
      return "gradients";
    case Category::optimizer:
      return "optimizer";
    case Category::activations:
      return "activations";
    case Category::batch:
      return "batch";
    case Category::workspace:
      return "workspace";
    case Category::other:
      return "other";
    case Category::mapped:
      return "mapped";
  }
  return "other";
}

int64_t CategoryBytes::total() const {
  int64_t sum = 0;
  for (size_t i = 0; i < kCategories; ++i)
    if (static_cast<Category>(i) != Category::mapped) sum += bytes[i];
  return sum;
}

std::string CategoryBytes::str() const {
  std::string text;
  for (size_t i = 0; i < kCategories; ++i) {
    if (bytes[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(to_string(static_cast<Category>(i))) + " " + format_bytes(bytes[i]);
  }
  return text.empty() ? "nothing" : text;
}

void Ledger::add(Category category, const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const auto& storage = tensor.storage();
  const void* data = tensor.is_meta() ? storage.data_ptr().get_context() : storage.data();
  if (storage.nbytes() == 0 || (tensor.is_meta() && !data)) return;
  if (!storages_.insert(data).second) return;
  entries_.push_back(
      {category, name, storage.device(), data, static_cast<int64_t>(storage.nbytes())});
}

void Ledger::add(const Ledger& other) {
  for (const auto& entry : other.entries_)
    if (storages_.insert(entry.data).second) entries_.push_back(entry);
}

CategoryBytes Ledger::bytes(c10::Device device) const {
  CategoryBytes sum;
  for (const auto& entry : entries_)
    if (entry.device == device) sum[entry.category] += entry.bytes;
  return sum;
}

CategoryBytes Ledger::bytes() const {
  CategoryBytes sum;
  for (const auto& entry : entries_) sum[entry.category] += entry.bytes;
  return sum;
}

std::string PurgeReport::str() const {
  constexpr size_t kNamed = 5;
  std::string text =
      "reclaimed " + format_bytes(total()) + ": " + freed.str() + (compacted ? ", compacted" : "");
  for (size_t i = 0; i < std::min(kNamed, holders.size()); ++i)
    text +=
        (i == 0 ? "; still held: " : ", ") + format_bytes(holders[i].bytes) + ' ' + holders[i].name;
  if (holders.size() > kNamed)
    text += " and " + format_count(static_cast<int64_t>(holders.size() - kNamed)) + " more";
  return text;
}

Accountable::Accountable() {
  static uint64_t last_id = 0;
  id_ = ++last_id;
  registry().push_back(this);
}

Accountable::~Accountable() { std::erase(registry(), this); }

std::vector<const Accountable*> Accountable::living() { return registry(); }

Ledger Accountable::living_ledger() {
  Ledger all;
  for (const auto* object : registry()) all.add(object->ledger());
  return all;
}

}  // namespace tare
