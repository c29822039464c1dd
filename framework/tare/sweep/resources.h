// What runs share and what each of them gets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/search/grid.h"
#include "tare/sweep/placement.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

/// The settings of one cell for `tare run`: SweepOptions::set, the cell, folder and name.
[[nodiscard]] std::vector<std::string> settings_of(const SweepOptions& sweep,
                                                   const search::Cell& cell,
                                                   const std::string& run_name);

/// What the runs of a sweep share: cores and memory of this machine.
[[nodiscard]] DeviceRoom host_room(const Resources& resources);

/// What runs share whose memory and cores are those of jobs of Slurm's.
[[nodiscard]] DeviceRoom slurm_room(const Resources& resources);

/// Runs at a time: `jobs` at most, 0: as many as the rooms take.
[[nodiscard]] int64_t jobs_in(const std::vector<DeviceRoom>& rooms, int64_t jobs);

/// The rooms of a sweep that is on.
class Rooms {
 public:
  using Find = std::function<std::vector<DeviceRoom>(const Resources&)>;

  /// `find` as Surroundings::rooms.
  Rooms(Find find, const Resources& resources);
  /// The options have been edited. What is free now lacks what the runs hold, which is counted
  /// already: the rooms stay as large as they were, unless the options say how large.
  void follow(const Resources& resources);

  [[nodiscard]] const std::vector<DeviceRoom>& all() const { return all_; }
  [[nodiscard]] int64_t jobs() const { return jobs_; }
  [[nodiscard]] int64_t largest_bytes() const;
  /// What a run takes with its process's context; 0 stays unknown.
  [[nodiscard]] int64_t with_context(int64_t bytes) const;

 private:
  [[nodiscard]] std::vector<DeviceRoom> found(const Resources& resources) const;

  Find find_;
  std::vector<DeviceRoom> all_;
  int64_t jobs_;
};

/// Threads that each of so many runs gets of this machine's cores, at least 1.
[[nodiscard]] int64_t threads_of_run(int64_t jobs);

/// Bytes to reserve for a run: its declared memory, or a tenth above the prediction; 0 without
/// either.
[[nodiscard]] int64_t reservation(const SweepOptions& sweep, std::optional<int64_t> predicted);

/// What a run that has failed asks for when it is tried again: one that was out of memory half as
/// much more, at last all of the room; one that was killed the same. Unset: it would fail again, or
/// has been tried often enough.
[[nodiscard]] std::optional<int64_t> asked_again(const OnFailure& limits, const Trial& trial,
                                                 int64_t reserved_bytes, int64_t room_bytes,
                                                 const Outcome& outcome);

}  // namespace tare::sweep
