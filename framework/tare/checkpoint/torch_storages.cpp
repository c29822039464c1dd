// Checks what the calls of a pickle say about tensors, and makes views of storages.
#include "tare/checkpoint/torch_storages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "tare/base/error.h"
#include "tare/checkpoint/dtypes.h"
#include "tare/checkpoint/tensor_info.h"

namespace tare::checkpoint {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kTensor2 = "torch._utils._rebuild_tensor_v2",
                           kTensor3 = "torch._utils._rebuild_tensor_v3",
                           kParameter = "torch._utils._rebuild_parameter",
                           kUntyped = "torch.storage.UntypedStorage";
constexpr size_t kAlignment = 16;  // of the widest dtype, and more

struct StorageText {
  std::string_view key;
  std::optional<c10::ScalarType> type;  ///< unset: bytes of any type
  int64_t count = 0;                    ///< values of the type, or bytes
};

struct Named {
  std::string name;
  c10::ScalarType type;
};

const std::vector<Named>& storage_types() {
  using c10::ScalarType;
  static const std::vector<Named> all = {
      {"torch.FloatStorage", ScalarType::Float}, {"torch.DoubleStorage", ScalarType::Double},
      {"torch.HalfStorage", ScalarType::Half},   {"torch.BFloat16Storage", ScalarType::BFloat16},
      {"torch.LongStorage", ScalarType::Long},   {"torch.IntStorage", ScalarType::Int},
      {"torch.ShortStorage", ScalarType::Short}, {"torch.CharStorage", ScalarType::Char},
      {"torch.ByteStorage", ScalarType::Byte},   {"torch.BoolStorage", ScalarType::Bool}};
  return all;
}

const std::vector<Named>& dtype_constants() {
  static const std::vector<Named> all = [] {
    std::vector<Named> made;
    for (const Dtype& each : dtypes())
      made.push_back({std::string("torch.") + each.torch_name, each.type});
    return made;
  }();
  return all;
}

const Named* find_name(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<std::string_view>& torch_names() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> names{kTensor2, kTensor3, kParameter, kUntyped};
    for (const auto& list : {&storage_types(), &dtype_constants()})
      for (const Named& each : *list) names.push_back(each.name);
    return names;
  }();
  return all;
}

std::string_view torch_storage_name(c10::ScalarType type) {
  const auto found = std::ranges::find(storage_types(), type, &Named::type);
  return found == storage_types().end() ? std::string_view() : found->name;
}

/// The arguments of one call, checked one after the other.
class TorchStorages::Call {
 public:
  Call(const Pickle& pickle, const PickleValue& call, const std::string& name,
       const std::string& path)
      : pickle_(pickle), name_(name), path_(path) {
    arguments_ = &items_of(pickle.at(call.items[0]), Kind::tuple);
    if (call.text == kParameter)
      unwrap();
    else
      function_ = call.text;
  }

  [[noreturn]] void fail(std::string_view problem) const {
    throw FormatError("torch_file.open", path_, printable(name_), problem);
  }

  // ("storage", type, key, device, count)
  [[nodiscard]] StorageText storage() const {
    const auto& wrapped = items_of(argument(0), Kind::persistent);
    const auto& parts = items_of(pickle_.at(wrapped[0]), Kind::tuple);
    if (parts.size() != 5 || of(parts[0], Kind::text).text != "storage")
      fail("has a storage of another form");
    const std::string_view type = of(parts[1], Kind::name).text;
    const Named* known = find_name(storage_types(), type);
    if (known == nullptr && type != kUntyped) fail("has a storage of another form");
    return {.key = of(parts[2], Kind::text).text,
            .type = known != nullptr ? std::optional(known->type) : std::nullopt,
            .count = of(parts[4], Kind::integer).integer};
  }

  // That of the storage or, of bytes, the seventh argument of _rebuild_tensor_v3.
  [[nodiscard]] c10::ScalarType type(const StorageText& storage) const {
    if (storage.type) return *storage.type;
    if (function_ != kTensor3 || arguments_->size() < 7) fail("has a storage without a dtype");
    const Named* known = find_name(dtype_constants(), of((*arguments_)[6], Kind::name).text);
    if (known == nullptr) fail("has a dtype of another form");
    return known->type;
  }

  [[nodiscard]] int64_t offset() const { return whole(argument(1)); }
  [[nodiscard]] std::vector<int64_t> sizes() const { return numbers(argument(2)); }
  [[nodiscard]] std::vector<int64_t> strides() const { return numbers(argument(3)); }

 private:
  // A parameter is a tensor, whether it wants a gradient, and hooks.
  void unwrap() {
    const PickleValue& inner = argument(0);
    if (!is_tensor(inner) || inner.text == kParameter) fail("is a parameter without a tensor");
    function_ = inner.text;
    arguments_ = &items_of(pickle_.at(inner.items[0]), Kind::tuple);
  }

