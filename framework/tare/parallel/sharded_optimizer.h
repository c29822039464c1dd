// ShardedOptimizer: each rank keeps the optimizer's state of a part of the parameters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tare/optim/optimizer.h"
#include "tare/parallel/group.h"

namespace tare::parallel {

/// Returns the rank that keeps the optimizer's state of each parameter, by name: the largest
/// parameters first, each to the rank with the fewest bytes so far. A pure function of the names
/// and shapes, so that all ranks agree, and layers may be frozen in between.
[[nodiscard]] std::map<std::string, int64_t> owners_of(const std::vector<Parameter>& all,
                                                       int64_t ranks);

/// Describes the shard of a rank.
struct Shard {
  std::map<std::string, int64_t> owners{};  ///< see owners_of()
  int64_t rank = 0;                         ///< whose shard it is
  /// Whether the rank owns a parameter, by its name.
  [[nodiscard]] bool owns(const std::string& name) const { return owners.at(name) == rank; }
  Group* group = nullptr;  ///< that gives the stepped parameters to all; null: another does that
};

/// Steps the parameters that the shard's rank owns, by an optimizer of any kind, and gives each
/// rank the parameters that the others have stepped (stage 1 of Rajbhandari et al. 2020, "ZeRO").
/// groups() has all parameters, and rates set there hold. The state is that of the own parameters:
/// load_state() takes the state of all and keeps these. Ranks step in one order. Not thread-safe.
class ShardedOptimizer final : public Optimizer {
 public:
  /// Takes the groups of all parameters; `make` makes the optimizer of the own ones.
  ShardedOptimizer(Shard shard, std::vector<ParameterGroup> groups, const OptimizerFactory& make);

  [[nodiscard]] std::string kind() const override;
  void step() override;
  void prepare() override;
  void clear() override;
  [[nodiscard]] std::vector<NamedTensor> state() const override;
  std::vector<std::string> load_state(const std::vector<NamedTensor>& state) override;
  void check_state(const std::vector<NamedTensor>& state) override;
  StateChange set_groups(std::vector<ParameterGroup> groups) override;

 private:
  /// Returns the groups with the own parameters alone, and notes where they came from.
  [[nodiscard]] std::vector<ParameterGroup> own_groups();
  void set_rates();

  Shard shard_;
  std::vector<size_t> from_;  // by group of own_: its index in groups_
  std::unique_ptr<Optimizer> own_;
};

}  // namespace tare::parallel
