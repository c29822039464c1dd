// Measures the parts between the cuts of a model in a trace, and divides them over cards.
#include "tare/plan/divide.h"

#include <algorithm>

#include "tare/parallel/stages.h"
#include "tare/trace/trace.h"
#include "tare/trace/trace_stages.h"

namespace tare {
namespace {

/// Returns the names of the layer groups at which the model of a request can be cut.
std::vector<std::string> cuts_of(const PlanRequest& request) {
  const plan::MetaScope meta;
  const Model model = request.model();
  std::vector<std::string> names;
  for (const size_t cut : parallel::cuts_of(model)) names.push_back(model.layer_groups()[cut].name);
  return names;
}

/// Returns the bytes that each part between two cuts takes at its own peak.
std::vector<double> peaks_between(const std::vector<std::string>& cuts, PlanRequest request) {
  const plan::Target card = request.cards.front();
  request.options.stages = {card.name};
  for (const std::string& cut : cuts) request.options.stages.push_back(card.name + '@' + cut);
  request.cards.assign(request.options.stages.size(), card);
  const int64_t batch = request.options.batch;
  const int64_t part = std::min(request.options.micro_batch.value_or(batch), batch);
  const FitTrace fit = trace_fit(request, batch, {part, part});
  std::vector<double> peaks;
  for (size_t i = 0; i < request.cards.size(); ++i) {
    const auto [trace, section] = plan::trace_of_stage(fit.trace, fit.counted, i);
    const plan::Estimate own = plan::estimate(trace, section, card);
    peaks.push_back(static_cast<double>(own.start_bytes + own.peak_bytes));
  }
  return peaks;
}

}  // namespace

std::vector<std::string> stages_by_plan(const PlanRequest& request,
                                        const std::vector<std::string>& devices) {
  const std::vector<std::string> cuts = cuts_of(request);
  const size_t stages = std::min(devices.size(), cuts.size() + 1);
  if (stages < 2) return {devices.front()};
  std::vector<double> capacities;
  for (size_t i = 0; i < stages; ++i)
    capacities.push_back(static_cast<double>(request.cards[i].capacity_bytes));
  std::vector<size_t> everywhere(cuts.size());
  for (size_t i = 0; i < everywhere.size(); ++i) everywhere[i] = i + 1;
  const std::vector<size_t> begins =
      parallel::divided(peaks_between(cuts, request), std::vector<std::optional<size_t>>(stages),
                        everywhere, capacities);
  std::vector<std::string> texts;
  for (size_t i = 0; i < begins.size(); ++i)
    texts.push_back(devices[i] + (i > 0 ? '@' + cuts[begins[i] - 1] : ""));
  return texts;
}

}  // namespace tare
