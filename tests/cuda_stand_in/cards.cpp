// Keeps the cards of the stand-in, and counts what processes hold of them.
#include "cards.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stand_in {
namespace {

/// Counts the bytes that one process holds of each card; in memory that processes may share.
struct Row {
  std::atomic<pid_t> process;
  std::atomic<size_t> bytes[kMostCards];
};
constexpr int kRows = 64;

bool is_alive(pid_t process) { return process != 0 && (kill(process, 0) == 0 || errno != ESRCH); }

/// The number for a card: the only one of the list, or the one at its place.
size_t of_card(const char* name, int index, size_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  for (int i = 0; i < index; ++i)
    if (const char* const comma = std::strchr(text, ',')) text = comma + 1;
  return std::strtoull(text, nullptr, 10);
}

Card made(int index) {
  Card card{};
  const char* const name = std::getenv("STAND_IN_NAME");
  std::snprintf(card.name, sizeof(card.name), "%s", name ? name : "CUDA stand-in");
  std::memset(card.uuid, index + 1, sizeof(card.uuid));
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[12];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(index + 1));
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits);
  }
  std::snprintf(card.uuid_text, sizeof(card.uuid_text), "%s", text.c_str());
  card.bytes = of_card("STAND_IN_BYTES", index, size_t{16} << 30);
  const auto capability = static_cast<int>(of_card("STAND_IN_SM", index, 90));
  card.major = capability / 10;
  card.minor = capability % 10;
  card.bus = index + 1;
  return card;
}

class Machine {
 public:
  Machine() {
    const auto all = static_cast<int>(std::min<size_t>(setting("STAND_IN_CARDS", 1), kMostCards));
    for (int i = 0; i < all; ++i) cards.push_back(made(i));
    choose_visible();
    open_rows();
  }

  /// The row of this process, also after a fork.
  Row& own_row() {
    static std::atomic<pid_t> owner{0};
    static std::atomic<Row*> row{nullptr};
    const pid_t self = getpid();
    if (owner == self) return *row;
    for (int i = 0; i < kRows; ++i) {
      pid_t other = rows[i].process;
      if (other != self && is_alive(other)) continue;
      if (!rows[i].process.compare_exchange_strong(other, self)) continue;
      for (auto& bytes : rows[i].bytes) bytes = 0;
      row = &rows[i];
      owner = self;
      return rows[i];
    }
    std::fprintf(stderr, "CUDA stand-in: more than %d processes share the cards\n", kRows);
    std::abort();
  }

  [[nodiscard]] size_t used(int index) const {
    size_t sum = 0;
    for (int i = 0; i < kRows; ++i)
      if (is_alive(rows[i].process)) sum += rows[i].bytes[index];
    return sum;
  }

  std::vector<Card> cards;
  std::vector<int> visible;
  Row* rows = nullptr;

 private:
  [[nodiscard]] int index_of(const std::string& word) const {
    for (int i = 0; i < static_cast<int>(cards.size()); ++i) {
      const std::string_view uuid = cards[static_cast<size_t>(i)].uuid_text;
      if (word == std::to_string(i) || (word.size() > 4 && uuid.starts_with(word))) return i;
    }
    return -1;
  }

  // As with the driver, what follows an unknown word is not seen.
  void choose_visible() {
    const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
    for (int i = 0; !chosen && i < static_cast<int>(cards.size()); ++i) visible.push_back(i);
    for (std::string_view rest = chosen ? chosen : ""; !rest.empty();) {
      const std::string word(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      const int found = index_of(word);
      if (found < 0) break;
      visible.push_back(found);
    }
  }

  void open_rows() {
    const char* const path = std::getenv("STAND_IN_SHARED");
    const int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    const bool sized = file < 0 || ftruncate(file, kRows * sizeof(Row)) == 0;
    void* const memory = sized ? mmap(nullptr, kRows * sizeof(Row), PROT_READ | PROT_WRITE,
                                      file >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, file, 0)
                               : MAP_FAILED;
    if (memory == MAP_FAILED) {
      std::fprintf(stderr, "CUDA stand-in: cannot share the cards: %s\n", std::strerror(errno));
      std::abort();
    }
    if (file >= 0) close(file);
    rows = static_cast<Row*>(memory);
  }
};

/// Never destroyed: it is asked until the last destructor of the process.
Machine& machine() {
  static auto* const instance = new Machine;
  return *instance;
}

int index_of(int device) { return machine().visible.at(static_cast<size_t>(device)); }

}  // namespace

size_t setting(const char* name, size_t otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

int count() { return static_cast<int>(machine().visible.size()); }
int all_count() { return static_cast<int>(machine().cards.size()); }
const Card& any_card(int index) { return machine().cards.at(static_cast<size_t>(index)); }
const Card& card(int device) { return any_card(index_of(device)); }

bool take(int device, size_t bytes) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& held = machine().own_row().bytes[index_of(device)];
  if (bytes > 0 && held == 0) bytes += setting("STAND_IN_CONTEXT", 0);  // never given back
  if (bytes > free_bytes(device)) return false;
  held += bytes;
  return true;
}

void give(int device, size_t bytes) { machine().own_row().bytes[index_of(device)] -= bytes; }

size_t free_bytes(int device) {
  const size_t used = machine().used(index_of(device)), all = card(device).bytes;
  return used < all ? all - used : 0;
}

void for_each_process(int index, void (*each)(pid_t, size_t, void*), void* data) {
  for (int i = 0; i < kRows; ++i) {
    const Row& row = machine().rows[i];
    const pid_t process = row.process;
    const size_t bytes = row.bytes[index];
    if (bytes != 0 && is_alive(process)) each(process, bytes, data);
  }
}

}  // namespace stand_in
