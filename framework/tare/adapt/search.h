// Search: one adaptive call under way, from which adapt.h is made: repeats work in smaller pieces
// while memory is out.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tare/adapt/step_size.h"
#include "tare/base/code_line.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"

namespace tare::adapt {

/// Selects where a size that was found is remembered.
enum class Cache {
  none,    ///< nowhere: each call starts anew
  call,    ///< one size for a line of code, whatever it is called with
  shapes,  ///< by line of code, shapes without the batch, dtypes, devices, and free memory
  stack    ///< as shapes, and by the functions that called, so that a helper's callers differ
};
/// Returns the enumerator's name, as recipes write it, in static memory.
[[nodiscard]] const char* to_string(Cache cache);

/// Returns the cache of calls that name none: `stack`, unless it was changed. Thread-safe.
[[nodiscard]] Cache default_cache();
/// Sets what default_cache() returns, for all threads. Thread-safe.
void set_default_cache(Cache cache);

/// Describes one change of a size.
struct Change {
  int64_t from = 0, to = 0;  ///< the size before and after
  std::string reason{};      ///< of the refusal; empty: grown again
};

/// Holds the optional arguments of an adaptive call. A value.
struct Options {
  Policy policy{};               ///< how sizes change
  std::optional<Cache> cache{};  ///< unset: default_cache()
  /// Called after each change of the size, on the thread of the call; may be empty.
  std::function<void(const Change&)> on_change{};
  /// The size at which a call starts if none is remembered for it; 0: at its initial size.
  int64_t start = 0;
  /// Returns the size to try next, called after a refusal when all memory is freed again. If it is
  /// unset or not smaller than the size that failed, the policy decides. It is also called where an
  /// allocator had to give its cache back, see Search; unset: no smaller size helps there.
  std::function<std::optional<int64_t>(int64_t failed)> suggest{};
  /// Bytes that a piece takes whatever its size, for the prediction of what a larger one needs.
  int64_t fixed_bytes = 0;
};

/// Reports that memory ran out even at the smallest size. The error of that attempt is nested in
/// it.
class NothingFits : public OutOfMemory {
 public:
  /// Takes the refusal of the smallest size as `last`; for `tried` see tried().
  NothingFits(const OutOfMemory& last, std::vector<int64_t> tried);
  /// Returns every size that failed in this call, in order.
  [[nodiscard]] const std::vector<int64_t>& tried() const { return tried_; }

 private:
  std::vector<int64_t> tried_;
};

class SizeCache;

/// Holds a tensor argument of an adaptive call, and which of its dimensions is the batch.
struct Argument {
  const at::Tensor* tensor = nullptr;  ///< null: an argument that is not a tensor
  int64_t batch_dim = 0;               ///< >= 0, below the tensor's number of dimensions
};

/// Finds the sizes of one call under way. Not thread-safe; each thread has its own. Where an
/// allocator had to give its cache back in two attempts in a row, memory is nearly out and every
/// allocation slow: then the size shrinks too, after the second (as Composer does), but not again
/// before it has grown, because it was not the size if that has not helped. Where an allocator
/// caches, a size that Options::start or Options::suggest has found grows only when there is more
/// memory than there was at that size: what larger ones take of its segments is not known here.
class Search {
 public:
  /// Starts at `initial`, or at what is remembered. Throws ConfigError for `initial` < 1 or options
  /// out of range.
  Search(int64_t initial, const Options& options, const CodeLine& site,
         std::span<const Argument> arguments);
  /// Starts a search with the size remembered in `cache` under `key`; `options` and `cache` must
  /// outlive this.
  Search(int64_t initial, const Options& options, SizeCache& cache, std::string key,
         c10::Device device);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Forgets the sizes that failed; NothingFits lists those that fail from now on.
  void clear_history() { failed_.clear(); }

  /// Calls body(size) with a size of at most `most` >= 1, again at a smaller size as long as it
  /// throws out-of-memory (see memory::classify). After such an attempt, when it is unwound, `undo`
  /// is called and caches are given back to the system. Returns what body returned. Throws
  /// NothingFits, and at once whatever else body throws.
  template <class Body, class Undo>
  std::invoke_result_t<Body&, int64_t> attempt(int64_t most, Body&& body, Undo&& undo) {
    using R = std::invoke_result_t<Body&, int64_t>;
    for (;;) {
      const int64_t size = piece(most);
      Interval interval(*this, size);
      std::exception_ptr error;
      bool done = false;
      try {
        if constexpr (std::is_void_v<R>) {
          body(size);
          done = true;
          interval.close();
          return;
        } else {
          R result = body(size);
          done = true;
          interval.close();
          return result;
        }
      } catch (...) {
        if (done) throw;
        error = std::current_exception();
      }
      const auto info = require_out_of_memory(error);
      undo();
      recover(info.device.value_or(device_));
      shrink(size, info, error);
    }
  }
  /// Makes an attempt that leaves nothing to undo.
  template <class Body>
  std::invoke_result_t<Body&, int64_t> attempt(int64_t most, Body&& body) {
    return attempt(most, std::forward<Body>(body), [] {});
  }

 private:
  // One attempt; its peak is measured while the size can grow.
  class Interval {
   public:
    Interval(Search& search, int64_t size);
    void close();

   private:
    Search& search_;
    int64_t size_;
    int64_t retries_;
    std::optional<memory::PeakScope> peak_;
  };

  [[nodiscard]] int64_t piece(int64_t most) const;
  static memory::OutOfMemoryInfo require_out_of_memory(const std::exception_ptr& error);
  void shrink(int64_t size, const memory::OutOfMemoryInfo& info, const std::exception_ptr& error);
  [[noreturn]] void give_up(const memory::OutOfMemoryInfo& info,
                            const std::exception_ptr& error) const;
  void count(int64_t size, const memory::PeakScope& peak);
  void relieve(int64_t size);
  void note_found(bool found);
  static void recover(c10::Device device);
  void remember() const;
  void report(int64_t from, std::string reason) const;

  const Options& options_;
  SizeCache* cache_;  // null: not remembered
  std::string key_;
  c10::Device device_ = c10::kCPU;
  StepSize step_;
  int64_t pressed_ = 0;   // attempts in a row in which the allocator gave its cache back
  bool relieves_ = true;  // whether the size shrinks after two of them
  bool found_ = false;    // the size is one that the options have found
  std::optional<int64_t> left_;  // bytes that were left at that size
  std::vector<int64_t> failed_;
};

}  // namespace tare::adapt
