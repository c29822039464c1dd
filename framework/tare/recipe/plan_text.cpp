// Writes the plan of a recipe as a table and as JSON.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/table.h"
#include "tare/config/node.h"
#include "tare/recipe/recipe_plan.h"
#include "tare/recipe/scale_text.h"
#include "tare/report/json_fields.h"
#include "tare/trace/target.h"

namespace tare {
namespace {

using nlohmann::ordered_json;

const std::vector<TableColumn>& columns() {
  static const std::vector<TableColumn> all{
      {.head = "phase", .whole = true},     {.head = "batch", .figure = true},
      {.head = "start", .figure = true},    {.head = "planned peak", .figure = true},
      {.head = "reserved", .figure = true}, {.head = "largest batch", .figure = true},
      {.head = "where", .whole = true}};
  return all;
}

/// Whether the weights alone do not fit, so that the peak above them was not computed.
bool stops_at_weights(const MemoryPlan& phase) {
  return phase.peak_bytes == 0 && !phase.not_counted.empty();
}

TableRow row_of(const MemoryPlan& p) {
  const auto bytes = [&](int64_t n) { return p.known() ? format_bytes(n) : std::string("?"); };
  return {p.name,
          std::to_string(p.batch),
          bytes(p.start_bytes),
          stops_at_weights(p) ? "?" : bytes(p.peak_bytes),
          bytes(p.reserved_bytes),
          p.known() ? format_count(p.largest_batch) : "?",
          p.at};
}

std::string phase_table(const RecipePlan& plan, size_t width) {
  std::vector<TableRow> rows;
  for (const auto& phase : plan.phases) rows.push_back(row_of(phase));
  return text_table(columns(), rows, width);
}

std::string advice_of(const MemoryPlan& phase) {
  std::ostringstream out;
  out << phase.name << ": ";
  if (!phase.known()) {
    out << "cannot be predicted: " << phase.reason << '\n';
    return out.str();
  }
  if (stops_at_weights(phase)) {
    out << "the weights alone take " << format_bytes(phase.start_bytes) << '\n';
  } else {
    out << phase.categories.str() << '\n';
  }
  for (const StagePlan& stage : phase.stages)
    out << "  " << stage.device << ", " << stage.groups << ": start "
        << format_bytes(stage.start_bytes) << ", planned peak " << format_bytes(stage.peak_bytes)
        << ", reserved " << format_bytes(stage.reserved_bytes) << " of "
        << format_bytes(stage.capacity_bytes) << (stage.fits ? "" : ": does not fit") << '\n';
  if (phase.padding)
    out << "  planned for a batch as long as its longest sample: " << phase.padding->str() << '\n';
  if (!phase.not_counted.empty())
    out << "  at least: without " << listed(phase.not_counted) << '\n';
  if (phase.at_most_bytes > phase.peak_bytes)
    out << "  at most: " << format_bytes(phase.at_most_bytes)
        << ", what the card has: cuDNN takes a smaller workspace where memory is short\n";
  if (phase.method == "probe") out << "  by a probe of few samples: " << phase.reason << '\n';
  if (!phase.recompute.empty()) out << "  recomputes " << listed(phase.recompute) << '\n';
  if (phase.in_micro_batches) {
    out << (phase.returns_cache ? "  fits whole only while the allocator returns its cache in each "
                                  "step: runs in micro-batches of "
                                : "  does not fit whole: runs in micro-batches of ")
        << format_count(phase.largest_micro_batch) << ", ";
    if (phase.largest_validation_micro_batch != phase.largest_micro_batch &&
        phase.largest_validation_micro_batch < phase.batch)
      out << "validates in micro-batches of " << format_count(phase.largest_validation_micro_batch)
          << ", ";
    out << "peak " << format_bytes(phase.micro_batch_peak_bytes) << '\n';
  } else if (!phase.fits) {
    out << "  does not fit";
    if (phase.largest_micro_batch > 0)
      out << "; largest micro-batch of this batch: " << format_count(phase.largest_micro_batch);
    out << '\n';
  } else if (phase.returns_cache) {
    out << "  the allocator returns its cache in each step, which waits for the card\n";
  }
  for (const auto& saving : phase.savings) {
    out << "  with " << saving.change << ": peak " << (saving.at_least ? "at least " : "")
        << format_bytes(saving.peak_bytes) << '\n';
  }
  return out.str();
}

ordered_json to_json(const MemoryPlan& phase) {
  ordered_json categories = ordered_json::object();
  for (size_t i = 0; i < kCategories; ++i) {
    const auto category = static_cast<Category>(i);
    if (phase.categories[category] != 0)
      categories[to_string(category)] = phase.categories[category];
  }
  ordered_json savings = ordered_json::array();
  for (const auto& s : phase.savings)
    savings.push_back(
        {{"change", s.change}, {"peak_bytes", s.peak_bytes}, {"at_least", s.at_least}});
  ordered_json value{{"name", phase.name}, {"batch", phase.batch}};
  const auto put = [&](const char* key, const ordered_json& figure) {
    value[key] = phase.known() ? figure : ordered_json();
  };
  put("start_bytes", phase.start_bytes);
  put("peak_bytes", phase.peak_bytes);
  put("at_most_bytes", phase.at_most_bytes > 0 ? ordered_json(phase.at_most_bytes) : nullptr);
  put("reserved_bytes", phase.reserved_bytes);
  put("categories", categories);
  put("at", phase.at);
  put("fits", phase.fits);
  put("returns_cache", phase.returns_cache);
  put("in_micro_batches", phase.in_micro_batches);
  if (phase.in_micro_batches) {
    put("micro_batch_peak_bytes", phase.micro_batch_peak_bytes);
    put("largest_validation_micro_batch", phase.largest_validation_micro_batch);
  }
  if (!phase.recompute.empty()) put("recompute", phase.recompute);
  put("largest_batch", phase.largest_batch);
  put("largest_micro_batch", phase.largest_micro_batch);
  put("savings", savings);
  if (!phase.stages.empty()) {
    ordered_json stages = ordered_json::array();
    for (const StagePlan& stage : phase.stages)
      stages.push_back({{"device", stage.device},
                        {"groups", stage.groups},
                        {"capacity_bytes", stage.capacity_bytes},
                        {"start_bytes", stage.start_bytes},
                        {"peak_bytes", stage.peak_bytes},
                        {"reserved_bytes", stage.reserved_bytes},
                        {"fits", stage.fits}});
    put("stages", stages);
  }
  value["method"] = phase.method;
  if (!phase.reason.empty()) value["reason"] = phase.reason;
  if (!phase.not_counted.empty()) value["not_counted"] = phase.not_counted;
  if (const auto& padding = phase.padding)
    value["padding"] = {
        {"shortest", padding->shortest}, {"longest", padding->longest}, {"share", padding->share}};
  return value;
}

std::string text_of(const ExportPlan& plan) {
  const std::string what = plan.reason.empty()
                               ? "takes at most " + format_bytes(plan.at_most_bytes) +
                                     " of the host, above what the last phase leaves"
                               : "cannot be predicted: " + plan.reason;
  return "export: " + listed(plan.files) + ' ' + what + '\n';
}

ordered_json to_json(const ExportPlan& plan) {
  ordered_json value{{"files", plan.files}, {"at_most_bytes", nullptr}};
  if (plan.reason.empty())
    value["at_most_bytes"] = plan.at_most_bytes;
  else
    value["reason"] = plan.reason;
  return value;
}

const char* outcome(const RecipePlan& plan) {
  if (!plan.runs()) return "does not fit";
  if (!plan.known()) return "unknown: a phase cannot be predicted";
  return plan.fits() ? "fits" : "fits in micro-batches";
}

}  // namespace

void print(std::ostream& out, const RecipePlan& plan) {
  out << fitted(plan.name + " on " + plan.device + ", which has " +
                    plan::capacity_text(plan.capacity_bytes, plan.total_bytes) +
                    (plan.ranks > 1 ? ", for one of " + std::to_string(plan.ranks) + " ranks" : ""),
                out)
      << "\n\n"
      << phase_table(plan, width_for(out)) << '\n';
  for (const auto& phase : plan.phases) out << fitted_lines(advice_of(phase), out);
  if (plan.exported) out << fitted_lines(text_of(*plan.exported), out);
  print(out, plan.scales);
  for (const auto& schedule : plan.schedules) out << '\n' << schedule.str(width_for(out));
  out << '\n' << outcome(plan) << '\n';
}

std::string to_json(const RecipePlan& plan) {
  ordered_json phases = ordered_json::array();
  for (const auto& phase : plan.phases) phases.push_back(to_json(phase));
  for (size_t i = 0; i < plan.schedules.size(); ++i)
    phases[i]["schedule"] = report::json_of(plan.schedules[i].table);
  for (size_t i = 0; i < plan.scales.size(); ++i) phases[i]["scale"] = to_json(plan.scales[i]);
  ordered_json value{
      {"name", plan.name},
      {"device", plan.device},
      {"capacity_bytes", plan.capacity_bytes},
      {"fits", plan.known() || !plan.fits() ? ordered_json(plan.fits()) : ordered_json()},
      {"largest_batch", plan.largest_batch()},
      {"largest_micro_batch", plan.largest_micro_batch()},
      {"method", plan.method()},
      {"phases", phases}};
  if (plan.ranks > 1) value["ranks"] = plan.ranks;
  if (plan.exported) value["export"] = to_json(*plan.exported);
  return value.dump(2);
}

}  // namespace tare
