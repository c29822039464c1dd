// Lists the pruners.
#include "tare/search/pruners.h"

#include "tare/search/halving.h"
#include "tare/search/hyperband.h"

namespace tare::search {
namespace {

class NoPruner final : public Pruner {
 public:
  [[nodiscard]] PruneResult decide(const Study& study, const std::vector<SeenTrial>&,
                                   const SeenTrial& trial) const override {
    return {.rungs = trial.rungs, .resolved = study.resolved};
  }
};

}  // namespace

pruners::Registry& pruners::registry() {
  static Registry all("pruner");
  static const bool filled = [] {
    all.add<AshaOptions>("asha", "ends a run that is not among the best at a rung",
                         [](const auto& o) { return std::make_shared<AshaPruner>(o); });
    all.add<AshaOptions>(
        "asha_promotion", "pauses runs at each rung, and continues the best",
        [](const auto& o) { return std::make_shared<AshaPruner>(o, /*promotes=*/true); });
    all.add<HyperbandOptions>("hyperband", "asha in brackets that begin at different rungs",
                              [](const auto& o) { return std::make_shared<HyperbandPruner>(o); });
    all.add("none", "every run ends by itself", [] { return std::make_shared<NoPruner>(); });
    return true;
  }();
  static_cast<void>(filled);
  return all;
}

void from_node(const config::Node& node, PrunerChoice& value) {
  PrunerChoice read;
  from_flat_node(node, read);
  static_cast<void>(pruners::registry().make(read));  // checks the options together, at their place
  static_cast<config::Choice&>(value) = pruners::registry().complete(read);
}

config::Node to_node(const PrunerChoice& value) {
  return to_node(static_cast<const config::Choice&>(value));
}

}  // namespace tare::search
