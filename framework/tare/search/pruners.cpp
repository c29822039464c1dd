// The registry of pruners.
#include "tare/search/pruners.h"

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

namespace pruners {

void add_entries(Registry& all);  // CMake makes it from the list in CMakeLists.txt

Registry& registry() {
  static Registry all("pruner", [](Registry& entries) {
    entries.add("none", "lets every run end by itself",
                [] { return std::make_shared<NoPruner>(); });
    add_entries(entries);
  });
  return all;
}

}  // namespace pruners

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
