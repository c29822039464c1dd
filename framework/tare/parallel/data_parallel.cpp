// Averages gradients over ranks by LibTorch's c10d::Reducer.
#include "tare/parallel/data_parallel.h"

#include <torch/csrc/autograd/engine.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tare/config/scalar.h"
#include "tare/parallel/where.h"

namespace tare::parallel {
namespace {

c10::intrusive_ptr<c10d::ProcessGroup> checked_group(Group& group,
                                                     const std::vector<NamedTensor>& parameters) {
  if (parameters.empty())
    throw ConfigError(kWhere, "no parameter is trained, so that there is no gradient");
  std::string own;
  for (const auto& [name, tensor] : parameters)
    own += name + ' ' + c10::toString(tensor.scalar_type()) + ' ' + c10::str(tensor.sizes()) + '\n';
  group.require_equal(own,
                      "trains other parameters than rank 0: the ranks have one model, with the "
                      "same layers frozen");
  return group.process_group();
}

}  // namespace

int64_t bucket_bytes(const DataParallelOptions& options) {
  constexpr double kMib = 1 << 20, kMostMib = 1 << 30;
  return static_cast<int64_t>(std::min(options.bucket_mib, kMostMib) * kMib);
}

struct DataParallel::State {
  std::shared_ptr<c10d::Reducer> reducer{};
  std::shared_ptr<c10d::Logger> logger{};
  bool find_unused = false;
  bool rebuilds = true;  // the buckets; a plan has no order of gradients to exchange
  bool delays = false;   // the next exchange comes behind the backward: the first of a static graph
};

DataParallel::DataParallel(Group& group, const std::vector<NamedTensor>& parameters,
                           const DataParallelOptions& options)
    : state_(std::make_unique<State>()) {
  auto process_group = checked_group(group, parameters);
  std::vector<at::Tensor> tensors;
  std::unordered_map<size_t, std::string> names;
  for (const auto& [name, tensor] : parameters) {
    names[tensors.size()] = name;
    tensors.push_back(tensor);
  }
  const int64_t cap = bucket_bytes(options);
  const auto first = std::min<int64_t>(cap, c10d::kDefaultFirstBucketBytes);
  const std::vector<bool> sparse(tensors.size(), false);
  // Until the first backward shows in which order gradients come, all are in one bucket, unless
  // the search for unused ones keeps the buckets from being made anew.
  std::vector<std::vector<size_t>> buckets;
  if (options.find_unused && !options.static_graph) {
    buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
        tensors, {static_cast<size_t>(first), static_cast<size_t>(cap)}, sparse));
    std::reverse(buckets.begin(), buckets.end());
  } else {
    buckets.emplace_back(tensors.size());
    std::iota(buckets.front().begin(), buckets.front().end(), size_t{0});
  }
  try {
    state_->reducer = std::make_shared<c10d::Reducer>(
        tensors, buckets, process_group, sparse, cap, options.find_unused,
        /*gradient_as_bucket_view=*/true, names, first,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        std::vector<int64_t>());
    if (!group.is_planned()) {  // of which there are no times
      state_->logger = std::make_shared<c10d::Logger>(state_->reducer);
      state_->logger->set_construction_data_and_log("model", {}, -1, /*broadcast_buffers=*/true,
                                                    /*has_sync_bn=*/false, options.static_graph);
      state_->reducer->set_logger(state_->logger);
    }
    if (options.static_graph) state_->reducer->set_static_graph();
    if (options.compression == "fp16")
      state_->reducer->register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
    state_->find_unused = options.find_unused;
    state_->rebuilds = !group.is_planned();
    state_->delays = options.static_graph;
  } catch (const std::exception& error) {
    group.explain(error);
  }
}

DataParallel::~DataParallel() {
  state_->logger.reset();  // it asks the reducer at its end
  state_->reducer->remove_autograd_hooks();
}

void DataParallel::begin_step() {
  if (state_->logger) state_->logger->set_runtime_stats_and_log();
  state_->reducer->prepare_for_forward();
  if (state_->rebuilds) state_->reducer->rebuild_buckets();
}

void DataParallel::average_next(const at::Tensor& loss) {
  if (state_->find_unused)
    state_->reducer->prepare_for_backward({loss});
  else
    state_->reducer->prepare_for_backward({});
  if (!std::exchange(state_->delays, false)) return;
  // The order of the gradients is known when the first backward ends.
  loss.register_hook([reducer = state_->reducer](const at::Tensor&) {
    torch::autograd::Engine::get_default_engine().queue_callback(
        [reducer] { reducer->delay_all_reduce(); });
  });
}

DataParallel::Times DataParallel::times() const {
  if (!state_->logger) return {};
  const auto numbers = state_->logger->get_ddp_logging_data().ints_map;
  const auto of = [&](const char* key) {
    const auto found = numbers.find(key);
    return found == numbers.end() ? int64_t{0} : found->second;
  };
  return {.steps = of("iteration"),
          .forward_ns = of("avg_forward_compute_time"),
          .backward_ns = of("avg_backward_compute_time"),
          .communication_ns = of("avg_backward_comm_time"),
          .overlap_ns = of("avg_backward_compute_comm_overlap_time")};
}

std::string DataParallel::Times::str() const {
  const auto ms = [](int64_t ns) {
    return config::number_text(std::round(static_cast<double>(ns) / 1e4) / 100) + " ms";
  };
  return "forward " + ms(forward_ns) + ", backward " + ms(backward_ns) +
         ", exchange of gradients " + ms(communication_ns) + ", of which " + ms(overlap_ns) +
         " while the backward computed";
}

}  // namespace tare::parallel
