// Draws the live table of a sweep, fitted to the terminal.
#include "tare/cli/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/table.h"
#include "tare/base/terminal.h"
#include "tare/config/scalar.h"

namespace tare::cli {
namespace {

constexpr size_t kMaxRows = 16;  // a terminal of 24 lines shows the rest too
constexpr size_t kFigures = 44;  // columns of the figures, about

std::string figure(double value) { return std::isnan(value) ? "-" : config::number_text(value); }

/// Cuts text to at most so many bytes, and whole characters of UTF-8.
std::string cut(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80U) --bytes;
  return std::string(text.substr(0, bytes));
}

/// Returns the beginning, which distinguishes runs by their numbers.
std::string shortened(const std::string& name, size_t width) {
  return name.size() <= width ? name : cut(name, width - 2) + "..";
}

/// Lines that are cut: one that wraps would be two for the terminal.
std::string within(const std::string& text, size_t width) {
  std::string all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    all += cut(std::string_view(text).substr(at, end - at), width) + '\n';
    at = end + 1;
  }
  return all;
}

}  // namespace

std::string text(const sweep::SweepProgress& progress, const std::string& metric, size_t width) {
  std::string all = std::to_string(progress.complete) + " complete, " +
                    (progress.pruned > 0 ? std::to_string(progress.pruned) + " pruned, " : "") +
                    std::to_string(progress.failed) + " failed, " +
                    std::to_string(progress.running.size()) + " running, " +
                    std::to_string(progress.waiting) + " waiting";
  if (!progress.best.empty())
    all +=
        "; best " + printable(metric) + ' ' + figure(progress.best_value) + " of " + progress.best;
  all += '\n';
  std::vector<TableRow> rows;
  for (const auto& run : progress.running) {
    if (rows.size() == kMaxRows) break;
    rows.push_back({shortened(run.name, width > 2 * kFigures ? width - kFigures : kFigures),
                    std::to_string(run.epochs), figure(run.value), format_bytes(run.bytes),
                    format_seconds(run.seconds)});
  }
  if (rows.empty()) return within(all, width);
  all += text_table(
      {{"run"}, {"epochs", true}, {printable(metric), true}, {"reserved", true}, {"time", true}},
      rows);
  const size_t more = progress.running.size() - rows.size();
  if (more > 0) all += "and " + std::to_string(more) + " more\n";
  return within(all, width);
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
  const std::string now = text(progress, metric_, terminal_width());
  drawn_lines_ = std::ranges::count(now, '\n');
  terminal_ << now << std::flush;
}

}  // namespace tare::cli
