// Compares options with what several ranks do together.
#include "tare/train/rank_options.h"

#include "tare/base/error.h"

namespace tare {

std::optional<RefusedOption> refused_by_ranks(const LearnerOptions& options) {
  const parallel::DataParallelOptions& ranks = options.data_parallel;
  if (options.step_in_backward)
    return RefusedOption{"step_in_backward", "steps before the ranks have averaged a gradient",
                         "false where several ranks train", "true"};
  if (options.graph)
    return RefusedOption{"graph", "records the step of one process",
                         "false where several ranks train", "true"};
  if (ranks.sync_batch_norm && options.micro_batch)
    return RefusedOption{"micro_batch", "cuts the batches over which sync_batch_norm normalises",
                         "one of them", std::to_string(*options.micro_batch)};
  if (ranks.static_graph && options.micro_batch)
    return RefusedOption{"micro_batch", "makes several graphs of a step, and static_graph is one",
                         "one of them", std::to_string(*options.micro_batch)};
  if (ranks.shard != "none" && !options.optimizers.empty())
    return RefusedOption{"shard", "is for one optimizer, and there are several", "none",
                         ranks.shard};
  if (!parallel::shards_gradients(ranks)) return std::nullopt;
  const std::string beside = "is of the exchange that shard: " + ranks.shard + " replaces";
  if (ranks.static_graph) return RefusedOption{"static_graph", beside, "false", "true"};
  if (ranks.compression != "none")
    return RefusedOption{"compression", beside, "none", ranks.compression};
  if (ranks.shard == "parameters" && options.frozen_weights != "as_is")
    return RefusedOption{"frozen_weights", "holds what shard: parameters divides over the ranks",
                         "as_is", options.frozen_weights};
  return std::nullopt;
}

void check_shared_callbacks(const std::vector<CallbackPtr>& callbacks,
                            const LearnerOptions& options, const std::string& call) {
  const std::string& shard = options.data_parallel.shard;
  for (const CallbackPtr& callback : callbacks) {
    const CallbackFacts facts = callback->facts();
    if (facts.needs_gradients)
      throw ConfigError(call, "callbacks",
                        "include one that needs all gradients, of which each rank keeps a part",
                        "shard: none or optimizer, or no such callback", callback->name());
    if (facts.lends_weights && shard == "parameters")
      throw ConfigError(call, "callbacks",
                        "include one that exchanges weights, of which each rank keeps a part",
                        "another shard than parameters, or no such callback", callback->name());
  }
}

}  // namespace tare
