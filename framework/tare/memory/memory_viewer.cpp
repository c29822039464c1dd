// The pickle that PyTorch's memory viewer opens. Only opcodes that its page knows are written.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/memory/block_categories.h"
#include "tare/memory/call_site.h"
#include "tare/memory/phase.h"
#include "tare/memory/trace_files.h"

namespace tare::memory {
namespace {

constexpr size_t kChunk = 1 << 16;
constexpr uint64_t kBase = uint64_t{1} << 32;  // address of the made-up segment

/// Writes protocol 2. A value follows the key or the list that it belongs to: key("a").number(1)
/// .set(), or number(1).append(). Texts and what is remembered are written once.
class Pickle {
 public:
  explicit Pickle(io::File& file) : file_(file) { out_ = "\x80\x02"; }

  Pickle& dict() { return op('}'); }
  Pickle& list() { return op(']'); }
  Pickle& no() { return op('\x89'); }
  Pickle& pair() { return op('\x86'); }
  Pickle& set() { return op('s'); }
  Pickle& append() { return op('a'); }
  Pickle& number(int64_t value) {
    if (value >= std::numeric_limits<int32_t>::min() &&
        value <= std::numeric_limits<int32_t>::max())
      return op('J').raw(static_cast<uint64_t>(value), 4);
    return op('\x8a').raw(8, 1).raw(static_cast<uint64_t>(value), 8);
  }
  Pickle& text(const std::string& value) {
    const auto known = texts_.find(value);
    if (known != texts_.end()) return recall(known->second);
    op('X').raw(value.size(), 4);
    out_ += value;
    texts_[value] = remember();
    return *this;
  }
  /// Sets a key of the dictionary below to a number or a text.
  Pickle& set(const std::string& key, int64_t value) { return text(key).number(value).set(); }
  Pickle& set(const std::string& key, const std::string& value) {
    return text(key).text(value).set();
  }

  uint32_t remember() {
    op('r').raw(remembered_, 4);
    return remembered_++;
  }
  Pickle& recall(uint32_t number) { return op('j').raw(number, 4); }
  void end() {
    op('.');
    file_.write(out_);
  }

 private:
  Pickle& op(char code) {
    if (out_.size() >= kChunk) {
      file_.write(out_);
      out_.clear();
    }
    out_ += code;
    return *this;
  }
  Pickle& raw(uint64_t value, int bytes) {  // little-endian
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
    return *this;
  }

  io::File& file_;
  std::string out_;
  std::unordered_map<std::string, uint32_t> texts_;
  uint32_t remembered_ = 0;
};

/// Gives blocks addresses: each the lowest hole that it fits.
class Layout {
 public:
  uint64_t place(uint64_t block, int64_t bytes) {
    const auto size = static_cast<uint64_t>(bytes);
    auto hole = std::ranges::find_if(holes_, [=](const auto& h) { return h.second >= size; });
    if (hole == holes_.end()) hole = extend(size);
    const auto [address, hole_bytes] = *hole;
    holes_.erase(hole);
    if (hole_bytes > size) holes_[address + size] = hole_bytes - size;
    addresses_[block] = address;
    return address;
  }
  /// Removes a block, and returns where it was.
  uint64_t take(uint64_t block, int64_t bytes) {
    const auto found = addresses_.extract(block);
    const uint64_t address = found.mapped();
    auto hole = holes_.emplace(address, static_cast<uint64_t>(bytes)).first;
    if (hole != holes_.begin()) hole = joined(std::prev(hole));
    if (std::next(hole) != holes_.end()) joined(hole);
    return address;
  }
  [[nodiscard]] uint64_t of(uint64_t block) const { return addresses_.at(block); }
  [[nodiscard]] uint64_t end() const { return end_; }

 private:
  using Holes = std::map<uint64_t, uint64_t>;  // address to size

  Holes::iterator extend(uint64_t size) {
    auto last = holes_.empty() ? holes_.end() : std::prev(holes_.end());
    if (last == holes_.end() || last->first + last->second != end_)
      last = holes_.emplace(end_, 0).first;
    last->second = size;
    end_ = last->first + size;
    return last;
  }
  /// Makes one hole of this one and the next if they touch.
  Holes::iterator joined(Holes::iterator hole) {
    const auto next = std::next(hole);
    if (next == holes_.end()) return hole;
    if (hole->first + hole->second != next->first) return next;
    hole->second += next->second;
    holes_.erase(next);
    return hole;
  }

