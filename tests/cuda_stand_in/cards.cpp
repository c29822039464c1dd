// Keeps the cards of the stand-in, and counts what processes hold of them.
#include "cards.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

/// Counts the bytes that one process holds of each card and slice.
struct Row {
  std::atomic<pid_t> process;
  std::atomic<size_t> bytes[kMostPlaces];
};
constexpr int kRows = 64;
/// Holds the state of the cards that processes may share.
struct Table {
  Row rows[kRows];
  std::atomic<bool> lost[kMostCards];
};

bool is_alive(pid_t process) { return process != 0 && (kill(process, 0) == 0 || errno != ESRCH); }

/// The number for a card: the only one of the list, or the one at its place.
size_t of_card(const char* name, int index, size_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  for (int i = 0; i < index; ++i)
    if (const char* const comma = std::strchr(text, ',')) text = comma + 1;
  return std::strtoull(text, nullptr, 10);
}

/// Sets a UUID of equal bytes, and its text behind a prefix.
void name_it(Card& card, const char* prefix, int byte) {
  std::memset(card.uuid, byte, sizeof(card.uuid));
  std::string text = prefix;
  for (int i = 0; i < 16; ++i) {
    char digits[12];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(byte));
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits);
  }
  std::snprintf(card.uuid_text, sizeof(card.uuid_text), "%s", text.c_str());
}

Card made(int index) {
  Card card{};
  const char* const name = std::getenv("STAND_IN_NAME");
  std::snprintf(card.name, sizeof(card.name), "%s", name ? name : "CUDA stand-in");
  name_it(card, "GPU-", index + 1);
  card.bytes = of_card("STAND_IN_BYTES", index, size_t{16} << 30);
  const auto capability = static_cast<int>(of_card("STAND_IN_SM", index, 90));
  card.major = capability / 10;
  card.minor = capability % 10;
  card.bus = index + 1;
  card.number = index;
  card.slices = std::min(static_cast<int>(of_card("STAND_IN_MIG", index, 0)), kMostSlices);
  return card;
}

/// A slice of a card, with its part of the memory.
Card slice_of(const Card& card, int number) {
  Card slice = card;
  slice.bytes = card.bytes / static_cast<size_t>(card.slices);
  std::snprintf(slice.name, sizeof(slice.name), "%.40s MIG 1g.%zugb", card.name, slice.bytes >> 30);
  name_it(slice, "MIG-", 16 * (card.number + 1) + number + 1);
  slice.slices = 0;
  slice.is_slice = true;
  return slice;
}

class Machine {
 public:
  Machine() {
    const auto all = static_cast<int>(std::min<size_t>(setting("STAND_IN_CARDS", 1), kMostCards));
    for (int i = 0; i < all; ++i) {
      const Card card = made(i);
      places.push_back(card);
      for (int k = 0; k < card.slices; ++k) places.push_back(slice_of(card, k));
    }
    share();
  }

  /// The places that this process sees, as CUDA_VISIBLE_DEVICES has it at the first call of CUDA;
  /// NVML does not ask.
  const std::vector<int>& visible() {
    std::call_once(chosen_, [this] { choose_visible(); });
    return visible_;
  }

  /// The row of this process, also after a fork.
  Row& own_row() {
    static std::atomic<pid_t> owner{0};
    static std::atomic<Row*> row{nullptr};
    const pid_t self = getpid();
    if (owner == self) return *row;
    for (int i = 0; i < kRows; ++i) {
      pid_t other = table->rows[i].process;
      if (other != self && is_alive(other)) continue;
      if (!table->rows[i].process.compare_exchange_strong(other, self)) continue;
      for (auto& bytes : table->rows[i].bytes) bytes = 0;
      row = &table->rows[i];
      owner = self;
      return table->rows[i];
    }
    std::fprintf(stderr, "CUDA stand-in: more than %d processes share the cards\n", kRows);
    std::abort();
  }

  [[nodiscard]] size_t used(int place) const {
    size_t sum = 0;
    for (int i = 0; i < kRows; ++i)
      if (is_alive(table->rows[i].process)) sum += table->rows[i].bytes[place];
    return sum;
  }

  std::vector<Card> places;
  Table* table = nullptr;

