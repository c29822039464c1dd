// Describes a search: parameters, conditions, exclusions and a sampler.
#pragma once

#include <string>
#include <vector>

#include "tare/search/sampler_choice.h"
#include "tare/search/space.h"

namespace tare::search {

/// Lets `param` vary only in runs where all of `condition` hold; else the recipe's value stays.
struct When {
  std::string param{};   ///< one of the parameters
  Settings condition{};  ///< keys and values, all of which must be equal
};
void visit_fields(config::Visitor& visit, When& o);

/// Names what the study compares: a metric of the last validation, "valid_loss" or "train_loss".
struct MetricGoal {
  std::string name = "valid_loss";  ///< a column of the run's rows
  std::string goal = "minimize";    ///< minimize | maximize
};
void visit_fields(config::Visitor& visit, MetricGoal& o);

/// Describes the settings that a search tries, and how it chooses them.
struct SearchOptions {
  Settings set{};  ///< keys of the recipe that are the same in all runs; conditions may name them
  SamplerChoice method{{.name = "grid"}};  ///< of samplers::registry()
  MetricGoal metric{};                     ///< what the study compares
  Space parameters{};                      ///< what varies
  std::vector<Settings> exclude{};  ///< combinations that match all pairs of an entry are skipped
  std::vector<When> when{};         ///< parameters that vary only under a condition
};
void visit_fields(config::Visitor& visit, SearchOptions& o);

}  // namespace tare::search
