// Exchanges between the ranks of a fit.
#include "tare/train/ranks.h"

#include <algorithm>

#include "tare/base/log.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

using Numbers = parallel::Group::Numbers;

Numbers numbers_of(const Wish& wish) {
  return {static_cast<double>(wish.action), wish.interrupted ? 1.0 : 0.0,
          wish.out_of_time ? 1.0 : 0.0};
}

/// Returns the strongest wish; those of a rank begin at its number `first`.
Wish strongest(const std::vector<Numbers>& all, size_t first) {
  Wish wish;
  for (const Numbers& of_rank : all) {
    wish.action = std::max(wish.action, static_cast<Action>(of_rank[first]));
    wish.interrupted = wish.interrupted || of_rank[first + 1] != 0;
    wish.out_of_time = wish.out_of_time || of_rank[first + 2] != 0;
  }
  return wish;
}

}  // namespace

LossTotals sum_over(parallel::Group& group, const LossTotals& own) {
  LossTotals all;
  const auto samples = static_cast<double>(own.samples);
  for (const Numbers& of_rank : group.exchange({own.sum, samples, own.counted})) {
    all.sum += of_rank[0];
    all.samples += static_cast<int64_t>(of_rank[1]);
    all.counted += of_rank[2];
  }
  return all;
}

Ranks::Ranks(LearnerState& state)
    : state_(state), group_(*state.group()), buffers_(tensors_of(state.model.buffers())) {
  if (state.shards_gradients())
    sharded_ = std::make_unique<parallel::ShardedExchange>(*state.shard(), state.model,
                                                           state.options.data_parallel);
}

parallel::DataParallel& Ranks::averaging(Optimizer& optimizer) {
  auto& found = averaging_[&optimizer];
  if (!found) {
    std::vector<NamedTensor> parameters;
    for (const ParameterGroup& group : optimizer.groups())
      for (const Parameter& one : group.parameters) parameters.push_back({one.name, one.tensor});
    found =
        std::make_unique<parallel::DataParallel>(group_, parameters, state_.options.data_parallel);
  }
  return *found;
}

void Ranks::begin_step(Optimizer& optimizer, double counted, const Wish& own) {
  (void)factor();  // of a step whose backward was left out
  Numbers numbers = numbers_of(own);
  numbers.insert(numbers.begin(), counted);
  counted_ = counted;
  optimizer_ = &optimizer;
  own_ = own;
  agreed_ = false;
  exchange_ = group_.start(numbers);
  group_.broadcast(buffers_);
  if (sharded_) return sharded_->begin_step();
  now_ = &averaging(optimizer);
  explaining([&] { now_->begin_step(); });  // after the first step the ranks make buckets anew
}

double Ranks::factor() {
  if (!exchange_) return factor_;
  const auto all = exchange_.wait();
  known_ = strongest(all, 1);
  double whole = 0;
  for (const Numbers& of_rank : all) whole += of_rank.front();
  factor_ = whole > 0 ? counted_ * static_cast<double>(group_.size()) / whole : 1;
  return factor_;
}

void Ranks::average_next(const at::Tensor& loss, bool is_last) {
  if (sharded_)
    sharded_->average_next();
  else if (is_last)
    now_->average_next(loss);
}

std::unique_ptr<parallel::SyncBatchNormScope> Ranks::norms(bool counts) const {
  if (!state_.options.data_parallel.sync_batch_norm) return nullptr;
  return std::make_unique<parallel::SyncBatchNormScope>(group_, counts);
}

void Ranks::agree_on_parts(std::vector<BatchPart>& parts) {
  if (!sharded_) return;
  double most = 0;
  for (const Numbers& of_rank : group_.exchange({static_cast<double>(parts.size())}))
    most = std::max(most, of_rank.front());
  while (static_cast<double>(parts.size()) < most)
    parts.push_back({.batch = parts.back().batch, .share = 0, .counted = 0});
}

bool Ranks::all_finite(bool own) {
  if (!sharded_) return own;  // the gradients are the same
  return std::ranges::all_of(group_.exchange({own ? 1.0 : 0.0}),
                             [](const Numbers& of_rank) { return of_rank.front() != 0; });
}

void Ranks::clip(const std::vector<ParameterGroup>& groups, const ClipOptions& options) {
  if (sharded_)
    parallel::clip_sharded(groups, options, group_);
  else
    clip_gradients(groups, options);
}

void Ranks::end_backward(bool wanted) {
  group_.settle();
  if (wanted) {
    (void)group_.exchange({1});
    agreed_ = true;
  }
  if (sharded_) sharded_->close();
}

void Ranks::start_over() {
  if (agreed_)
    throw parallel::RankError({group_.rank()},
                              "rank " + std::to_string(group_.rank()) +
                                  " ran out of memory in a step that the other ranks have taken: "
                                  "set a smaller micro_batch");
  exchange_ = {};
  averaging_.clear();
  group_.start_over();
  begin_step(*optimizer_, counted_, own_);
}

void Ranks::end() {
  if (sharded_) sharded_->restore();
  for (const auto& [optimizer, averaging] : averaging_) {
    const parallel::DataParallel::Times times = averaging->times();
    if (times.steps > 0)
      log::debug("a step of rank " + std::to_string(group_.rank()) + ": " + times.str());
  }
}

Wish Ranks::settle(const Wish& own) {
  known_ = strongest(group_.exchange(numbers_of(own)), 0);
  return known_;
}

}  // namespace tare
