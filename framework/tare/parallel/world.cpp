// Reads the environment by which torchrun, Slurm and Open MPI start the ranks of a job.
#include "tare/parallel/world.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>

#include "tare/base/error.h"
#include "tare/parallel/where.h"

namespace tare::parallel {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kFirstPort = 20000, kPorts = 12000;  // below those that systems give to clients

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  [[nodiscard]] bool has(const std::string& name) const { return environment_(name).has_value(); }
  [[nodiscard]] std::string text(const std::string& name, const std::string& why) const {
    const auto value = environment_(name);
    if (value && !value->empty()) return *value;
    throw ConfigError(kWhere, "the environment variable " + name + " is missing: " + why);
  }
  [[nodiscard]] std::string text_or(const std::string& name, std::string otherwise) const {
    return environment_(name).value_or(std::move(otherwise));
  }
  [[nodiscard]] int64_t number(const std::string& name, const std::string& why, int64_t least,
                               int64_t most) const {
    const std::string value = text(name, why);
    int64_t parsed = 0;
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (failed == std::errc() && end == value.data() + value.size() && parsed >= least &&
        parsed <= most)
      return parsed;
    throw ConfigError(kWhere, "the environment variable " + name, "must be a whole number",
                      std::to_string(least) + " to " + std::to_string(most), value);
  }
  [[nodiscard]] int64_t number_or(const std::string& name, int64_t otherwise, int64_t least,
                                  int64_t most) const {
    return has(name) ? number(name, "", least, most) : otherwise;
  }

 private:
  const Environment& environment_;
};

/// Says by which variables a launcher names a rank.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
};

World ranks_of(const Variables& given, const Names& names, const std::string& started_by) {
  World world{.started_by = started_by};
  const std::string why = started_by + " sets it for each rank";
  world.size = given.number(names.size, why, 1, kMostRanks);
  world.rank = given.number(names.rank, why, 0, world.size - 1);
  world.local_size =
      std::min(given.number_or(names.local_size, world.size, 1, kMostRanks), world.size);
  world.local_rank = given.number_or(names.local_rank, world.rank, 0, world.size - 1);
  world.local_size = std::max(world.local_size, world.local_rank + 1);
  return world;
}

void set_store(World& world, const Variables& given, const std::string& why) {
  world.address = given.text("MASTER_ADDR", why);
  world.port = given.number("MASTER_PORT", why, 1, 65535);
}

int64_t port_of(const std::string& job) {
  return kFirstPort + static_cast<int64_t>(std::hash<std::string>()(job) % kPorts);
}

World of_torchrun(const Variables& given) {
  World world = ranks_of(given, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                         given.text_or("TARE_RANKS_BY", "torchrun"));
  if (world.size > 1 || given.has("MASTER_ADDR"))
    set_store(world, given, "it says where rank 0 is reached");
  world.store_is_served = given.text_or("TORCHELASTIC_USE_AGENT_STORE", "") == "True";
  world.attempt = given.number_or("TORCHELASTIC_RESTART_COUNT", 0, 0, kMostRanks);
  return world;
}

/// Returns the first host of a list such as "node[03-07,9],gpu1".
std::string first_host(const std::string& list) {
  const size_t comma = list.find(','), bracket = list.find('[');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of("-,]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

World of_slurm(const Variables& given) {
  World world = ranks_of(
      given, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
      "srun");
  world.attempt = given.number_or("SLURM_RESTART_COUNT", 0, 0, kMostRanks);
  if (given.has("MASTER_ADDR") || given.has("MASTER_PORT")) {
    set_store(world, given, "the other one of MASTER_ADDR and MASTER_PORT is set");
    return world;
  }
  const bool one_machine = given.text_or("SLURM_STEP_NUM_NODES", "") == "1";
  if (one_machine) world.local_size = world.size;
  world.address =
      one_machine
          ? "127.0.0.1"
          : first_host(given.text("SLURM_STEP_NODELIST", "srun sets it, or set MASTER_ADDR"));
  world.port = port_of(given.text("SLURM_JOB_ID", "srun sets it") + '.' +
                       given.text_or("SLURM_STEP_ID", "") + '.' + std::to_string(world.attempt));
  return world;
}

World of_open_mpi(const Variables& given) {
  World world = ranks_of(given,
                         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                          "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                         "mpirun");
  const bool one_machine = world.local_size == world.size;
  for (const char* job : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (one_machine && given.has(job) && !given.has("MASTER_ADDR")) {
      world.address = "127.0.0.1";
      world.port = port_of(given.text(job, ""));
      return world;
    }
  set_store(world, given,
            "give mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=PORT with the host of rank 0");
  return world;
}

}  // namespace

World world_of(const Environment& environment) {
  const Variables given(environment);
  if (given.has("RANK") || given.has("WORLD_SIZE")) return of_torchrun(given);
  // The script of a batch job has SLURM_PROCID too, and is no task of a step.
  if (given.has("SLURM_STEP_NUM_TASKS") && given.has("SLURM_PROCID")) return of_slurm(given);
  if (given.has("OMPI_COMM_WORLD_RANK")) return of_open_mpi(given);
  return {};
}

World this_world() {
  return world_of([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
}

}  // namespace tare::parallel
