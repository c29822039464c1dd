// Computes bytes and seconds of a step on many devices.
#include "tare/plan/scale.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tare/base/error.h"
#include "tare/parallel/sharded_optimizer.h"

namespace tare::plan {
namespace {

constexpr double kFirstBucketBytes = 0x1p20;  // c10d::kDefaultFirstBucketBytes
constexpr int64_t kPartsPerStage = 4;  // from which on a pipeline hardly idles (GPipe, section 2.3)

/// Returns the owner of each parameter.
std::vector<size_t> owners(const std::vector<ScaleParameter>& parameters, int64_t ranks) {
  std::vector<Parameter> all;
  for (const ScaleParameter& one : parameters)
    all.push_back(
        {one.name, at::empty({one.bytes}, at::TensorOptions(at::kByte).device(at::kMeta))});
  const auto by_name = parallel::owners_of(all, ranks);
  std::vector<size_t> owner;
  for (const ScaleParameter& one : parameters)
    owner.push_back(static_cast<size_t>(by_name.at(one.name)));
  return owner;
}

/// Sends messages one after the other, each as soon as it is ready.
class Sender {
 public:
  void send(double ready_s, double seconds) {
    free_s_ = std::max(free_s_, ready_s) + seconds;
    busy_s_ += seconds;
  }
  [[nodiscard]] double free_s() const { return free_s_; }  ///< when the last one has arrived
  [[nodiscard]] double busy_s() const { return busy_s_; }

 private:
  double free_s_ = 0, busy_s_ = 0;
};

struct Stage {
  double share = 0;           // of the computation
  int64_t bytes = 0;          // of values, gradients and the optimizer's state
  int64_t trained_bytes = 0;  // of gradients
};

class Scale {
 public:
  Scale(const ScaleWork& work, const Cluster& cluster, int64_t capacity)
      : work_(work),
        cluster_(cluster),
        capacity_(capacity),
        link_(cluster.of(work.ranks)),
        owner_(owners(work.parameters, work.ranks)) {
    for (const ScaleParameter& one : work_.parameters) {
      bytes_ += one.bytes;
      trained_bytes_ += one.trained_bytes;
      state_bytes_ += one.state_bytes;
    }
    const double all = work_.sample_s.value_or(0) * static_cast<double>(work_.own_samples());
    forward_s_ = all * work_.forward_share;
    backward_s_ = all - forward_s_;
  }

  [[nodiscard]] std::vector<ScaleRow> rows() const {
    std::vector<ScaleRow> all{data_parallel()};
    if (work_.ranks == 1) return all;
    all.push_back(zero1());
    all.push_back(zero2_or_3(Strategy::zero2));
    all.push_back(zero2_or_3(Strategy::zero3));
    if (auto best = pipeline()) all.push_back(*std::move(best));
    return all;
  }

 private:
  [[nodiscard]] double sent(int64_t bytes) const {
    return static_cast<double>(bytes) * work_.sent_share;
  }
  /// Returns when the computation of the last micro-batch's backward begins.
  [[nodiscard]] double backward_begins() const {
    return forward_s_ + backward_s_ * (1 - 1.0 / static_cast<double>(work_.parts));
  }
  [[nodiscard]] double last_backward_s() const {
    return backward_s_ / static_cast<double>(work_.parts);
  }

