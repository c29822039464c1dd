// The cards that the CUDA stand-in plays, and how much of their memory is taken. Settings, all from
// the environment:
// - STAND_IN_CARDS: the number of cards (default 1, at most 8)
// - STAND_IN_BYTES: the memory of each card, one number or one for each with commas (16 GiB)
// - STAND_IN_SM: the compute capability times ten, one number or one for each (90); no kernel can
// be
//   launched on a card below 75, as LibTorch has none for it
// - STAND_IN_MIG: the slices into which each card is divided, one number or one for each (0: it is
//   whole); a slice has its part of the card's memory, and a process sees one slice at most
// - STAND_IN_NAME: the name of the cards ("CUDA stand-in")
// - STAND_IN_CONTEXT: the bytes that a process takes with its first call that needs a context (0);
//   a card with less than that free refuses the context
// - STAND_IN_DRIVER: the CUDA version of the driver, such as 12020 (that of the runtime)
// - STAND_IN_SHARED: a file in which processes share what they hold (each is alone)
// - STAND_IN_LAG: how often an event is asked for before it is through (0); where it is set, copies
//   on streams beside the default one are as late as may be, done when something waits for them,
//   and copy NaN where they might come before what the default stream was given
// - STAND_IN_REFUSE: the number, from 1, of the allocation of device memory that is refused once
// - STAND_IN_LOSE: each card is lost after so many kernels that a process has launched on it, one
//   number or one for each (0: never); with STAND_IN_SHARED it is lost for all processes
// - STAND_IN_CUDNN_BYTES: the workspace that each convolution, attention and recurrent layer of
//   cuDNN asks for (0)
// - STAND_IN_NCCL_BYTES: the memory that a communicator of NCCL takes on each card (4 MiB)
// - STAND_IN_RISING_ADDRESSES: each segment is behind all earlier ones, not at the lowest address
// - STAND_IN_TRACE: prints calls that are not played
// - STAND_IN_VALUES: a library that computes what kernels would write (values.cpp)
// CUDA_VISIBLE_DEVICES chooses among the cards by number or UUID, as with the driver.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace stand_in {

/// Holds the properties that a card or a slice of one reports.
struct Card {
  char name[64], uuid[16], uuid_text[48];
  size_t bytes;
  int major, minor;  // compute capability
  int bus;           // on PCI, from 1
  int number;        // of the card in the machine
  int slices;        // of a card that is divided; else 0
  bool is_slice;
};

/// Cards that there can be in the machine, and slices of each.
inline constexpr int kMostCards = 8, kMostSlices = 7;
/// Cards and slices that there can be.
inline constexpr int kMostPlaces = kMostCards * (1 + kMostSlices);

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
/// Makes this process's context on a card, once; false if there is no memory for it.
[[nodiscard]] bool make_context(int device);
/// Whether this process has made its context on a card.
[[nodiscard]] bool has_context(int device);
/// Takes memory of a card for this process; false if the card has less than `bytes` free.
[[nodiscard]] bool take(int device, size_t bytes);
/// Gives back what take() took.
void give(int device, size_t bytes);
/// Returns the bytes that no process holds.
[[nodiscard]] size_t free_bytes(int device);

/// Counts a kernel that is launched on a card.
void count_launch(int device);
/// A card is lost with the kernel of this number that is launched on it from now on.
void lose(int device, size_t launches_from_now);
/// Whether a card has been lost: every call that uses it fails from then on.
[[nodiscard]] bool is_lost(int device);

/// Cards and slices of the machine, whether or not this process sees them: each card, and behind it
/// its slices.
[[nodiscard]] int place_count();
/// A card or a slice by its place.
[[nodiscard]] const Card& at_place(int place);
/// Whether the card at the place, or that of the slice there, has been lost.
[[nodiscard]] bool is_lost_at(int place);
/// Calls `each` for every living process that holds memory there.
void for_each_process(int place, void (*each)(pid_t process, size_t bytes, void* data), void* data);

}  // namespace stand_in
