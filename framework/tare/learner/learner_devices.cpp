// Finds the devices that the options of a Learner name.
#include "tare/learner/learner_devices.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/parallel/stages.h"
#include "tare/runtime/device_name.h"

namespace tare {
namespace {

constexpr const char* kAuto = "auto";

std::vector<std::string> names_of(const LearnerOptions& options) {
  return options.stages.empty() ? std::vector{options.device}
                                : parallel::device_names(options.stages);
}

bool is_all_cards(const std::vector<std::string>& stages) {
  return stages.size() == 1 && stages.front() == kAuto;
}

}  // namespace

void check_stages(const LearnerOptions& options, const std::string& where) {
  if (options.stages.empty()) return;
  const auto refuse = [&](const char* field, const char* problem, const std::string& allowed,
                          const std::string& got) {
    throw ConfigError(where, field, problem, allowed, got);
  };
  if (options.device != kAuto)
    refuse("device", "has no effect beside stages, which name the devices", "auto beside stages",
           printable(options.device));
  for (const std::string& stage : options.stages) {
    const parallel::StageName name = parallel::stage_name(stage);
    if (name.device == kAuto && !is_all_cards(options.stages))
      refuse("stages", "name auto beside others", "auto alone, for all cards", printable(stage));
    if (stage.ends_with('@') || name.device.empty())
      refuse("stages", "must each be a device, and may have a layer group behind it",
             "such as cuda:1 or cuda:1@layer3", printable(stage));
    try {
      runtime::check_device_name(name.device);
    } catch (const ConfigError& error) {
      refuse("stages", "name a device that is not known", error.allowed(), printable(stage));
    }
  }
  if (options.group)
    refuse("stages", "divide the model of one process, and several ranks train",
           "no stages where a group trains", std::to_string(options.stages.size()));
  if (options.step_in_backward)
    refuse("step_in_backward", "would step the stages of the model from the threads of all devices",
           "false beside stages", "true");
}

std::vector<c10::Device> parse_devices(const LearnerOptions& options) {
  return runtime::parse_devices(names_of(options), is_all_cards(options.stages));
}

std::vector<c10::Device> open_devices(const LearnerOptions& options) {
  return runtime::open_devices(names_of(options), is_all_cards(options.stages));
}

}  // namespace tare
