// Reads the options of a search.
#include "tare/search/search_options.h"

namespace tare::search {

void visit_fields(config::Visitor& visit, When& o) { visit("param", o.param)("if", o.condition); }

void visit_fields(config::Visitor& visit, MetricGoal& o) {
  visit("name", o.name)("goal", o.goal, config::one_of({"minimize", "maximize"}));
}

void visit_fields(config::Visitor& visit, SearchOptions& o) {
  visit("set", o.set);
  visit("method", o.method);
  visit("metric", o.metric);
  visit("parameters", o.parameters);
  visit("exclude", o.exclude);
  visit("when", o.when);
}

}  // namespace tare::search
