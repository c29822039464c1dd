// Group: the ranks that train together, and what they exchange.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/parallel/world.h"

namespace c10d {
class ProcessGroup;
class Work;
}  // namespace c10d

namespace tare::parallel {

/// Reports that the ranks cannot go on together, because one of them has ended, has failed or does
/// not answer. The message names it.
class RankError : public Error {
 public:
  /// Takes the ranks that are missing, or have failed, and what happened to them.
  RankError(std::vector<int64_t> ranks, const std::string& what);
  /// Returns the ranks that are missing, or have failed; empty: unknown.
  [[nodiscard]] const std::vector<int64_t>& ranks() const { return ranks_; }

 private:
  std::vector<int64_t> ranks_;
};

/// Serves the store by which ranks meet, for a program that starts them on this machine. World::
/// store_is_served says so to them.
class StoreServer {
 public:
  /// Serves on a free port. Throws IoError.
  StoreServer();
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  [[nodiscard]] int64_t port() const;  ///< on which it serves, of every address of this machine

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sets how long ranks wait for each other, and by what they exchange tensors of cards.
struct GroupOptions {
  double meeting_seconds = 60;  ///< until all ranks have met, > 0
  double answer_seconds = 600;  ///< for a rank that takes part in an exchange late, > 0
  /// nccl: between the cards; gloo: through the host; auto: nccl where this program has it and each
  /// rank has a card of its own, else gloo. Tensors of the host always go by Gloo.
  std::string backend = "auto";
};

/// Throws ConfigError of the operation `where` for a text that GroupOptions::backend does not know.
void check_backend(const std::string& where, const std::string& backend);

/// Is a rank's membership of a job. All ranks call its functions in one order, and wait in them for
/// each other; a rank that does not take part in time, or has ended, is a RankError in all others.
/// After an error no function may be called but the destructor. Not thread-safe.
///
/// Tensors of the host are exchanged by Gloo, those of a card by NCCL or by Gloo through the host:
/// see GroupOptions::backend and exchange_on(). By NCCL sum() and broadcast() come back before the
/// card has done its part; settle() waits for it.
class Group {
 public:
  /// Meets the other ranks. Throws ConfigError for an unknown backend and where ranks have
  /// different worlds or versions of Tare; RankError, with those that are missing, where they have
  /// not met in time, and for a store that cannot be reached.
  explicit Group(const World& world, const GroupOptions& options = {});
  /// Returns the group of one rank of `size` that are planned, and not there: its exchanges take
  /// the memory of real ones, each rank gives what this one does, and tensors, which may be meta
  /// tensors, keep their values.
  [[nodiscard]] static std::shared_ptr<Group> planned(int64_t rank, int64_t size);
  /// Leaves the job, and gives back what it holds on a card. Waits for exchanges of this rank's
  /// card that are under way.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] const World& world() const;                    ///< as it was given
  [[nodiscard]] int64_t rank() const { return world().rank; }  ///< of this process
  [[nodiscard]] int64_t size() const { return world().size; }  ///< ranks
  [[nodiscard]] bool is_first() const { return rank() == 0; }  ///< it writes the files of the job
  [[nodiscard]] bool is_planned() const;                       ///< made by planned()

  /// Says on which device this rank trains. All ranks call it, before they exchange tensors of it;
  /// a Learner does. The ranks then choose by what they exchange such tensors. Does nothing for the
  /// device that was given last. Whatever was made with process_group() before is of no use any
  /// more. Throws ConfigError, with one text on all ranks, where GroupOptions::backend is not
  /// possible, and RankError.
  void exchange_on(c10::Device device);
  /// Returns what exchanges tensors of this rank's device: "gloo", or the library of the devices
  /// that exchange_on() has chosen, such as "nccl".
  [[nodiscard]] std::string backend() const;
  /// Waits until this rank's card has exchanged what it was given so far, and until nobody holds
  /// the tensors of exchanges whose results are there: LibTorch's reducer waits for the results
  /// alone, and what is measured next is without them. Throws RankError where the card cannot, and
  /// OutOfMemory where another rank starts over.
  void settle();

  /// Gives all ranks the values of rank `from`. The tensors have the same shapes and dtypes, and
  /// one device, on all of them.
  void broadcast(const std::vector<at::Tensor>& tensors, int64_t from = 0);
  /// Puts the sums over all ranks in the place of the tensors' values, likewise.
  void sum(const std::vector<at::Tensor>& tensors);

  /// Holds the numbers of a rank; as many on each.
  using Numbers = std::vector<double>;
  /// Is an exchange of numbers under way.
  class Exchange {
   public:
    Exchange();                                ///< holds none
    Exchange(Exchange&&) noexcept;             ///< takes over the other's
    Exchange& operator=(Exchange&&) noexcept;  ///< takes over the other's
    /// Waits for the exchange, which it must not outlive.
    ~Exchange();
    explicit operator bool() const { return state_ != nullptr; }  ///< whether it holds one
    /// Returns the numbers of each rank, by rank, and holds none any more.
    [[nodiscard]] std::vector<Numbers> wait();

   private:
    friend class Group;
    struct State;
    explicit Exchange(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  /// Begins to exchange numbers, beside what this thread does.
  [[nodiscard]] Exchange start(const Numbers& own);
  /// Returns the numbers of each rank, by rank.
  [[nodiscard]] std::vector<Numbers> exchange(const Numbers& own) { return start(own).wait(); }
  /// Returns the text of each rank, by rank.
  [[nodiscard]] std::vector<std::string> texts(const std::string& own);
  /// Throws ConfigError, with one text on all ranks, where one has another text than rank 0: "rank
  /// N " and `otherwise`.
  void require_equal(const std::string& own, const std::string& otherwise);
  /// Describes a tensor of the host.
  struct Layout {
    std::vector<int64_t> sizes{};                   ///< of its dimensions
    c10::ScalarType type = c10::ScalarType::Float;  ///< of its elements
  };
  /// Returns the tensors of each rank, by rank: their number, shapes and dtypes may differ. They
  /// are on the host. `planned`: what each rank of a planned group gives, this one its own; empty:
  /// all give tensors like those of this one.
  [[nodiscard]] std::vector<std::vector<at::Tensor>> tensors(
      const std::vector<at::Tensor>& own, const std::vector<std::vector<Layout>>& planned = {});
  /// Waits until all ranks have come here.
  void meet();

  /// Tells the other ranks that this one stops for an error; their RankError says for which. Does
  /// nothing for a RankError, which tells of another rank. Does not throw.
  void fail(const std::exception_ptr& error) noexcept;
  /// Ends the exchanges under way on all ranks, as one calls it that ran out of memory: they throw
  /// OutOfMemory there. Then all ranks call it, and meet again, so that what a rank has begun can
  /// be begun again by all of them. Throws RankError. Whatever was made with process_group() before
  /// is of no use any more.
  void start_over();
  /// Whether an error comes from an exchange, and not from a computation of this rank.
  [[nodiscard]] static bool is_of_exchange(const std::exception& error);
  /// Throws what an exchange has thrown, called in its handler: OutOfMemory where a rank starts
  /// over, else a RankError that names the ranks which are missing.
  [[noreturn]] void explain(const std::exception& error) const;

  /// Waits for an exchange that was begun with process_group(), and until no other thread holds its
  /// tensors any more, so that what is measured next is without them. Throws LibTorch's errors.
  void finish(const c10::intrusive_ptr<c10d::Work>& work) const;
  /// Returns LibTorch's group, for what is built on it.
  [[nodiscard]] const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const;

 private:
  struct State;
  explicit Group(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tare::parallel
