// Reads a pickle as data: values, and calls by name that nobody makes. Internal.
//
// A pickle is a program for a machine with a stack (Python, Lib/pickletools.py). Instructions of
// protocol 2 that make plain values are read; each name of a function or class must be in a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tare::checkpoint {

inline constexpr size_t kMaxPickleBytes = size_t{64} << 20;  ///< of one pickle
inline constexpr size_t kMaxPickleValues = 500'000;          ///< made, noted, or on the stack

/// Names a value in Pickle::values.
using PickleIndex = uint32_t;

/// Holds one value, which may be in several others.
struct PickleValue {
  enum class Kind {
    none,
    boolean,     ///< `integer` is 0 or 1
    integer,     ///< `integer`
    real,        ///< `real`
    text,        ///< `text`
    tuple,       ///< `items`
    list,        ///< `items`
    dict,        ///< `items`: key, value, key, value ... in the order of the file
    name,        ///< `text` is that of a function, class or constant: "torch.FloatStorage"
    call,        ///< `text` is the name, `items` its one tuple of arguments
    persistent,  ///< `items` is the one value that identifies data outside of the pickle
    mark         ///< separates values on the stack; never in a result
  };
  Kind kind = Kind::none;
  int64_t integer = 0;
  double real = 0;
  std::string_view text{};           ///< in the pickle's bytes
  std::vector<PickleIndex> items{};  ///< may form a cycle
};

/// Holds all values of a pickle; it refers to the pickle's bytes.
struct Pickle {
  std::deque<PickleValue> values{};
  PickleIndex root = 0;  ///< the value that was saved

  [[nodiscard]] const PickleValue& at(PickleIndex index) const { return values[index]; }
};

/// Reads a pickle without running anything: an OrderedDict is a dict, a torch.Size is a tuple, and
/// attributes that are set on an OrderedDict are dropped. `names` are allowed, beside these two.
/// Memory and time are bounded by the limits above. Throws FormatError(operation, path) for any
/// other name, an instruction outside of the list, and a pickle that is damaged.
[[nodiscard]] Pickle read_pickle(std::span<const std::byte> bytes,
                                 const std::vector<std::string_view>& names,
                                 std::string_view operation, const std::filesystem::path& path);

}  // namespace tare::checkpoint
