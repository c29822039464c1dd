// The types of executors by the names that a sweep's file has for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/launch/executor_type.h"

namespace tare::launch {

void visit_fields(config::Visitor& visit, ExecutorOptions& o);

/// Every type; a new one is an entry here.
[[nodiscard]] const std::vector<ExecutorType>& executor_types();
/// Throws ConfigError for a name that is not known.
[[nodiscard]] const ExecutorType& executor_type(const std::string& name);

/// Throws ConfigError for options that the type does not take, or that the executor sets itself.
void check(const ExecutorOptions& options);

/// Serves as an agent of the executor that has started this program with the folder. Returns the
/// exit code. Throws as ExecutorType::serve.
int serve_agent(const std::filesystem::path& folder);

}  // namespace tare::launch
