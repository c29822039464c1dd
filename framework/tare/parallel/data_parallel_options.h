// DataParallelOptions: how ranks exchange gradients, and what each of them keeps.
#pragma once

#include <string>

#include "tare/config/field.h"

namespace tare::parallel {

/// Sets how gradients are exchanged. The defaults are those of PyTorch's DistributedDataParallel.
struct DataParallelOptions {
  double bucket_mib = 25;  ///< of gradients that are sent at once, > 0
  /// Whether a backward may leave parameters without a gradient, which is then 0; costs a search of
  /// the graph in each step.
  bool find_unused = false;
  /// Whether each step uses the same parameters in the same order, which saves that search.
  bool static_graph = false;
  /// Whether batch norms that train normalise over the parts of all ranks, see SyncBatchNormScope,
  /// and not over that of each rank. Batches are then not cut into micro-batches.
  bool sync_batch_norm = false;
  /// none | optimizer | gradients | parameters: what each rank keeps a part of, and not the whole.
  /// Each includes those before it: see ShardedOptimizer and ShardedExchange.
  std::string shard = "none";
  /// none | fp16: the dtype in which gradients are sent.
  std::string compression = "none";
  bool operator==(const DataParallelOptions&) const = default;
};
void visit_fields(auto& visit, DataParallelOptions& o) {
  visit("bucket_mib", o.bucket_mib, config::above(0));
  visit("find_unused", o.find_unused);
  visit("static_graph", o.static_graph);
  visit("sync_batch_norm", o.sync_batch_norm);
  visit("shard", o.shard, config::one_of({"none", "optimizer", "gradients", "parameters"}));
  visit("compression", o.compression, config::one_of({"none", "fp16"}));
}

/// Whether each rank keeps the gradients of its own parameters alone.
[[nodiscard]] inline bool shards_gradients(const DataParallelOptions& options) {
  return options.shard == "gradients" || options.shard == "parameters";
}

}  // namespace tare::parallel
