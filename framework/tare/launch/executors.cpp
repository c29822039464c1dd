// The registry of executors.
#include "tare/launch/executors.h"

#include "tare/base/error.h"

namespace tare::launch {

namespace executors {

void add_entries(Registry& all);  // CMake makes it from the list in CMakeLists.txt

Registry& registry() {
  static Registry all("executor", add_entries);
  return all;
}

}  // namespace executors

void from_node(const config::Node& node, ExecutorChoice& value) {
  ExecutorChoice read;
  from_flat_node(node, read);
  static_cast<void>(executor_type(read));  // checks the options, at their place
  static_cast<config::Choice&>(value) = executors::registry().complete(read);
}

config::Node to_node(const ExecutorChoice& value) {
  return to_node(static_cast<const config::Choice&>(value));
}

ExecutorType executor_type(const config::Choice& choice) {
  return executors::registry().make(choice);
}

int serve_agent(const std::string& type, const std::filesystem::path& folder) {
  const ExecutorType executor = executor_type({.name = type});
  if (!executor.serve)
    throw ConfigError("tare sweep agent", "the executor " + printable(type) +
                                              " has no agents; a sweep starts its agents itself");
  return executor.serve(folder);
}

}  // namespace tare::launch