  /// Returns the largest sum over the parameters of one rank.
  [[nodiscard]] int64_t largest_of_a_rank(int64_t ScaleParameter::*bytes) const {
    std::map<size_t, int64_t> of_rank;
    for (size_t i = 0; i < owner_.size(); ++i) of_rank[owner_[i]] += work_.parameters[i].*bytes;
    int64_t largest = 0;
    for (const auto& [rank, sum] : of_rank) largest = std::max(largest, sum);
    return largest;
  }
  [[nodiscard]] int64_t largest_block(int64_t ScaleParameter::*bytes) const {
    std::vector<int64_t> of_unit(work_.units.size(), 0);
    for (const ScaleParameter& one : work_.parameters)
      if (work_.units[one.unit].is_block) of_unit[one.unit] += one.*bytes;
    return of_unit.empty() ? 0 : std::ranges::max(of_unit);
  }
  /// Returns the bytes of the state that the rank with most gradients keeps, as in a plan.
  [[nodiscard]] int64_t own_state_bytes() const {
    std::map<size_t, ScaleParameter> of_rank;
    for (size_t i = 0; i < owner_.size(); ++i) {
      of_rank[owner_[i]].trained_bytes += work_.parameters[i].trained_bytes;
      of_rank[owner_[i]].state_bytes += work_.parameters[i].state_bytes;
    }
    ScaleParameter most;
    for (const auto& [rank, one] : of_rank)
      if (one.trained_bytes > most.trained_bytes) most = one;
    return most.state_bytes;
  }

  /// Completes a row whose step takes `busy_s` up to its last gradient and `after_s` behind it.
  void finish(ScaleRow& row, double busy_s, double after_s) const {
    const auto planned = work_.planned_bytes.find(row.strategy);
    row.is_planned =
        row.strategy == Strategy::data_parallel || planned != work_.planned_bytes.end();
    if (planned != work_.planned_bytes.end()) row.bytes = planned->second;
    row.fits = row.bytes + work_.cached_bytes <= capacity_;
    if (!work_.sample_s) {
      row.compute_s = row.exchange_s = 0;
      return;
    }
    const double agree = work_.ranks > 1 ? agree_s(work_.ranks, link_) : 0;
    const double buffers =
        work_.ranks > 1 && work_.buffer_bytes > 0
            ? broadcast_s(work_.ranks, static_cast<double>(work_.buffer_bytes), link_)
            : 0;
    row.exchange_s += 2 * agree + buffers;
    row.step_s = buffers + std::max(0.0, agree - forward_s_) + busy_s + agree + after_s;
    if (row.step_s <= 0) return;
    row.samples_per_s = static_cast<double>(work_.batch) / row.step_s;
    row.efficiency = row.samples_per_s * *work_.sample_s / static_cast<double>(work_.ranks);
  }

  /// Sends the gradients in buckets, in the reverse order of the parameters.
  [[nodiscard]] Sender send_buckets() const {
    Sender sender;
    double now = backward_begins(), bucket = 0,
           limit = std::min(kFirstBucketBytes, work_.bucket_bytes);
    const auto flush = [&] {
      if (bucket > 0) sender.send(now, all_reduce_s(work_.ranks, bucket * work_.sent_share, link_));
      bucket = 0;
      limit = work_.bucket_bytes;
    };
    for (size_t unit = work_.units.size(); unit-- > 0;) {
      now += last_backward_s() * work_.units[unit].share;
      for (size_t i = work_.parameters.size(); i-- > 0;) {
        if (work_.parameters[i].unit != unit) continue;
        bucket += static_cast<double>(work_.parameters[i].trained_bytes);
        if (bucket >= limit) flush();
      }
    }
    flush();
    return sender;
  }

  [[nodiscard]] ScaleRow data_parallel() const {
    ScaleRow row{.strategy = Strategy::data_parallel, .bytes = work_.bytes};
    row.compute_s = forward_s_ + backward_s_;
    const Sender sender = work_.ranks > 1 ? send_buckets() : Sender();
    row.exchange_s = sender.busy_s();
    finish(row, std::max(row.compute_s, sender.free_s()), 0);
    return row;
  }

  /// Returns the seconds of the broadcasts by which owners give the parameters of some units to
  /// all.
  template <class Of>
  [[nodiscard]] double give_s(int64_t ScaleParameter::*bytes, const Of& of_unit) const {
    std::map<size_t, int64_t> by_owner;
    for (size_t i = 0; i < owner_.size(); ++i)
      if (const auto& one = work_.parameters[i]; of_unit(one.unit) && one.*bytes > 0)
        by_owner[owner_[i]] += one.*bytes;
    double seconds = 0;
    for (const auto& [owner, sum] : by_owner)
      seconds += broadcast_s(work_.ranks, static_cast<double>(sum), link_);
    return seconds;
  }