  [[nodiscard]] const PickleValue& of(PickleIndex index, Kind kind) const {
    const PickleValue& value = pickle_.at(index);
    if (value.kind != kind) fail("has an argument of another form");
    return value;
  }
  [[nodiscard]] const std::vector<PickleIndex>& items_of(const PickleValue& value,
                                                         Kind kind) const {
    if (value.kind != kind) fail("has an argument of another form");
    return value.items;
  }
  [[nodiscard]] const PickleValue& argument(size_t index) const {
    if (index >= arguments_->size()) fail("has too few arguments");
    return pickle_.at((*arguments_)[index]);
  }
  [[nodiscard]] int64_t whole(const PickleValue& value) const {
    if (value.kind != Kind::integer || value.integer < 0)
      fail("has a size, stride or offset that is no whole number >= 0");
    return value.integer;
  }
  [[nodiscard]] std::vector<int64_t> numbers(const PickleValue& tuple) const {
    std::vector<int64_t> all;
    for (const PickleIndex each : items_of(tuple, Kind::tuple)) {
      if (static_cast<int64_t>(all.size()) == kMaxRank)
        fail("has more than " + std::to_string(kMaxRank) + " dimensions");
      all.push_back(whole(pickle_.at(each)));
    }
    return all;
  }

  const Pickle& pickle_;
  const std::string& name_;
  const std::string& path_;
  std::string_view function_;
  const std::vector<PickleIndex>* arguments_ = nullptr;
};

namespace {

/// Returns the values from the first to behind the last one of a view; unset: above 2^63 - 1.
std::optional<int64_t> reach_of(int64_t offset, const std::vector<int64_t>& sizes,
                                const std::vector<int64_t>& strides) {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return last == INT64_MAX ? std::nullopt : std::optional(last + 1);
}

bool are_bools(const at::Tensor& bytes) {
  const auto* data = bytes.const_data_ptr<uint8_t>();
  return std::all_of(data, data + bytes.numel(), [](uint8_t each) { return each <= 1; });
}

}  // namespace

TorchStorages::TorchStorages(ZipEntries entries, std::string folder,
                             std::shared_ptr<io::Mapping> mapping)
    : entries_(std::move(entries)), folder_(std::move(folder)), mapping_(std::move(mapping)) {}

bool TorchStorages::is_tensor(const PickleValue& value) {
  return value.kind == Kind::call &&
         (value.text == kTensor2 || value.text == kTensor3 || value.text == kParameter);
}

TorchStorages::Storage* TorchStorages::find(std::string_view key) {
  const std::string name(key);
  if (const auto known = storages_.find(name); known != storages_.end()) return &known->second;
  const auto entry = entries_.find(folder_ + "data/" + name);
  if (entry == entries_.end()) return nullptr;
  const auto size = static_cast<int64_t>(entry->second.size());
  std::byte* data = entry->second.data();
  Storage storage;
  if (size > 0 && reinterpret_cast<uintptr_t>(data) % kAlignment == 0) {
    storage.bytes = at::from_blob(
        data, {size}, [keep = mapping_](void*) {}, at::TensorOptions(c10::kByte));
  } else {
    storage.bytes = at::empty({size}, at::TensorOptions(c10::kByte));
    if (size > 0) std::memcpy(storage.bytes.mutable_data_ptr(), data, entry->second.size());
  }
  return &storages_.emplace(name, std::move(storage)).first->second;
}

TorchStorages::Storage& TorchStorages::storage_of(const Call& call, std::string_view key,
                                                  int64_t bytes) {
  Storage* storage = find(key);
  if (storage == nullptr) call.fail("has a storage that the archive lacks");
  if (storage->bytes.numel() != bytes)
    call.fail("has a storage of another size than the archive; the file is damaged");
  return *storage;
}

void TorchStorages::check_bools(const Call& call, Storage& storage) {
  if (!storage.is_checked) storage.holds_bools = are_bools(storage.bytes);
  storage.is_checked = true;
  if (!storage.holds_bools) call.fail("has a bool that is neither 0 nor 1");
}

at::Tensor TorchStorages::tensor(const Pickle& pickle, const PickleValue& value,
                                 const std::string& name, const std::string& path) {
  const Call call(pickle, value, name, path);
  const StorageText text = call.storage();
  const auto type = call.type(text);
  const auto width = static_cast<int64_t>(c10::elementSize(type));
  const auto bytes = checked_bytes({text.count}, text.type.value_or(c10::ScalarType::Byte));
  Storage& storage = storage_of(call, text.key, bytes.value_or(-1));
  const auto sizes = call.sizes(), strides = call.strides();
  const int64_t offset = call.offset(), held = storage.bytes.numel() / width;
  if (sizes.size() != strides.size()) call.fail("has another number of strides than of sizes");
  if (!checked_bytes(sizes, type)) call.fail("has a shape whose size overflows");
  const auto options = at::TensorOptions(type);
  if (std::ranges::find(sizes, 0) != sizes.end()) return at::empty(sizes, options);
  const auto reach = reach_of(offset, sizes, strides);
  if (!reach || *reach > held)
    call.fail(describe(type, sizes) + " does not lie in its storage of " + std::to_string(held) +
              " values");
  if (type == c10::ScalarType::Bool) check_bools(call, storage);
  auto* data = static_cast<std::byte*>(storage.bytes.mutable_data_ptr()) + offset * width;
  return at::from_blob(
      data, sizes, strides, [keep = storage.bytes](void*) {}, options);
}

}  // namespace tare::checkpoint
