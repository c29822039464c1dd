#include "tare/cli/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/cli/table.h"
#include "tare/config/scalar.h"

namespace tare::cli {
namespace {

constexpr size_t kMaxRows = 16;  // a terminal of 24 lines shows the rest too

std::string figure(double value) { return std::isnan(value) ? "-" : config::number_text(value); }

}  // namespace

std::string text(const sweep::SweepProgress& progress, const std::string& metric) {
  std::string all = std::to_string(progress.complete) + " complete, " +
                    (progress.pruned > 0 ? std::to_string(progress.pruned) + " pruned, " : "") +
                    std::to_string(progress.failed) + " failed, " +
                    std::to_string(progress.running.size()) + " running, " +
                    std::to_string(progress.waiting) + " waiting";
  if (!progress.best.empty())
    all +=
        "; best " + printable(metric) + ' ' + figure(progress.best_value) + " of " + progress.best;
  all += '\n';
  std::vector<Row> rows;
  for (const auto& run : progress.running) {
    if (rows.size() == kMaxRows) break;
    rows.push_back({run.name, std::to_string(run.epochs), figure(run.value),
                    format_bytes(run.bytes), format_seconds(run.seconds)});
  }
  if (rows.empty()) return all;
  all += table(
      {{"run"}, {"epochs", true}, {printable(metric), true}, {"reserved", true}, {"time", true}},
      rows);
  const size_t more = progress.running.size() - rows.size();
  return more == 0 ? all : all + "and " + std::to_string(more) + " more\n";
}

LiveTable::LiveTable(std::ostream& terminal, std::string metric)
    : terminal_(terminal), metric_(std::move(metric)) {}

LiveTable::~LiveTable() {
  clear();
  terminal_.flush();
}

void LiveTable::clear() {
  if (drawn_lines_ > 0) terminal_ << "\x1b[" << drawn_lines_ << "F\x1b[J";
  drawn_lines_ = 0;
  terminal_ << lines_.str();
  lines_.str({});
}

void LiveTable::draw(const sweep::SweepProgress& progress) {
  clear();
  const std::string now = text(progress, metric_);
  drawn_lines_ = std::ranges::count(now, '\n');
  terminal_ << now << std::flush;
}

}  // namespace tare::cli