  Holes holes_;
  std::unordered_map<uint64_t, uint64_t> addresses_;
  uint64_t end_ = kBase;
};

class Viewer {
 public:
  Viewer(const EventHistory& history, io::File& file) : history_(history), pickle_(file) {}

  void write() {
    for (const auto& block : alive_after(history_, 0)) layout_.place(block.sequence, block.bytes);
    pickle_.dict().text("device_traces").list().list();
    for (const auto& event : history_.events) put(event);
    put_end();
    pickle_.append().set();
    pickle_.text("segments").list();
    put_segment();
    pickle_.set();
    pickle_.text("allocator_settings").dict().set();
    pickle_.end();
  }

 private:
  void put(const MemoryEvent& event) {
    if (event.kind == EventKind::allocation)
      return put("alloc", layout_.place(event.block, event.bytes), event);
    const uint64_t address = layout_.take(event.block, event.bytes);
    put("free_requested", address, event);
    put("free_completed", address, event);
  }

  void put(const char* action, uint64_t address, const MemoryEvent& event) {
    pickle_.dict().set("action", action).set("addr", static_cast<int64_t>(address));
    pickle_.set("size", event.bytes).set("stream", 0).set("time_us", event.time_ns / 1000);
    pickle_.set("category", category_name(history_, event.block));
    pickle_.set("user_metadata", "phase " + printable(phase_name(event.phase)));
    put_frames(event.stack);
    pickle_.append();
  }

  // PyTorch ends a trace so. The viewer fails where no event has category "unknown".
  void put_end() {
    pickle_.dict().set("action", "snapshot").set("addr", 0).set("size", 0).set("stream", 0);
    pickle_.set("time_us", history_.span_ns / 1000).set("category", "unknown");
    put_frames(0);
    pickle_.append();
  }

  void put_frames(uint32_t stack) {
    pickle_.text("frames");
    const auto known = stacks_.find(stack);
    if (known != stacks_.end()) {
      pickle_.recall(known->second).set();
      return;
    }
    pickle_.list();
    for (const auto& frame : frames_of(stack)) {
      pickle_.dict().set("name", printable(frame.function)).set("filename", printable(frame.file));
      pickle_.set("line", frame.line).append();
    }
    stacks_[stack] = pickle_.remember();
    pickle_.set();
  }

  // The blocks alive at the end, and what is free between them.
  void put_segment() {
    std::map<uint64_t, const LiveBlock*> blocks;
    int64_t allocated = 0;
    for (const auto& block : history_.alive) {
      blocks[layout_.of(block.sequence)] = &block;
      allocated += block.bytes;
    }
    pickle_.dict().set("device", 0).set("address", static_cast<int64_t>(kBase));
    pickle_.set("total_size", static_cast<int64_t>(layout_.end() - kBase)).set("stream", 0);
    for (const char* figure : {"allocated_size", "active_size", "requested_size"})
      pickle_.set(figure, allocated);
    pickle_.set("segment_type", "large").text("segment_pool_id").number(0).number(0).pair().set();
    pickle_.text("is_expandable").no().set();
    put_frames(0);
    pickle_.text("blocks").list();
    uint64_t address = kBase;
    for (const auto& [start, block] : blocks) {
      if (start > address) put_block(address, static_cast<int64_t>(start - address), nullptr);
      put_block(start, block->bytes, block);
      address = start + static_cast<uint64_t>(block->bytes);
    }
    if (layout_.end() > address)
      put_block(address, static_cast<int64_t>(layout_.end() - address), nullptr);
    pickle_.set().append();
  }

  void put_block(uint64_t address, int64_t bytes, const LiveBlock* block) {
    pickle_.dict().set("address", static_cast<int64_t>(address)).set("size", bytes);
    pickle_.set("requested_size", block ? bytes : 0);
    pickle_.set("state", block ? "active_allocated" : "inactive");
    put_frames(block ? block->stack : 0);
    pickle_.append();
  }

  const EventHistory& history_;
  Pickle pickle_;
  Layout layout_;
  std::unordered_map<uint32_t, uint32_t> stacks_;
};

}  // namespace

void write_memory_viewer(const EventHistory& history, const std::filesystem::path& path) {
  io::write_atomically(path, [&](io::File& file) { Viewer(history, file).write(); });
}

}  // namespace tare::memory
