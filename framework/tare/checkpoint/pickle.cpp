// Runs the instructions of a pickle that make values, and none that does anything else.
#include "tare/checkpoint/pickle.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <unordered_map>

#include "tare/base/bytes.h"
#include "tare/base/error.h"

namespace tare::checkpoint {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kOrderedDict = "collections.OrderedDict", kSize = "torch.Size";
constexpr const char* kAdvice =
    "; save a dict of tensors in Python: torch.save(model.state_dict(), path)";

/// The machine: a stack of values, and a memo of those that are used again.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::vector<std::string_view>& names,
          std::string_view operation, std::string path)
      : bytes_(bytes), names_(names), operation_(operation), path_(std::move(path)) {}

  Pickle run() {
    if (bytes_.size() > kMaxPickleBytes)
      fail("is longer than " + format_count(kMaxPickleBytes) + " bytes");
    while (!done_) step(static_cast<unsigned char>(number(1)));
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw FormatError(operation_, path_, "data.pkl", problem);
  }
  [[noreturn]] void fail_damaged() const { fail("is damaged at byte " + std::to_string(at_)); }

  void step(unsigned char code) {
    if (!make_number(code) && !make_text(code) && !make_container(code) && !use_memo(code))
      run_other(code);
  }

  bool make_number(unsigned char code) {
    switch (code) {
      case 'N':  // NONE
        return push({.kind = Kind::none});
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return push({.kind = Kind::boolean, .integer = code == 0x88});
      case 'K':  // BININT1
        return push({.kind = Kind::integer, .integer = static_cast<int64_t>(number(1))});
      case 'M':  // BININT2
        return push({.kind = Kind::integer, .integer = static_cast<int64_t>(number(2))});
      case 'J':  // BININT
        return push({.kind = Kind::integer, .integer = static_cast<int32_t>(number(4))});
      case 0x8a:  // LONG1
        return push({.kind = Kind::integer, .integer = long_integer(number(1))});
      case 'G':  // BINFLOAT, the only number whose first byte is the highest
        return push(
            {.kind = Kind::real, .real = std::bit_cast<double>(__builtin_bswap64(number(8)))});
      default:
        return false;
    }
  }

  bool make_text(unsigned char code) {
    switch (code) {
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING, text of Python 2
        return push({.kind = Kind::text, .text = take(number(4))});
      case 'U':  // SHORT_BINSTRING
        return push({.kind = Kind::text, .text = take(number(1))});
      case 'c':  // GLOBAL
        return push({.kind = Kind::name, .text = name()});
      default:
        return false;
    }
  }

  bool make_container(unsigned char code) {
    switch (code) {
      case ')':  // EMPTY_TUPLE
        return push({.kind = Kind::tuple});
      case ']':  // EMPTY_LIST
        return push({.kind = Kind::list});
      case '}':  // EMPTY_DICT
        return push({.kind = Kind::dict});
      case '(':  // MARK
        return push({.kind = Kind::mark});
      case 't':  // TUPLE
        return push({.kind = Kind::tuple, .items = pop_to_mark()});
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        return push({.kind = Kind::tuple, .items = pop(code - 0x84U)});
      case 'a':  // APPEND
        return append(Kind::list, pop(1));
      case 'e':  // APPENDS
        return append(Kind::list, pop_to_mark());
      case 's':  // SETITEM
        return append(Kind::dict, pop(2));
      case 'u':  // SETITEMS
        return append(Kind::dict, pop_to_mark());
      default:
        return false;
    }
  }

  bool use_memo(unsigned char code) {
    switch (code) {
      case 'q':  // BINPUT
        return note(number(1));
      case 'r':  // LONG_BINPUT
        return note(number(4));
      case 'h':  // BINGET
        return push_noted(number(1));
      case 'j':  // LONG_BINGET
        return push_noted(number(4));
      default:
        return false;
    }
  }

  void run_other(unsigned char code) {
    switch (code) {
      case 0x80:  // PROTO
        if (const uint64_t protocol = number(1); protocol > 2)
          fail("is of the pickle protocol " + std::to_string(protocol) +
               ", and up to 2 is read, which torch.save writes by default");
        return;
      case 'Q':  // BINPERSID
        push({.kind = Kind::persistent, .items = pop(1)});
        return;
      case 'R':  // REDUCE
        return call();
      case 'b':  // BUILD
        return set_attributes();
      case '.':  // STOP
        pickle_.root = pop(1).front();
        done_ = true;
        return;
      default:
        return fail_instruction(code);
    }
  }

  [[noreturn]] void fail_instruction(unsigned char code) const {
    char text[8];
    std::snprintf(text, sizeof text, "0x%02x", code);
    fail("has the instruction " + std::string(text) + " at byte " + std::to_string(at_ - 1) +
         ", which is not read" + kAdvice);
  }

  // Calls are values; only the two types are made at once.
  void call() {
    const auto parts = pop(2);
    const std::string_view name = pickle_.at(parts[0]).text;
    if (pickle_.at(parts[0]).kind != Kind::name || pickle_.at(parts[1]).kind != Kind::tuple)
      fail_damaged();
    const auto& arguments = pickle_.at(parts[1]).items;
    if (name == kOrderedDict) {
      if (!arguments.empty()) fail("makes an OrderedDict from values, which is not read");
      push({.kind = Kind::dict});
    } else if (name == kSize) {
      if (arguments.size() != 1 || pickle_.at(arguments[0]).kind != Kind::tuple) fail_damaged();
      stack_.push_back(arguments[0]);
    } else {
      push({.kind = Kind::call, .text = name, .items = {parts[1]}});
    }
  }

  // The attributes of a state dict are the versions of its modules, which nothing here needs.
  void set_attributes() {
    static_cast<void>(pop(1));
    if (stack_.empty() || pickle_.at(stack_.back()).kind != Kind::dict)
      fail("sets attributes of a value that is no OrderedDict, which is not read");
  }

  bool push(PickleValue value) {
    if (pickle_.values.size() >= kMaxPickleValues)
      fail("has more than " + format_count(kMaxPickleValues) + " values");
    pickle_.values.push_back(std::move(value));
    return push_index(static_cast<PickleIndex>(pickle_.values.size() - 1));
  }

  bool push_index(PickleIndex index) {
    if (stack_.size() >= kMaxPickleValues)
      fail("has more than " + format_count(kMaxPickleValues) + " values");
    stack_.push_back(index);
    return true;
  }

  std::vector<PickleIndex> pop(size_t count) {
    if (stack_.size() < count) fail_damaged();
    const auto from = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<PickleIndex> popped(from, stack_.end());
    stack_.erase(from, stack_.end());
    for (const PickleIndex each : popped)
      if (pickle_.at(each).kind == Kind::mark) fail_damaged();
    return popped;
  }

  std::vector<PickleIndex> pop_to_mark() {
    size_t count = 0;
    while (count < stack_.size() &&
           pickle_.at(stack_[stack_.size() - 1 - count]).kind != Kind::mark)
      ++count;
    auto popped = pop(count);
    if (stack_.empty()) fail_damaged();
    stack_.pop_back();
    return popped;
  }

  bool append(Kind kind, const std::vector<PickleIndex>& items) {
    if (stack_.empty() || pickle_.at(stack_.back()).kind != kind) fail_damaged();
    if (kind == Kind::dict && items.size() % 2 != 0) fail_damaged();
    auto& into = pickle_.values[stack_.back()].items;
    into.insert(into.end(), items.begin(), items.end());
    return true;
  }

  bool note(uint64_t place) {
    if (stack_.empty() || pickle_.at(stack_.back()).kind == Kind::mark) fail_damaged();
    if (memo_.size() >= kMaxPickleValues)
      fail("notes more than " + format_count(kMaxPickleValues) + " values");
    memo_[static_cast<uint32_t>(place)] = stack_.back();
    return true;
  }

  bool push_noted(uint64_t place) {
    const auto found = memo_.find(static_cast<uint32_t>(place));
    if (found == memo_.end()) fail_damaged();
    return push_index(found->second);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_)
      fail("ends inside of a value; the file is truncated or damaged");
    const std::string_view taken(reinterpret_cast<const char*>(bytes_.data()) + at_, count);
    at_ += count;
    return taken;
  }

  // Little-endian and unsigned.
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }

  // Two's complement of so many bytes.
  int64_t long_integer(uint64_t bytes) {
    if (bytes > 8) fail("has an integer of more than 64 bits, which is not read");
    if (bytes == 0) return 0;
    const uint64_t unused = 64 - 8 * bytes;
    return static_cast<int64_t>(number(bytes) << unused) >> unused;
  }

  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                bytes_.size() - at_);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) fail("ends inside of a name; the file is truncated");
    at_ += end + 1;
    return rest.substr(0, end);
  }

  // "module\nname\n", as module.name, which is one of those that are allowed.
  std::string_view name() {
    std::string full(line());
    full += '.';
    full += line();
    if (full == kOrderedDict) return kOrderedDict;
    if (full == kSize) return kSize;
    const auto found = std::ranges::find(names_, std::string_view(full));
    if (found == names_.end()) fail("calls " + printable(full) + ", which is not read" + kAdvice);
    return *found;
  }

  std::span<const std::byte> bytes_;
  const std::vector<std::string_view>& names_;
  std::string_view operation_;
  std::string path_;
  size_t at_ = 0;
  bool done_ = false;
  Pickle pickle_;
  std::vector<PickleIndex> stack_;
  std::unordered_map<uint32_t, PickleIndex> memo_;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes, const std::vector<std::string_view>& names,
                   std::string_view operation, const std::filesystem::path& path) {
  return Machine(bytes, names, operation, path.string()).run();
}

}  // namespace tare::checkpoint
