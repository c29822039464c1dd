// Lists the types of executors, and reads and checks their options.
#include "tare/launch/executors.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/launch/local_executor.h"
#include "tare/launch/slurm.h"

namespace tare::launch {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& type : executor_types()) all.push_back(type.name);
  return all;
}

}  // namespace

const std::vector<ExecutorType>& executor_types() {
  static const std::vector<ExecutorType> types{local_executor_type(), slurm_executor_type()};
  return types;
}

const ExecutorType& executor_type(const std::string& name) {
  const auto found = std::ranges::find(executor_types(), name, &ExecutorType::name);
  if (found == executor_types().end())
    throw ConfigError("sweep", "executor.type", "is not known", config::joined(names()),
                      printable(name));
  return *found;
}

void visit_fields(config::Visitor& visit, ExecutorOptions& o) {
  visit("type", o.type, config::one_of(names()));
  visit("options", o.options)("setup", o.setup);
  visit("save_before_s", o.save_before_s, config::between(1, 65535));
}

void check(const ExecutorOptions& options) {
  const ExecutorType& type = executor_type(options.type);
  if (type.check) return type.check(options);
  if (options.options.empty() && options.setup.empty()) return;
  std::vector<std::string> others;
  for (const auto& other : executor_types())
    if (other.check) others.push_back(other.name);
  throw ConfigError("sweep", "executor.type", "takes no options and no setup",
                    config::joined(others), printable(options.type));
}

int serve_agent(const std::filesystem::path& folder) {
  const auto found = std::ranges::find_if(
      executor_types(), [](const ExecutorType& type) { return type.serve != nullptr; });
  return found->serve(folder);  // one type has agents
}

}  // namespace tare::launch
