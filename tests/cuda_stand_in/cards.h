// The cards that the CUDA stand-in plays, and how much of their memory is taken. Settings, all from
// the environment:
// - STAND_IN_CARDS: the number of cards (default 1, at most 8)
// - STAND_IN_BYTES: the memory of each card, one number or one for each with commas (16 GiB)
// - STAND_IN_SM: the compute capability times ten, one number or one for each (90)
// - STAND_IN_NAME: the name of the cards ("CUDA stand-in")
// - STAND_IN_CONTEXT: the bytes that a process takes with its first allocation on a card (0)
// - STAND_IN_SHARED: a file in which processes share what they hold (each is alone)
// - STAND_IN_LAG: how often an event is asked for before it is through (0)
// - STAND_IN_REFUSE: the number, from 1, of the allocation of device memory that is refused once
// - STAND_IN_LOSE: the card is lost after so many launched kernels
// - STAND_IN_CUDNN_BYTES: the workspace that every convolution of cuDNN asks for (0)
// - STAND_IN_RISING_ADDRESSES: each segment is behind all earlier ones, not at the lowest address
// - STAND_IN_TRACE: prints calls that are not played
// - STAND_IN_VALUES: a library that computes what kernels would write (values.cpp)
// CUDA_VISIBLE_DEVICES chooses among the cards by number or UUID, as with the driver.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace stand_in {

/// Holds the properties that a card reports.
struct Card {
  char name[64], uuid[16], uuid_text[48];
  size_t bytes;
  int major, minor;  // compute capability
  int bus;           // on PCI, from 1
};

/// Cards that there can be in the machine.
inline constexpr int kMostCards = 8;

/// A whole number of the environment; `otherwise` if the variable is not set.
[[nodiscard]] size_t setting(const char* name, size_t otherwise);

/// Cards that this process sees.
[[nodiscard]] int count();
/// A card by its number in this process.
[[nodiscard]] const Card& card(int device);
/// Memory is handed out in pages of 2 MiB.
[[nodiscard]] constexpr size_t round_up(size_t bytes) {
  constexpr size_t kPage = size_t{2} << 20;
  return (bytes + kPage - 1) / kPage * kPage;
}
/// Takes memory of a card for this process; false if the card has less than `bytes` free.
[[nodiscard]] bool take(int device, size_t bytes);
/// Gives back what take() took.
void give(int device, size_t bytes);
/// Returns the bytes that no process holds.
[[nodiscard]] size_t free_bytes(int device);

/// Cards of the machine, whether or not this process sees them.
[[nodiscard]] int all_count();
/// A card of the machine by its number there.
[[nodiscard]] const Card& any_card(int index);
/// Calls `each` for every living process that holds memory of a card of the machine.
void for_each_process(int index, void (*each)(pid_t process, size_t bytes, void* data), void* data);

}  // namespace stand_in
