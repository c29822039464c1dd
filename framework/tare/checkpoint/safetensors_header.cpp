// Parses the header of a safetensors file and refuses whatever breaks a rule of the format.
#include "tare/checkpoint/safetensors_header.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/checkpoint/dtypes.h"
#include "tare/checkpoint/safetensors_format.h"
#include "tare/checkpoint/zip_archive.h"

namespace tare::checkpoint {
namespace {

constexpr const char* kOperation = "safetensors.open";

// Reads the header's JSON event by event: nothing nests deeper than {"name": {"shape": [n]}}, so
// there is no tree to build and no depth to limit beyond the state.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(Header& header, std::string path) : header_(header), path_(std::move(path)) {}

  bool start_object(size_t) override {
    if (state_ == State::start) return go(State::root);
    if (state_ != State::root || key_.empty()) fail(part(), "has an object where none may be");
    if (in_metadata()) return go(State::metadata);
    info_ = TensorInfo{};
    info_.name = key_;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    return go(State::tensor);
  }

  bool key(std::string& text) override {
    switch (state_) {
      case State::root:
        if (!keys_.insert(text).second) fail(text, "is given twice");
        if (text != kMetadataKey) check_new_tensor(text);
        key_ = text;
        return true;
      case State::metadata:
        if (header_.metadata.contains(text))
          fail(kMetadataKey, "has the key '" + printable(text) + "' twice");
        field_ = text;
        return true;
      default:
        field_ = text;
        return start_field();
    }
  }

  bool string(std::string& text) override {
    if (state_ == State::metadata) {
      header_.metadata.emplace(field_, text);
      return true;
    }
    if (state_ != State::tensor || field_ != "dtype") fail(part(), "has text where none may be");
    const Dtype* dtype = find_dtype(text);
    if (dtype == nullptr)
      fail(key_, "has dtype '" + printable(text) + "'; allowed are " + dtype_names());
    info_.dtype = dtype->type;
    return true;
  }

  bool start_array(size_t) override {
    if (state_ != State::tensor || field_ == "dtype") fail(part(), "has a list where none may be");
    numbers_.clear();
    return go(State::list);
  }

  bool number_unsigned(uint64_t value) override {
    if (state_ != State::list) fail(part(), "has a number where none may be");
    if (value > static_cast<uint64_t>(INT64_MAX)) fail(key_, field_ + " is above 2^63 - 1");
    const int64_t limit = field_ == "shape" ? kMaxRank : 2;
    if (static_cast<int64_t>(numbers_.size()) == limit) {
      fail(key_, field_ + " has more than " + std::to_string(limit) + " numbers");
    }
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool end_array() override {
    if (field_ == "shape") {
      info_.shape = numbers_;
    } else {
      if (numbers_.size() != 2) fail(key_, "data_offsets needs two numbers");
      if (numbers_[1] < numbers_[0]) fail(key_, "data_offsets end before they begin");
      info_.offset = numbers_[0];
      info_.bytes = numbers_[1] - numbers_[0];
    }
    return go(State::tensor);
  }

  bool end_object() override {
    if (state_ == State::root) return go(State::end);
    if (state_ == State::tensor) finish_tensor();
    key_.clear();
    return go(State::root);
  }

  bool null() override { fail(part(), "has null where none may be"); }
  bool boolean(bool) override { fail(part(), "has a bool where none may be"); }
  bool number_integer(int64_t) override { fail(part(), "has a negative number"); }
  bool number_float(double, const std::string&) override {
    fail(part(), "has a number that is not an integer");
  }
  bool binary(nlohmann::json::binary_t&) override { fail(part(), "has binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail("header", "is no JSON, at byte " + std::to_string(position));
  }

 private:
  enum class State { start, root, metadata, tensor, list, end };

  bool go(State next) {
    state_ = next;
    return true;
  }
  [[noreturn]] void fail(const std::string& where, std::string_view problem) const {
    throw FormatError(kOperation, path_, printable(where), problem);
  }
  [[nodiscard]] bool in_metadata() const { return key_ == kMetadataKey; }
  [[nodiscard]] std::string part() const { return key_.empty() ? "header" : key_; }

  void check_new_tensor(const std::string& name) const {
    if (name.empty()) fail("header", "has a tensor with an empty name");
    if (const auto problem = name_problem(name)) fail(name, *problem);
    if (static_cast<int64_t>(header_.tensors.size()) == kMaxTensors) {
      fail(name, "is one tensor more than " + format_count(kMaxTensors));
    }
  }

  bool start_field() {
    bool* seen = field_ == "dtype"          ? &has_dtype_
                 : field_ == "shape"        ? &has_shape_
                 : field_ == "data_offsets" ? &has_offsets_
                                            : nullptr;
    if (seen == nullptr) fail(key_, "has the unknown field '" + printable(field_) + "'");
    if (*seen) fail(key_, "has the field " + field_ + " twice");
    return *seen = true;
  }

  void finish_tensor() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_)
      fail(key_, "needs the fields dtype, shape, data_offsets");
    const auto bytes = checked_bytes(info_.shape, info_.dtype);
    if (!bytes) fail(key_, "has a shape whose size overflows");
    if (*bytes != info_.bytes) {
      fail(key_, describe(info_.dtype, info_.shape) + " takes " + std::to_string(*bytes) +
                     " bytes, its offsets " + std::to_string(info_.bytes));
    }
    header_.tensors.push_back(std::move(info_));
  }