  /// Is a part of the gradients that is sent at once to the owners of its parameters.
  struct Bucket {
    size_t unit = 0;                     // whose backward completes it
    int64_t bytes = 0;                   // of all owners
    std::map<size_t, int64_t> pieces{};  // by owner
  };

  /// Returns the buckets in the order in which the backward completes them: of bounded bytes, or
  /// one for each block, with the parameters outside of blocks in the last one.
  [[nodiscard]] std::vector<Bucket> buckets(bool by_block) const {
    std::vector<Bucket> all;
    Bucket outside;
    const auto add = [&](Bucket& bucket, size_t parameter) {
      bucket.bytes += work_.parameters[parameter].trained_bytes;
      bucket.pieces[owner_[parameter]] += work_.parameters[parameter].trained_bytes;
    };
    for (size_t unit = work_.units.size(); unit-- > 0;) {
      if (by_block && work_.units[unit].is_block) all.push_back({.unit = unit});
      for (size_t i = work_.parameters.size(); i-- > 0;) {
        const ScaleParameter& one = work_.parameters[i];
        if (one.unit != unit || one.trained_bytes == 0) continue;
        if (by_block && !work_.units[unit].is_block) {
          add(outside, i);
          continue;
        }
        const bool is_full =
            all.empty() ||
            static_cast<double>(all.back().bytes + one.trained_bytes) > work_.bucket_bytes;
        if (!by_block && is_full) all.emplace_back();
        add(all.back(), i);
        all.back().unit = unit;
      }
    }
    if (outside.bytes > 0) all.push_back(std::move(outside));
    return all;
  }

  /// Returns the bytes of the parameters inside or outside of blocks.
  [[nodiscard]] int64_t outside_bytes() const {
    int64_t bytes = 0;
    for (const ScaleParameter& one : work_.parameters)
      if (!work_.units[one.unit].is_block) bytes += one.bytes;
    return bytes;
  }

  [[nodiscard]] int64_t sharded_bytes(Strategy strategy) const {
    const int64_t own = largest_of_a_rank(&ScaleParameter::trained_bytes);
    int64_t bytes = work_.bytes - state_bytes_ + own_state_bytes();
    if (strategy == Strategy::zero1) return bytes;
    int64_t largest = 0;
    for (const Bucket& one : buckets(strategy == Strategy::zero3))
      largest = std::max(largest, one.bytes);
    // One bucket is under way while the next one is computed.
    bytes -= trained_bytes_ - std::min(trained_bytes_, own + 2 * largest);
    if (strategy == Strategy::zero2) return bytes;
    const int64_t values = largest_of_a_rank(&ScaleParameter::bytes) + outside_bytes() +
                           largest_block(&ScaleParameter::bytes);
    return bytes - bytes_ + std::min(bytes_, values);
  }

  [[nodiscard]] ScaleRow zero1() const {
    ScaleRow row{.strategy = Strategy::zero1, .bytes = sharded_bytes(Strategy::zero1)};
    row.compute_s = forward_s_ + backward_s_;
    const Sender sender = send_buckets();
    const double after = give_s(&ScaleParameter::trained_bytes, [](size_t) { return true; });
    row.exchange_s = sender.busy_s() + after;
    finish(row, std::max(row.compute_s, sender.free_s()), after);
    return row;
  }

