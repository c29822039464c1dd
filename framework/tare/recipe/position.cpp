// Writes the position of a run as JSON, and reads it back.
#include "tare/recipe/position.h"

#include "tare/base/error.h"
#include "tare/recipe/run_json.h"

namespace tare {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Origin& origin) {
  auto data = ordered_json::array();
  for (const auto& phase : origin.data)
    data.push_back({{"description", phase.description},
                    {"samples", phase.identity.samples},
                    {"digest", phase.identity.digest},
                    {"content", phase.identity.content}});
  return {{"recipe", origin.recipe}, {"data", data}};
}

Origin origin_from(const ordered_json& value) {
  Origin origin{.recipe = value.at("recipe").get<std::string>()};
  for (const auto& phase : value.at("data"))
    origin.data.push_back({phase.at("description").get<std::string>(),
                           {.samples = phase.at("samples").get<int64_t>(),
                            .digest = phase.at("digest").get<std::string>(),
                            .content = phase.value("content", std::string())}});
  return origin;
}

template <class Read>
void read_state(const std::string& json, const Read& read) {
  try {
    read(ordered_json::parse(json));
  } catch (const nlohmann::json::exception& error) {
    throw FormatError("recipe.resume", "recipe", "phases", error.what());
  }
}

}  // namespace

std::string Position::state() const {
  auto phases = ordered_json::array();
  for (const auto& phase : done_) phases.push_back(phase_to_json(phase));
  const ordered_json value{{"phases", phases}, {"origin", to_json(origin_)}, {"resumes", resumes_}};
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void Position::load_state(const std::string& json) {
  std::vector<PhaseReport> phases;
  int64_t resumes = 0;
  read_state(json, [&](const ordered_json& value) {
    for (const auto& phase : value.at("phases")) phases.push_back(phase_from_json(phase));
    resumes = value.value("resumes", int64_t{0});  // an earlier version does not have it
  });
  done_ = std::move(phases);
  resumes_ = resumes + 1;
}

Origin Position::origin_in(const std::string& json) {
  Origin origin;
  read_state(json, [&](const ordered_json& value) {
    if (value.contains("origin")) origin = origin_from(value.at("origin"));
  });
  return origin;
}

}  // namespace tare
