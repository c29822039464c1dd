// Writes the position of a run as JSON, and reads it back.
#include "tare/recipe/position.h"

#include "tare/report/json_fields.h"

namespace tare {

template <class Visit>
void visit_fields(Visit& visit, Origin::Data& data) {
  visit("description", data.description);
  visit("samples", data.identity.samples);
  visit("digest", data.identity.digest);
  visit("content", data.identity.content, Presence::since_later);
}

template <class Visit>
void visit_fields(Visit& visit, Origin& origin) {
  visit("recipe", origin.recipe);
  visit("data", origin.data);
}

namespace {

struct OriginOfState {
  Origin origin{};
};
template <class Visit>
void visit_fields(Visit& visit, OriginOfState& state) {
  visit("origin", state.origin, Presence::since_later);
}

struct State {
  std::vector<PhaseReport> phases{};
  OriginOfState of{};
  int64_t resumes = 0;
  int64_t phase = -1;  // a checkpoint of an earlier version does not store it
};
template <class Visit>
void visit_fields(Visit& visit, State& state) {
  visit("phases", state.phases);
  visit_fields(visit, state.of);
  visit("resumes", state.resumes, Presence::since_later);
  visit("phase", state.phase, Presence::since_later);
}

const report::JsonSource kState{"recipe.resume", "the state 'recipe' of the checkpoint"};

}  // namespace

std::string Position::state() const {
  return report::json_text(State{done_, {origin_}, resumes_, phase_});
}

void Position::load_state(const std::string& json) {
  auto state = report::from_json_text<State>(json, kState);
  done_ = std::move(state.phases);
  resumes_ = state.resumes + 1;
  phase_ = state.phase;
}

Origin Position::origin_in(const std::string& json) {
  return report::from_json_text<OriginOfState>(json, kState).origin;
}

}  // namespace tare
