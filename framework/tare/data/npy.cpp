// Parses the head of .npy files.
#include "tare/data/npy.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

constexpr const char* kWhere = "data.npy";
constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kLongestHead = 1 << 16;
constexpr size_t kMostSizes = 16;

struct NpyType {
  std::string_view name{};  // in the file
  c10::ScalarType type = c10::kFloat;
  std::string_view numpy_name{};
};
constexpr std::array kTypes = {
    NpyType{"|u1", c10::kByte, "uint8"},    NpyType{"|i1", c10::kChar, "int8"},
    NpyType{"<i2", c10::kShort, "int16"},   NpyType{"<i4", c10::kInt, "int32"},
    NpyType{"<i8", c10::kLong, "int64"},    NpyType{"|b1", c10::kBool, "bool"},
    NpyType{"<f2", c10::kHalf, "float16"},  NpyType{"<f4", c10::kFloat, "float32"},
    NpyType{"<f8", c10::kDouble, "float64"}};

/// Is where the bytes of a .npy file come from.
struct NpySource {
  std::string name{};  ///< for messages
  int64_t bytes = 0;   ///< of all
  /// Reads the next bytes, at most `size`, and returns their number.
  std::function<size_t(void* data, size_t size)> read{};
};

/// Reads a file step by step.
class NpyReader {
 public:
  NpyReader(NpySource source, int64_t limit_bytes)
      : source_(std::move(source)), limit_(limit_bytes) {}

  at::Tensor read() {
    const std::string head = read_head();
    const c10::ScalarType type = type_of(value(head, "descr"));
    if (!value(head, "fortran_order").starts_with("False"))
      fail("fortran_order", "must be False: save numpy.ascontiguousarray(array)");
    const std::vector<int64_t> shape = shape_of(value(head, "shape"));
    int64_t bytes = static_cast<int64_t>(c10::elementSize(type));
    for (const int64_t size : shape)
      if (__builtin_mul_overflow(bytes, size, &bytes)) fail("shape", "is too large");
    const int64_t rest = source_.bytes - static_cast<int64_t>(read_);
    if (rest != bytes)
      fail("data",
           "has " + format_count(rest) + " bytes, and dtype and shape need " + format_count(bytes));
    if (bytes > limit_) fail("data", "is larger than " + format_bytes(limit_));
    at::Tensor array = at::empty(shape, type);
    take(array.mutable_data_ptr(), static_cast<size_t>(bytes));
    return array;
  }

 private:
  [[noreturn]] void fail(const char* part, const std::string& problem) const {
    throw FormatError(kWhere, source_.name, part, problem);
  }

  void take(void* data, size_t size) {
    if (source_.read(data, size) != size) fail("data", "ends too early");
    read_ += size;
  }

  std::string read_head() {
    std::array<char, 8> start{};
    take(start.data(), start.size());
    if (std::string_view(start.data(), kMagic.size()) != kMagic)
      fail("magic", "is not that of a .npy file: save the array with numpy.save");
    const int version = start[6];
    if (version < 1 || version > 3) fail("version", "must be 1, 2 or 3");
    std::array<unsigned char, 4> bytes{};
    take(bytes.data(), version == 1 ? 2 : 4);
    size_t length = 0;
    for (size_t i = bytes.size(); i-- > 0;) length = length << 8 | bytes[i];
    if (length > kLongestHead) fail("head", "is longer than 64 KiB");
    std::string head(length, '\0');
    take(head.data(), length);
    return head;
  }

  /// Returns what follows a key of the head.
  std::string_view value(std::string_view head, const char* key) const {
    const size_t at = head.find('\'' + std::string(key) + "':");
    if (at == std::string_view::npos) fail(key, "is missing");
    head.remove_prefix(at + std::strlen(key) + 3);
    head.remove_prefix(std::min(head.find_first_not_of(' '), head.size()));
    return head;
  }

  c10::ScalarType type_of(std::string_view text) const {
    for (const NpyType& known : kTypes)
      if (text.starts_with('\'' + std::string(known.name) + '\'')) return known.type;
    fail("descr",
         "is " + printable(text.substr(0, text.find(',')), 40) +
             ", which is not read: save array.astype(numpy.float32), or numpy.int64 for classes");
  }

  std::vector<int64_t> shape_of(std::string_view text) const {
    std::vector<int64_t> shape;
    const size_t end = text.find(')');
    if (!text.starts_with('(') || end == std::string_view::npos) fail("shape", "is no list");
    for (text = text.substr(1, end - 1); !text.empty() && shape.size() <= kMostSizes;) {
      int64_t size = 0;
      const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || size < 0) fail("shape", "is no list of sizes");
      shape.push_back(size);
      text.remove_prefix(static_cast<size_t>(next - text.data()));
      text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
    }
    if (shape.size() > kMostSizes) fail("shape", "has more than 16 sizes");
    return shape;
  }

  NpySource source_;
  int64_t limit_;
  size_t read_ = 0;
};

}  // namespace

at::Tensor read_npy(const std::filesystem::path& path, int64_t limit_bytes) {
  io::File file(path, io::Mode::read);
  return NpyReader({.name = path.string(),
                    .bytes = file.size(),
                    .read = [&](void* data, size_t size) { return file.read(data, size); }},
                   limit_bytes)
      .read();
}

at::Tensor decode_npy(std::string_view bytes, const std::string& name) {
  const auto read = [rest = bytes](void* data, size_t size) mutable {
    const size_t taken = std::min(size, rest.size());
    std::memcpy(data, rest.data(), taken);
    rest.remove_prefix(taken);
    return taken;
  };
  const auto size = static_cast<int64_t>(bytes.size());
  return NpyReader({.name = name, .bytes = size, .read = read}, size).read();
}

std::string numpy_dtype(const at::Tensor& array) {
  const auto found = std::ranges::find(kTypes, array.scalar_type(), &NpyType::type);
  return std::string(found == kTypes.end() ? c10::toString(array.scalar_type())
                                           : found->numpy_name);
}

}  // namespace tare
