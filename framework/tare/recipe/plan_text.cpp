#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tare/base/bytes.h"
#include "tare/recipe/plan.h"

namespace tare {
namespace {

using nlohmann::ordered_json;

std::string column(const std::string& text, size_t width, bool right = true) {
  const std::string pad(width > text.size() ? width - text.size() : 0, ' ');
  return right ? pad + text : text + pad;
}

void print_row(std::ostream& out, size_t width, const std::string& name, const std::string& batch,
               const std::string& start, const std::string& peak, const std::string& reserved,
               const std::string& largest, const std::string& at) {
  out << column(name, width, false) << column(batch, 8) << column(start, 12) << column(peak, 14)
      << column(reserved, 12) << column(largest, 16) << "  " << at << '\n';
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

void print_advice(std::ostream& out, const MemoryPlan& phase) {
  out << phase.name << ": ";
  if (!phase.known()) {
    out << "cannot tell: " << phase.reason << '\n';
    return;
  }
  out << phase.categories.str() << '\n';
  if (phase.method == "probe") out << "  by a probe of few samples: " << phase.reason << '\n';
  if (!phase.recompute.empty()) out << "  recomputes " << joined(phase.recompute) << '\n';
  if (phase.in_micro_batches) {
    out << "  does not fit whole: runs in micro-batches of "
        << format_count(phase.largest_micro_batch) << ", ";
    if (phase.largest_validation_micro_batch != phase.largest_micro_batch)
      out << "validates in micro-batches of " << format_count(phase.largest_validation_micro_batch)
          << ", ";
    out << "peak " << format_bytes(phase.micro_batch_peak_bytes) << '\n';
  } else if (!phase.fits) {
    out << "  does not fit";
    if (phase.largest_micro_batch > 0)
      out << "; largest micro-batch of this batch: " << format_count(phase.largest_micro_batch);
    out << '\n';
  }
  for (const auto& saving : phase.savings) {
    out << "  with " << saving.change << ": peak " << (saving.at_least ? "at least " : "")
        << format_bytes(saving.peak_bytes) << '\n';
  }
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
  put("reserved_bytes", phase.reserved_bytes);
  put("categories", categories);
  put("at", phase.at);
  put("fits", phase.fits);
  put("in_micro_batches", phase.in_micro_batches);
  if (phase.in_micro_batches) {
    put("micro_batch_peak_bytes", phase.micro_batch_peak_bytes);
    put("largest_validation_micro_batch", phase.largest_validation_micro_batch);
  }
  if (!phase.recompute.empty()) put("recompute", phase.recompute);
  put("largest_batch", phase.largest_batch);
  put("largest_micro_batch", phase.largest_micro_batch);
  put("savings", savings);
  value["method"] = phase.method;
  if (!phase.reason.empty()) value["reason"] = phase.reason;
  return value;
}

}  // namespace

void print(std::ostream& out, const RecipePlan& plan) {
  out << plan.name << " on " << plan.device << ", which has " << format_bytes(plan.capacity_bytes)
      << "\n\n";
  size_t width = 5;
  for (const auto& phase : plan.phases) width = std::max(width, phase.name.size());
  print_row(out, width, "phase", "batch", "start", "planned peak", "reserved", "largest batch",
            "where");
  for (const auto& p : plan.phases) {
    const auto bytes = [&](int64_t n) { return p.known() ? format_bytes(n) : std::string("?"); };
    print_row(out, width, p.name, std::to_string(p.batch), bytes(p.start_bytes),
              bytes(p.peak_bytes), bytes(p.reserved_bytes),
              p.known() ? format_count(p.largest_batch) : "?", p.at);
  }
  out << '\n';
  for (const auto& phase : plan.phases) print_advice(out, phase);
  out << '\n'
      << (plan.fits()   ? "fits"
          : plan.runs() ? "fits in micro-batches"
                        : "does not fit")
      << '\n';
}

std::string to_json(const RecipePlan& plan) {
  ordered_json phases = ordered_json::array();
  for (const auto& phase : plan.phases) phases.push_back(to_json(phase));
  return ordered_json{{"name", plan.name},
                      {"device", plan.device},
                      {"capacity_bytes", plan.capacity_bytes},
                      {"fits", plan.fits()},
                      {"largest_batch", plan.largest_batch()},
                      {"largest_micro_batch", plan.largest_micro_batch()},
                      {"method", plan.method()},
                      {"phases", phases}}
      .dump(2);
}

}  // namespace tare
