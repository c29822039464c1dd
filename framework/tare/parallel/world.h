// World: the processes that train together, as the program that has started them says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tare::parallel {

/// Names this process among those that train together, and says where they meet. A value.
struct World {
  int64_t rank = 0;        ///< of this process, in [0, size)
  int64_t size = 1;        ///< processes
  int64_t local_rank = 0;  ///< of this process among those of its machine
  int64_t local_size = 1;  ///< processes of this machine
  std::string address{};   ///< host name or address of the store, by which the ranks meet
  int64_t port = 0;        ///< of the store, 1 to 65535
  /// Whether the program that has started the ranks serves the store, as torchrun does; else rank 0
  /// serves it.
  bool store_is_served = false;
  int64_t attempt = 0;       ///< how often the job was started anew
  std::string started_by{};  ///< `tare run --ranks`, `torchrun`, `srun` or `mpirun`; empty: none

  /// Whether the process trains by itself.
  [[nodiscard]] bool is_alone() const { return size == 1; }
};

/// Returns the value of an environment variable; unset: there is none.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads which rank this process is. The variables RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT of torchrun come first, then those of Slurm for a task of srun, then
/// those of Open MPI. Without any of them the process is alone. For Slurm and for Open MPI on one
/// machine MASTER_ADDR and MASTER_PORT are optional: the first host of the step, or this machine,
/// and a port that follows from the number of the job. Throws ConfigError for a variable that is
/// missing or is no number, and for a rank outside of the world.
[[nodiscard]] World world_of(const Environment& environment);
/// Returns world_of() the environment of this process.
[[nodiscard]] World this_world();

}  // namespace tare::parallel
