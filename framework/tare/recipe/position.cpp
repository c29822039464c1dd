#include "tare/recipe/position.h"

#include "tare/base/error.h"
#include "tare/recipe/run_json.h"

namespace tare {

std::string Position::state() const {
  auto phases = nlohmann::ordered_json::array();
  for (const auto& phase : done_) phases.push_back(phase_to_json(phase));
  return nlohmann::ordered_json{{"phases", phases}}.dump();
}

void Position::load_state(const std::string& json) {
  std::vector<PhaseReport> phases;
  try {
    const auto value = nlohmann::ordered_json::parse(json);
    for (const auto& phase : value.at("phases")) phases.push_back(phase_from_json(phase));
  } catch (const nlohmann::json::exception& error) {
    throw FormatError("recipe.resume", name(), "phases", error.what());
  }
  done_ = std::move(phases);
}

}  // namespace tare