  /// Goes through the micro-batches of a step, each of which sends its gradients.
  [[nodiscard]] ScaleRow zero2_or_3(Strategy strategy) const {
    ScaleRow row{.strategy = strategy, .bytes = sharded_bytes(strategy)};
    row.compute_s = forward_s_ + backward_s_;
    const bool gathers = strategy == Strategy::zero3;
    const std::vector<Bucket> all = buckets(gathers);
    const auto parts = static_cast<double>(work_.parts);
    Sender sender;
    double now = 0, gathered = 0;
    const auto wait_for = [&](double seconds) {
      now = std::max(now, sender.free_s()) + seconds;
      gathered += seconds;
    };
    const auto gather = [&](size_t unit) {
      if (gathers && work_.units[unit].is_block)
        wait_for(give_s(&ScaleParameter::bytes, [&](size_t other) { return other == unit; }));
    };
    if (gathers)
      wait_for(give_s(&ScaleParameter::bytes, [&](size_t u) { return !work_.units[u].is_block; }));
    for (int64_t part = 0; part < work_.parts; ++part) {
      for (size_t unit = 0; unit < work_.units.size(); ++unit) {
        gather(unit);
        now += forward_s_ / parts * work_.units[unit].share;
      }
      auto bucket = all.begin();
      for (size_t unit = work_.units.size(); unit-- > 0;) {
        gather(unit);
        now += last_backward_s() * work_.units[unit].share;
        for (; bucket != all.end() && bucket->unit == unit; ++bucket)
          for (const auto& [owner, bytes] : bucket->pieces)
            sender.send(now, reduce_s(work_.ranks, static_cast<double>(bytes), link_));
      }
    }
    const double after =
        gathers ? 0 : give_s(&ScaleParameter::trained_bytes, [](size_t) { return true; });
    row.exchange_s = sender.busy_s() + gathered + after;
    finish(row, std::max(now, sender.free_s()), after);
    return row;
  }

  /// Returns the index of the first unit of each stage, so that the largest share of the
  /// computation is as small as possible: dynamic programming over where the last stage begins.
  [[nodiscard]] std::vector<size_t> first_units(size_t stages) const {
    const size_t units = work_.units.size();
    std::vector<double> until(units + 1, 0);
    for (size_t i = 0; i < units; ++i) until[i + 1] = until[i] + work_.units[i].share;
    // least[s][u]: the largest share of s + 1 stages that have the first u units.
    std::vector<std::vector<double>> least(stages, std::vector<double>(units + 1, 2));
    std::vector<std::vector<size_t>> begin(stages, std::vector<size_t>(units + 1, 0));
    for (size_t u = 1; u <= units; ++u) least[0][u] = until[u];
    for (size_t s = 1; s < stages; ++s)
      for (size_t u = s + 1; u <= units; ++u)
        for (size_t last = s; last < u; ++last) {
          if (work_.units[last - 1].output_bytes == 0) continue;
          const double largest = std::max(least[s - 1][last], until[u] - until[last]);
          if (largest < least[s][u]) {
            least[s][u] = largest;
            begin[s][u] = last;
          }
        }
    if (least[stages - 1][units] > 1.5) return {};  // the model cannot be cut so often
    std::vector<size_t> first(stages, 0);
    size_t end = units;
    for (size_t s = stages; s-- > 0;) end = first[s] = begin[s][end];
    return first;
  }

  [[nodiscard]] std::vector<Stage> stages_of(const std::vector<size_t>& first) const {
    std::vector<Stage> stages(first.size());
    const auto of = [&](size_t unit) -> Stage& {
      return stages[static_cast<size_t>(std::ranges::upper_bound(first, unit) - first.begin()) - 1];
    };
    for (size_t unit = 0; unit < work_.units.size(); ++unit)
      of(unit).share += work_.units[unit].share;
    for (const ScaleParameter& one : work_.parameters) {
      of(one.unit).bytes += one.bytes + one.trained_bytes + one.state_bytes;
      of(one.unit).trained_bytes += one.trained_bytes;
    }
    return stages;
  }

