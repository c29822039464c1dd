// Trace: what a piece of work allocates and frees, as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tare/memory/accountable.h"

namespace tare::plan {

/// Says whose kernels a trace records: those of this processor, with the present number of threads,
/// or those of a CUDA card.
struct Machine {
  int64_t capability = 0;  ///< of a card, 10 x major + minor, such as 90 for H100; 0: the processor
  int64_t multiprocessors = 0;  ///< of a card; 0: unknown, so that attention is not split

  /// Whether it is a card.
  [[nodiscard]] constexpr bool is_card() const { return capability > 0; }
  static const Machine host;  ///< this processor
  static const Machine card;  ///< Ampere, as a card that is given by its size alone
};
inline constexpr Machine Machine::host{};
inline constexpr Machine Machine::card{.capability = 80};

/// Records that a block was born or freed.
struct Event {
  int64_t block = 0;   ///< blocks are numbered from 0 in order of birth
  int64_t bytes = 0;   ///< > 0: born with that many bytes, as requested; 0: freed
  uint32_t phase = 0;  ///< id of the phase in force, see memory/phase.h
  uint32_t op = 0;     ///< index into Trace::ops: the operator at work
};

/// Names a moment of the traced work.
struct Mark {
  std::string name{};  ///< as the work has given it
  size_t event = 0;    ///< how many events had happened
};

/// Names the library that computes a product on a card.
enum class ProductBy {
  cublas,    ///< of a matrix and a vector, and of vectors
  cublaslt,  ///< with a bias
  either     ///< cublasLt where the process prefers it, else cuBLAS
};

/// Describes a product on a card, for which a library takes a workspace.
struct CardProduct {
  size_t event = 0;                  ///< how many events had happened
  ProductBy by = ProductBy::either;  ///< the library that computes it
  bool backward = false;  ///< a card's backward runs on a thread with library handles of its own
};

/// Describes a sum on a card as it is laid out over threads, see card_sum.h.
struct CardSum {
  size_t event = 0;           ///< how many events had happened
  int64_t outputs = 0;        ///< sums
  int64_t inputs = 0;         ///< elements of each sum
  int64_t width = 0;          ///< elements along the memory, over which threads go first
  int64_t height = 0;         ///< elements across it
  int64_t vector = 1;         ///< sums that a thread computes at once
  bool along_inputs = false;  ///< the elements of one sum are next to each other
  int64_t part_bytes = 4;     ///< of the part of a sum that a thread has
};

/// Records allocations and frees, in order; a value. A block that is never freed is alive at the
/// end. Empty tensors make no event.
struct Trace {
  std::vector<Event> events{};        ///< in order
  std::vector<std::string> ops{};     ///< names of operators; ops[0] is "": outside of any
  std::vector<std::string> called{};  ///< every operator that was called, with its overload; sorted
  std::vector<Mark> marks{};          ///< see mark()
  std::vector<CardSum> sums{};        ///< of a card, in order
  std::vector<CardProduct> products{};  ///< of a card, in order
  /// Holds the category that note() gave to a block, by the block's number; others have no entry.
  std::unordered_map<int64_t, Category> categories{};
  /// Holds the stage whose device a block is on, see note_stages(); others are where they were
  /// born.
  std::unordered_map<int64_t, size_t> stages{};

  /// Returns the index of the first mark of that name. Throws ConfigError without one.
  [[nodiscard]] size_t at(std::string_view mark) const;
  /// Returns how many events come before the mark of that name; unset: there is no such mark.
  [[nodiscard]] std::optional<size_t> find(std::string_view mark) const;
};

}  // namespace tare::plan
