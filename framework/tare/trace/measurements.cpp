// Keeps measured operators in memory and in a file.
#include "tare/trace/measurements.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <charconv>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/folder_lock.h"
#include "tare/base/immortal.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/memory/machine.h"

namespace tare::plan {
namespace {

using Numbers = Measurements::Key;
using Works = std::map<Numbers, AllocationTrace>;

constexpr std::string_view kTitle = "tare measurements 2";  // raised with what is measured, and how

/// Returns everything besides a key that decides what an operator allocates.
std::string machine() {
  std::string text = memory::processor_name() + "; " + at::get_cpu_capability() + "; LibTorch " +
                     TORCH_VERSION + "; " + at::get_mkldnn_version();
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"})
    if (const char* value = std::getenv(name)) text += std::string("; ") + name + '=' + value;
  return printable(text);
}

/// Computes the FNV-1a hash.
uint64_t checksum(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// A work is a line of numbers; each list stands behind its length.

Numbers line_of(const Numbers& key, const AllocationTrace& work) {
  Numbers line;
  append(line, key);
  line.push_back(static_cast<int64_t>(work.steps.size()));
  for (const auto& [block, bytes, result] : work.steps)
    line.insert(line.end(), {static_cast<int64_t>(block), bytes, result});
  line.push_back(static_cast<int64_t>(work.results.size()));
  for (const Layout& layout : work.results) append(line, layout);
  return line;
}

/// Throws std::out_of_range for a line that ends too early.
class Reader {
 public:
  explicit Reader(std::span<const int64_t> line) : rest_(line) {}
  int64_t number() { return take(1).front(); }
  Numbers list() {
    const auto items = take(static_cast<size_t>(number()));
    return {items.begin(), items.end()};
  }
  AllocationTrace work() {
    AllocationTrace work;
    for (int64_t n = number(); n > 0; --n) {
      const auto step = take(3);
      work.steps.push_back(
          {.block = static_cast<size_t>(step[0]), .bytes = step[1], .result = step[2]});
    }
    for (int64_t n = number(); n > 0; --n) {
      Layout layout{.sizes = list(), .strides = list()};
      layout.type = static_cast<at::ScalarType>(number());
      work.results.push_back(std::move(layout));
    }
    return work;
  }

 private:
  std::span<const int64_t> take(size_t count) {
    if (count > rest_.size()) throw std::out_of_range("line");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::span<const int64_t> rest_;
};

std::string text_of(const Works& works) {
  std::string body;
  for (const auto& [key, work] : works) {
    for (const int64_t number : line_of(key, work)) body += std::to_string(number) + ' ';
    body.back() = '\n';
  }
  return std::string(kTitle) + '\n' + machine() + '\n' + std::to_string(checksum(body)) + '\n' +
         body;
}

/// Cuts off and returns the part up to a character, which is dropped.
std::string_view cut(std::string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const auto part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

/// Reads the works of a file; none for a file of another machine, or one that is damaged.
Works works_in(std::string_view text) {
  if (cut(text, '\n') != kTitle || cut(text, '\n') != machine()) return {};
  const auto sum = cut(text, '\n');
  if (sum != std::to_string(checksum(text))) return {};
  Works works;
  while (!text.empty()) {
    Numbers line;
    for (auto words = cut(text, '\n'); !words.empty();) {
      const auto word = cut(words, ' ');
      std::from_chars(word.data(), word.data() + word.size(), line.emplace_back());
    }
    Reader reader(line);
    Numbers key = reader.list();
    works.insert_or_assign(std::move(key), reader.work());
  }
  return works;
}

Works read(const std::filesystem::path& file) {
  try {
    if (!std::filesystem::exists(file)) return {};
    return works_in(io::read_text(file));
  } catch (const std::exception& error) {
    log::debug("plan measurements: " + printable(error.what()));
    return {};
  }
}

std::filesystem::path file_in(const std::filesystem::path& folder) {
  return folder / "measurements.txt";
}

}  // namespace

void Measurements::keep_in(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
  has_read_ = folder.empty();
}

AllocationTrace Measurements::of(const Key& key, const std::function<AllocationTrace()>& measure) {
  const std::lock_guard lock(mutex_);
  read_once();
  if (const auto at = works_.find(key); at != works_.end()) return at->second;
  // The set-up by the very first operator must not count, so one measurement is discarded.
  if (!std::exchange(warm_, true)) static_cast<void>(measure());
  const auto [at, added] = works_.emplace(key, measure());
  has_news_ = true;
  return at->second;
}

std::optional<AllocationTrace> Measurements::known(const Key& key) {
  const std::lock_guard lock(mutex_);
  read_once();
  const auto at = works_.find(key);
  return at == works_.end() ? std::nullopt : std::optional(at->second);
}

void Measurements::read_once() {
  if (!std::exchange(has_read_, true)) works_.merge(read(file_in(folder_)));
}

void Measurements::save() {
  const std::lock_guard lock(mutex_);
  if (folder_.empty() || !std::exchange(has_news_, false)) return;
  try {
    io::make_directories(folder_);
    const io::FolderLock alone(folder_);
    works_.merge(read(file_in(folder_)));
    io::write_atomically(file_in(folder_), text_of(works_));
  } catch (const Error& error) {
    log::debug("plan measurements: " + printable(error.what()));
  }
}

Measurements& measurements() {
  static Immortal<Measurements> instance;
  return *instance;
}

}  // namespace tare::plan
