#include "tare/callback/leak_watch.h"

#include <algorithm>
#include <functional>

#include "tare/base/bytes.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/phase.h"

namespace tare {

std::string Growth::str() const {
  std::string text;
  for (const int64_t sum : bytes) text += (text.empty() ? "" : ", ") + format_bytes(sum);
  text += " on " + device.str() + ", born in phase " + phase;
  return site == memory::CallSite{} ? text : text + " at " + site.str();
}

Action LeakWatch::before_fit(FitContext& context) {
  series_.clear();
  found_.clear();
  epochs_ = 0;
  sample(context.learner.device());
  return Action::proceed;
}

Action LeakWatch::after_epoch(FitContext& context) {
  const auto device = context.learner.device();
  sample(device);
  ++epochs_;
  for (auto& growth : grown(device)) {
    const bool known = std::ranges::any_of(found_, [&](const Growth& before) {
      return before.phase == growth.phase && before.site == growth.site;
    });
    if (known) continue;
    log::warning("[leak_watch] memory that no object answers for grew in each of the last " +
                 std::to_string(kEpochs) + " epochs: " + growth.str() +
                 "; let go of the tensors there, or list them in a ledger");
    found_.push_back(std::move(growth));
  }
  return Action::proceed;
}

void LeakWatch::sample(c10::Device device) {
  for (auto& [origin, bytes] : series_) {
    std::shift_left(bytes.begin(), bytes.end(), 1);
    bytes.back() = 0;
  }
  const Ledger answered = Accountable::living_ledger();
  for (const auto& block : memory::backend(device).live_blocks())
    if (!answered.contains(block.data)) series_[{block.phase, block.stack}].back() += block.bytes;
  std::erase_if(series_, [](const auto& entry) { return entry.second == Series{}; });
}

// A line may be reached through several stacks, so their sums are compared. Reading the lines is
// the slow part, and rarely needed.
std::vector<Growth> LeakWatch::grown(c10::Device device) const {
  const bool any = std::ranges::any_of(
      series_, [](const auto& entry) { return entry.second.back() > entry.second.front(); });
  if (epochs_ < kEpochs || !any) return {};
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

}  // namespace tare
