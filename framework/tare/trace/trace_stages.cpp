// Notes the stages of divided work in a trace, and takes a trace apart.
#include "tare/trace/trace_stages.h"

#include <charconv>
#include <string>
#include <string_view>
#include <unordered_set>

#include "tare/trace/recording.h"
#include "tare/trace/trace.h"

namespace tare::plan {
namespace {

constexpr std::string_view kStage = "stage ";

/// Returns the stage that a mark begins; unset: it is another mark.
std::optional<size_t> stage_in(const Mark& mark) {
  if (!mark.name.starts_with(kStage)) return std::nullopt;
  size_t stage = 0;
  const char* const end = mark.name.data() + mark.name.size();
  const auto [rest, error] = std::from_chars(mark.name.data() + kStage.size(), end, stage);
  return error == std::errc() && rest == end ? std::optional(stage) : std::nullopt;
}

}  // namespace

void mark_stage(size_t stage) {
  mark(std::string(kStage) + std::to_string(stage));
  meta_stage(stage);
}

std::optional<size_t> stage_of(const at::Tensor& tensor) {
  Ledger ledger;
  ledger.add(Category::other, "", tensor);
  return ledger.entries().empty() ? std::nullopt : meta_stage_of(ledger.entries().front());
}

void note_stages(const Ledger& ledger,
                 const std::function<std::optional<size_t>(const LedgerEntry&)>& stage_of) {
  meta_note_stages(ledger, stage_of);
}

StageTrace trace_of_stage(const Trace& whole, Section section, size_t stage) {
  StageTrace own;
  own.trace.ops = whole.ops;
  own.trace.called = whole.called;
  own.trace.categories = whole.categories;
  auto& events = own.trace.events;
  size_t now = 0;  // the stage whose work it is
  auto mark = whole.marks.begin();
  auto sum = whole.sums.begin();
  auto product = whole.products.begin();
  std::unordered_set<int64_t> blocks;
  for (size_t i = 0; i <= whole.events.size(); ++i) {
    for (; mark != whole.marks.end() && mark->event <= i; ++mark) {
      if (const auto begins = stage_in(*mark))
        now = *begins;
      else
        own.trace.marks.push_back({mark->name, events.size()});
    }
    const auto take = [&](auto& next, const auto& end, auto& into) {
      for (; next != end && next->event <= i; ++next) {
        if (now != stage) continue;
        into.push_back(*next);
        into.back().event = events.size();
      }
    };
    take(sum, whole.sums.end(), own.trace.sums);
    take(product, whole.products.end(), own.trace.products);
    if (i == section.begin) own.section.begin = events.size();
    if (i == section.end) own.section.end = events.size();
    if (i == whole.events.size()) break;
    const Event& event = whole.events[i];
    if (event.bytes > 0) {
      const auto known = whole.stages.find(event.block);
      if ((known == whole.stages.end() ? now : known->second) == stage) blocks.insert(event.block);
    }
    if (blocks.contains(event.block)) events.push_back(event);
  }
  return own;
}

}  // namespace tare::plan
