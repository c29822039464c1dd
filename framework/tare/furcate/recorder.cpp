// Keeps furcate's records of a sweep.
#include "tare/furcate/recorder.h"

#include "tare/furcate/configuration.h"

namespace tare::furcate {

using config::Node;

Recorder::Recorder(const sweep::SweepOptions& sweep)
    : log_(sweep.log_dir / "furcate.log", monitor_of(sweep).enabled), table_(sweep.log_dir) {}

Node Recorder::configuration(const sweep::SweepOptions& sweep, const sweep::Trial& trial,
                             std::optional<int64_t> gpu_id) const {
  Node config = sweep.origin.configuration;
  for (const auto& [key, value] : trial.cell.values) config.set(key, value);
  config.set("log_dir", Node::string((sweep.log_dir / trial.run_name).string()));
  config.set("gpu_id", gpu_id ? Node::scalar(std::to_string(*gpu_id)) : Node());
  return config;
}

std::unique_ptr<Recorder> recorder_of(const sweep::SweepOptions& sweep) {
  const bool has_one = is_configuration(sweep.origin.configuration);
  return has_one ? std::make_unique<Recorder>(sweep) : nullptr;
}

}  // namespace tare::furcate
