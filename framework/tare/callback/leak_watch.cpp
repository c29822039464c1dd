// Samples unexplained memory during a fit, and warns where it grows.
#include "tare/callback/leak_watch.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"
#include "tare/memory/backend.h"
#include "tare/memory/libtorch.h"
#include "tare/memory/phase.h"

namespace tare {
namespace {

/// Whether neither an object nor a library of the device keeps the block.
bool is_unanswered(const memory::LiveBlock& block, const Ledger& answered) {
  return !block.library_workspace && !answered.contains(block.data);
}

bool is_short(const FitContext& context) {
  return context.epochs < static_cast<int64_t>(LeakWatch::kEpochs);
}

}  // namespace

/// The graphs of one batch, which must be gone when the next one begins.
struct LeakWatch::Graphs {
  std::vector<libtorch::WeakNode> nodes;  // one of each micro-batch's loss and output
  int64_t step = 0;
  uint32_t number = 0;  // of the step, as blocks have it
};

std::string Growth::str() const {
  std::string text;
  for (const int64_t sum : bytes) text += (text.empty() ? "" : ", ") + format_bytes(sum);
  text += " on " + device.str() + ", born in phase " + phase;
  return site == memory::CallSite{} ? text : text + " at " + site.str();
}

std::string KeptGraph::str() const {
  return "the graph of step " + format_count(step) + " was still alive when the next batch began" +
         (bytes > 0 ? ", with " + format_bytes(bytes) + " on " + device.str() : "");
}

LeakWatch::LeakWatch() = default;
LeakWatch::~LeakWatch() = default;

Action LeakWatch::before_fit(FitContext& context) {
  series_.clear();
  found_.clear();
  graphs_.reset();
  kept_graph_.reset();
  looks_ = 0;
  batches_ = 0;
  sample(context.learner.device());
  return Action::proceed;
}

Action LeakWatch::before_batch(FitContext& context) {
  look_at_graphs(context);
  return Action::proceed;
}

Action LeakWatch::after_loss(FitContext& context) {
  if (kept_graph_) return Action::proceed;
  if (!graphs_) graphs_ = std::make_unique<Graphs>();
  graphs_->step = context.step + 1;
  graphs_->number = memory::current_step();
  const auto watch = [this](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.grad_fn())
      graphs_->nodes.push_back(libtorch::weak(tensor.grad_fn()));
  };
  watch(context.loss);
  std::ranges::for_each(context.outputs, watch);
  return Action::proceed;
}

Action LeakWatch::after_batch(FitContext& context) {
  ++batches_;
  const int64_t all = context.steps;
  if (!is_short(context) || all < 4) return Action::proceed;
  const bool ends_a_quarter = 4 * batches_ / all > 4 * (batches_ - 1) / all;
  if (!ends_a_quarter) return Action::proceed;
  const auto device = context.learner.device();
  sample(device);
  ++looks_;
  if (looks_ > kEpochs) warn(device, true);
  return Action::proceed;
}

Action LeakWatch::after_epoch(FitContext& context) {
  if (is_short(context)) return Action::proceed;
  const auto device = context.learner.device();
  sample(device);
  ++looks_;
  if (looks_ >= kEpochs) warn(device, false);
  return Action::proceed;
}

Action LeakWatch::after_fit(FitContext& context) {
  if (!context.error) look_at_graphs(context);  // after an error the step is still there
  graphs_.reset();
  return Action::proceed;
}

void LeakWatch::warn(c10::Device device, bool short_fit) {
  for (auto& growth : grown(device)) {
    if (short_fit && growth.bytes.back() - growth.bytes.front() < kLargeBytes) continue;
    const bool known = std::ranges::any_of(found_, [&](const Growth& before) {
      return before.phase == growth.phase && before.site == growth.site;
    });
    if (known) continue;
    log::warning("[leak_watch] memory that no object answers for grew in each of the last " +
                 std::to_string(kEpochs) + (short_fit ? " quarters of the fit: " : " epochs: ") +
                 growth.str() + "; let go of the tensors there, or list them in a ledger");
    found_.push_back(std::move(growth));
  }
}

void LeakWatch::look_at_graphs(const FitContext& context) {
  if (!graphs_ || kept_graph_) return;
  const bool alive = std::ranges::any_of(
      graphs_->nodes, [](const libtorch::WeakNode& node) { return !node.expired(); });
  graphs_->nodes.clear();
  if (!alive) return;
  KeptGraph kept{context.learner.device(), graphs_->step, 0};
  const Ledger answered = Accountable::living_ledger();
  for (const auto& block : memory::backend(kept.device).live_blocks())
    if (block.step == graphs_->number && is_unanswered(block, answered)) kept.bytes += block.bytes;
  log::warning("[leak_watch] " + kept.str() +
               "; keep loss.detach() or loss.item() of the tensors of a step, not the loss, the "
               "output or what was made from them");
  kept_graph_ = kept;
}

void LeakWatch::sample(c10::Device device) {
  for (auto& [origin, bytes] : series_) {
    std::shift_left(bytes.begin(), bytes.end(), 1);
    bytes.back() = 0;
  }
  const Ledger answered = Accountable::living_ledger();
  for (const auto& block : memory::backend(device).live_blocks())
    if (is_unanswered(block, answered)) series_[{block.phase, block.stack}].back() += block.bytes;
  std::erase_if(series_, [](const auto& entry) { return entry.second == Series{}; });
}

// A line may be reached through several stacks, so their sums are compared. Reading the lines is
// the slow part, and rarely needed.
std::vector<Growth> LeakWatch::grown(c10::Device device) const {
  const bool any = std::ranges::any_of(
      series_, [](const auto& entry) { return entry.second.back() > entry.second.front(); });
  if (!any) return {};
  std::map<std::pair<uint32_t, memory::CallSite>, Series> by_site;
  for (const auto& [origin, bytes] : series_) {
    auto& sum = by_site[{origin.phase, memory::site_of(origin.stack)}];
    std::ranges::transform(sum, bytes, sum.begin(), std::plus{});
  }
  std::vector<Growth> all;
  for (const auto& [origin, bytes] : by_site) {
    const bool rose = std::ranges::adjacent_find(bytes, std::greater_equal{}) == bytes.end();
    if (!rose) continue;
    all.push_back(
        {device, memory::phase_name(origin.first), origin.second, {bytes.begin(), bytes.end()}});
  }
  return all;
}

namespace callbacks {
void add_leak_watch(Registry& all) {
  all.add("leak_watch", "warns of memory that grows and that no object answers for",
          [] { return std::make_shared<LeakWatch>(); });
}
}  // namespace callbacks

}  // namespace tare