 private:
  /// The place of a whole card, or of the first slice of one that is divided.
  [[nodiscard]] int place_of(size_t found) const {
    return static_cast<int>(found) + (places[found].slices > 0 ? 1 : 0);
  }
  [[nodiscard]] int place_of(const std::string& word) const {
    for (size_t i = 0; i < places.size(); ++i) {
      if (table->lost[places[i].number]) continue;
      const std::string_view uuid = places[i].uuid_text;
      if (!places[i].is_slice && word == std::to_string(places[i].number)) return place_of(i);
      if (word.size() > 4 && uuid.starts_with(word)) return place_of(i);
    }
    return -1;
  }

  // Like the driver, it sees no card behind an unknown word, and only the first of several slices.
  void choose_visible() {
    const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
    for (size_t i = 0; !chosen && i < places.size(); ++i)
      if (!places[i].is_slice && !table->lost[places[i].number]) visible_.push_back(place_of(i));
    for (std::string_view rest = chosen ? chosen : ""; !rest.empty();) {
      const std::string word(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      const int found = place_of(word);
      if (found < 0) break;
      visible_.push_back(found);
    }
    const auto slice = std::ranges::find_if(
        visible_, [this](int place) { return places[static_cast<size_t>(place)].is_slice; });
    if (slice != visible_.end()) visible_ = {*slice};
  }

  void share() {
    const char* const path = std::getenv("STAND_IN_SHARED");
    const int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    const bool sized = file < 0 || ftruncate(file, sizeof(Table)) == 0;
    void* const memory = sized ? mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE,
                                      file >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, file, 0)
                               : MAP_FAILED;
    if (memory == MAP_FAILED) {
      std::fprintf(stderr, "CUDA stand-in: cannot share the cards: %s\n", std::strerror(errno));
      std::abort();
    }
    if (file >= 0) close(file);
    table = static_cast<Table*>(memory);
  }

  std::once_flag chosen_;
  std::vector<int> visible_;
};

/// Never destroyed: it is asked until the last destructor of the process.
Machine& machine() {
  static auto* const instance = new Machine;
  return *instance;
}

std::atomic<size_t> launches[kMostCards];

/// 0: never.
std::atomic<size_t>& launches_until_lost(int number) {
  static auto* const all = [] {
    auto* const limits = new std::array<std::atomic<size_t>, kMostCards>;
    for (int i = 0; i < kMostCards; ++i)
      (*limits)[static_cast<size_t>(i)] = of_card("STAND_IN_LOSE", i, 0);
    return limits;
  }();
  return (*all)[static_cast<size_t>(number)];
}

int place_of(int device) { return machine().visible().at(static_cast<size_t>(device)); }

std::atomic<bool> contexts[kMostPlaces];

}  // namespace

size_t setting(const char* name, size_t otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

int count() { return static_cast<int>(machine().visible().size()); }
int place_count() { return static_cast<int>(machine().places.size()); }
const Card& at_place(int place) { return machine().places.at(static_cast<size_t>(place)); }
const Card& card(int device) { return at_place(place_of(device)); }

bool has_context(int device) { return contexts[place_of(device)]; }

bool make_context(int device) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const int place = place_of(device);
  const size_t bytes = setting("STAND_IN_CONTEXT", 0);  // never given back
  if (contexts[place]) return true;
  if (bytes > free_bytes(device)) return false;
  machine().own_row().bytes[place] += bytes;
  return contexts[place] = true;
}

bool take(int device, size_t bytes) {
  static std::mutex mutex;
  if (!make_context(device)) return false;
  const std::lock_guard lock(mutex);
  if (bytes > free_bytes(device)) return false;
  machine().own_row().bytes[place_of(device)] += bytes;
  return true;
}

void give(int device, size_t bytes) { machine().own_row().bytes[place_of(device)] -= bytes; }

size_t free_bytes(int device) {
  const size_t used = machine().used(place_of(device)), all = card(device).bytes;
  return used < all ? all - used : 0;
}

void count_launch(int device) {
  const int number = card(device).number;
  if (++launches[number] == launches_until_lost(number)) machine().table->lost[number] = true;
}

void lose(int device, size_t launches_from_now) {
  const int number = card(device).number;
  launches_until_lost(number) = launches[number] + launches_from_now;
}

bool is_lost_at(int place) { return machine().table->lost[at_place(place).number]; }
bool is_lost(int device) { return device < count() && is_lost_at(place_of(device)); }

void for_each_process(int place, void (*each)(pid_t, size_t, void*), void* data) {
  for (const Row& row : machine().table->rows) {
    const pid_t process = row.process;
    const size_t bytes = row.bytes[place];
    if (bytes != 0 && is_alive(process)) each(process, bytes, data);
  }
}

}  // namespace stand_in
