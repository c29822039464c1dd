// The types of executors by the names that a sweep's file has for them.
#pragma once

#include <filesystem>
#include <string>

#include "tare/config/registry.h"
#include "tare/launch/executor_type.h"

namespace tare::launch {

namespace executors {
/// Holds the types of executors. A program adds its own; no option is called `type`:
///   executors::registry().add<QueueOptions>("queue", "jobs of a queue", queue_executor_type);
using Registry = config::Registry<ExecutorType()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace executors

/// Names an executor with its options, `{type: slurm, setup: [module load cuda]}`; one that is read
/// is complete.
struct ExecutorChoice : config::Choice {
  ExecutorChoice() : Choice{.name = "local", .flat = true} {}
};
/// Throws ConfigError, with place and nearest name, and for options that the executor sets itself.
void from_node(const config::Node& node, ExecutorChoice& value);
[[nodiscard]] config::Node to_node(const ExecutorChoice& value);

/// Returns the type that is chosen. Throws ConfigError as from_node().
[[nodiscard]] ExecutorType executor_type(const config::Choice& choice);

/// Serves as an agent of the executor `type` that has started this program with the folder. Returns
/// the exit code. Throws ConfigError for a type that is unknown or has no agents, and as
/// ExecutorType::serve.
int serve_agent(const std::string& type, const std::filesystem::path& folder);

}  // namespace tare::launch