  [[nodiscard]] std::optional<ScaleRow> pipeline_of(int64_t stages) const {
    const std::vector<size_t> first = first_units(static_cast<size_t>(stages));
    if (first.empty()) return std::nullopt;
    const int64_t pipelines = work_.ranks / stages;
    const int64_t samples = (work_.batch + pipelines - 1) / pipelines;
    ScaleRow row{.strategy = Strategy::pipeline,
                 .stages = stages,
                 .micro_batches = std::min(samples, kPartsPerStage * stages)};
    const int64_t own = (samples + row.micro_batches - 1) / row.micro_batches;
    const double others = static_cast<double>(work_.bytes - bytes_ - trained_bytes_ - state_bytes_);
    double slowest = 0, weights_s = 0;
    for (const Stage& one : stages_of(first)) {
      // The bytes are those of one micro-batch of a data parallel rank; a pipeline keeps all.
      const double activations = others * one.share * static_cast<double>(samples * work_.parts) /
                                 static_cast<double>(work_.own_samples());
      row.bytes = std::max(row.bytes, one.bytes + static_cast<int64_t>(activations));
      slowest = std::max(slowest, one.share);
      if (pipelines > 1)
        weights_s = std::max(weights_s, all_reduce_s(pipelines, sent(one.trained_bytes), link_));
    }
    int64_t boundary = 0;
    for (const size_t unit : first)
      if (unit > 0) boundary = std::max(boundary, work_.units[unit - 1].output_bytes);
    const Link near = cluster_.of(stages);
    const double send = near.seconds(static_cast<double>(boundary * own));
    const double part_s = work_.sample_s.value_or(0) * static_cast<double>(own) * slowest;
    const auto slots = static_cast<double>(row.micro_batches + stages - 1);
    row.compute_s = part_s * static_cast<double>(row.micro_batches);
    row.exchange_s = 2 * send * static_cast<double>(row.micro_batches) + weights_s;
    finish(row, slots * (part_s + 2 * send), weights_s);
    return row;
  }

  [[nodiscard]] std::optional<ScaleRow> pipeline() const {
    std::optional<ScaleRow> best;
    const auto better = [](const ScaleRow& one, const ScaleRow& other) {
      if (one.fits != other.fits) return one.fits;
      return one.fits && one.step_s != other.step_s ? one.step_s < other.step_s
                                                    : one.bytes < other.bytes;
    };
    const auto most = std::min<int64_t>(work_.ranks, std::ssize(work_.units));
    for (int64_t stages = 2; stages <= most; ++stages) {
      if (work_.ranks % stages != 0) continue;
      auto row = pipeline_of(stages);
      if (row && (!best || better(*row, *best))) best = std::move(row);
    }
    return best;
  }

  const ScaleWork& work_;
  const Cluster& cluster_;
  int64_t capacity_;
  Link link_;
  std::vector<size_t> owner_;  // by parameter
  int64_t bytes_ = 0, trained_bytes_ = 0, state_bytes_ = 0;
  double forward_s_ = 0, backward_s_ = 0;
};

}  // namespace

const char* to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::data_parallel:
      return "data parallel";
    case Strategy::zero1:
      return "ZeRO-1";
    case Strategy::zero2:
      return "ZeRO-2";
    case Strategy::zero3:
      return "ZeRO-3";
    case Strategy::pipeline:
      return "pipeline";
  }
  return "";
}

std::vector<ScaleRow> scale(const ScaleWork& work, const Cluster& cluster, int64_t capacity_bytes) {
  for (const auto& [name, value] :
       {std::pair("ranks", work.ranks), std::pair("batch", work.batch),
        std::pair("parts", work.parts), std::pair("per_machine", cluster.per_machine)})
    if (value < 1) throw ConfigError("plan.scale", name, "must be >= 1", "", std::to_string(value));
  return Scale(work, cluster, capacity_bytes).rows();
}

const ScaleRow* fastest(const std::vector<ScaleRow>& rows) {
  const ScaleRow* best = nullptr;
  for (const ScaleRow& row : rows)
    if (row.fits && row.step_s > 0 && (!best || row.step_s < best->step_s)) best = &row;
  return best;
}

}  // namespace tare::plan