  Header& header_;
  std::string path_;
  State state_ = State::start;
  std::string key_, field_;
  std::unordered_set<std::string> keys_;
  std::vector<int64_t> numbers_;
  TensorInfo info_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

// Sorts by place and demands that the tensors fill the data without hole or overlap.
void check_places(Header& header, int64_t data_bytes, const std::string& path) {
  sort_by_place(header.tensors);
  int64_t end = 0;
  for (const auto& t : header.tensors) {
    if (t.offset != end) {
      throw FormatError(kOperation, path, printable(t.name),
                        "begins at byte " + std::to_string(t.offset) +
                            " of the data, the tensor before it ends at " + std::to_string(end));
    }
    if (t.bytes > data_bytes - end) {
      throw FormatError(kOperation, path, printable(t.name),
                        "ends behind the end of the file; the file is truncated");
    }
    end += t.bytes;
  }
  if (end != data_bytes) {
    throw FormatError(kOperation, path, "data",
                      std::to_string(data_bytes - end) + " bytes of the file belong to no tensor");
  }
}

// The header's text, its length checked against file and limit.
std::string_view header_text(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < 8)
    throw FormatError(kOperation, path, "header", "is missing: the file has less than 8 bytes");
  if (is_zip(file))
    throw FormatError(kOperation, path, "header",
                      "is that of a zip archive; weights of PyTorch (.pt, .pth) are taken by "
                      "model.weights and tare inspect");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  if (length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    throw FormatError(kOperation, path, "header",
                      "says it is longer than " + format_count(kMaxHeaderBytes) +
                          " bytes; this is not a safetensors file");
  }
  if (length > file.size() - 8) {
    throw FormatError(kOperation, path, "header", "is longer than the file; the file is truncated");
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  if (!text.starts_with('{')) {
    throw FormatError(kOperation, path, "header",
                      "does not begin with '{'; this is not a safetensors file");
  }
  // nlohmann's parser would take a zero byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) {
    throw FormatError(kOperation, path, "header", "has a zero byte; the file is damaged");
  }
  return text;
}

}  // namespace

Header parse_header(std::span<const std::byte> file, const std::filesystem::path& path) {
  const std::string_view text = header_text(file, path.string());
  Header header;
  header.data_start = static_cast<int64_t>(8 + text.size());
  HeaderReader reader(header, path.string());
  nlohmann::json::sax_parse(text, &reader);
  check_places(header, static_cast<int64_t>(file.size()) - header.data_start, path.string());
  return header;
}

}  // namespace tare::checkpoint
