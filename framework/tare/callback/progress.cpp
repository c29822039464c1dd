// Prints the epochs table and draws the progress line.
#include "tare/callback/progress.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/terminal.h"

namespace tare {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(10);
constexpr size_t kColumn = 10;  // least width of a column
constexpr size_t kBar = 22;
constexpr double kFirstGuess = 1;  // seconds of a fit before its end is estimated

std::string right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

/// Returns the number in as many characters as a column has at least.
std::string number(double value) {
  if (std::isnan(value)) return "nan";  // printf writes the sign of some as well
  char text[32];
  for (int decimals = 6; decimals >= 0; --decimals) {
    const int size = std::snprintf(text, sizeof text, "%.*f", decimals, value);
    if (size > 0 && static_cast<size_t>(size) <= kColumn) return text;
  }
  std::snprintf(text, sizeof text, "%.3e", value);
  return text;
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

size_t width_of(const std::string& name) { return std::max(kColumn, name.size()); }

// The cells of a line: the first ones, those of the metrics as far as they fit, the time.
std::string in_columns(std::string line, const EpochRow& row, const std::vector<std::string>& cells,
                       const std::string& time, size_t width) {
  size_t space = width - std::min(width, line.size() + 2 + time.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t column = 2 + width_of(printable(row.metrics[i].name));
    if (column > space) break;
    line += right(cells[i], column);
    space -= column;
  }
  return line + "  " + time;
}

double loss_of(const EpochRow& row) {
  return std::isnan(row.valid_loss) ? row.train_loss : row.valid_loss;
}

std::string epoch_of(const FitContext& context) {
  if (context.epochs >= kMostEpochs) return formatted("epoch %" PRId64, context.epoch + 1);
  return formatted("epoch %" PRId64 "/%" PRId64, context.epoch + 1, context.epochs);
}

std::string batch_of(const FitContext& context) {
  return formatted("batch %" PRId64 "/%" PRId64, context.batch + 1, context.batches);
}

std::string plain_line(const FitContext& context, double samples_per_s) {
  return epoch_of(context) + "  " + batch_of(context) +
         formatted("  loss %.4f  lr %.2e  %.0f samples/s", context.loss_value(), context.lr,
                   samples_per_s);
}

// The first pieces that fit.
std::string fitting(const std::vector<std::string>& pieces, size_t width) {
  std::string line;
  for (const auto& piece : pieces) {
    if (line.size() + 2 + piece.size() > width && !line.empty()) break;
    line += (line.empty() ? "" : "  ") + piece;
  }
  line.resize(std::min(line.size(), width));
  return line;
}

}  // namespace

std::string progress_line(const FitContext& context, double seconds_left, double samples_per_s,
                          size_t width) {
  const double share = static_cast<double>(context.batch + 1) /
                       static_cast<double>(std::max<int64_t>(context.batches, 1));
  return fitting(
      {epoch_of(context), progress_bar(share, kBar),
       seconds_left < 0 ? batch_of(context)
                        : format_seconds(std::max(std::ceil(seconds_left), 1.0)) + " left",
       formatted("loss %.4f", context.loss_value()), formatted("lr %.2e", context.lr),
       formatted("%.0f samples/s", samples_per_s)},
      width);
}

std::string epoch_header(const EpochRow& row, size_t width) {
  std::vector<std::string> cells;
  for (const auto& m : row.metrics) cells.push_back(printable(m.name));
  return in_columns(
      right("epoch", 5) + "  " + right("train_loss", kColumn) + "  " + right("valid_loss", kColumn),
      row, cells, right("time", 9), width);
}

std::string epoch_line(const EpochRow& row, size_t width) {
  std::vector<std::string> cells;
  for (const auto& m : row.metrics) cells.push_back(number(m.value));
  return in_columns(right(std::to_string(row.epoch), 5) + "  " +
                        right(number(row.train_loss), kColumn) + "  " +
                        right(number(row.valid_loss), kColumn),
                    row, cells, right(format_seconds(row.seconds), 9), width);
}

std::string validation_line(const ValidationRow& row, size_t width) {
  std::vector<std::string> pieces{formatted("step %" PRId64, row.step),
                                  "valid_loss " + number(row.valid_loss)};
  for (const auto& m : row.metrics) pieces.push_back(printable(m.name) + ' ' + number(m.value));
  return fitting(pieces, width);
}

const EpochRow* best_epoch(const std::vector<EpochRow>& rows) {
  const EpochRow* best = nullptr;
  for (const EpochRow& row : rows)
    if (!std::isnan(loss_of(row)) && (best == nullptr || loss_of(row) < loss_of(*best)))
      best = &row;
  return best;
}

std::string progress_bar(double share, size_t columns) {
  const size_t inner = columns - 2;
  const auto done = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(inner));
  std::string bar(done, '=');
  if (done < inner) bar += '>' + std::string(inner - done - 1, ' ');
  return '[' + bar + ']';
}

Progress::Progress(std::ostream& out, Style style) : out_(out) {
  terminal_ = style == Style::terminal ||
              (style == Style::automatic && &out == &std::cout && on_terminal());
}

Action Progress::before_fit(FitContext&) {
  header_due_ = true;
  best_ = std::numeric_limits<double>::infinity();
  fit_start_ = Clock::now();
  batches_ = 0;
  return Action::proceed;
}

Action Progress::before_epoch(FitContext&) {
  epoch_start_ = last_draw_ = Clock::now();
  samples_ = 0;
  return Action::proceed;
}

Action Progress::after_batch(FitContext& context) {
  samples_ += context.data.size();
  ++batches_;
  const auto now = Clock::now();
  if (context.loss.defined() &&  // else the batch was skipped
      now - last_draw_ >= (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine)))
    draw(context, now);
  return Action::proceed;
}

// Of the whole fit, at the pace so far; negative: not known yet.
double Progress::seconds_left(const FitContext& context, Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - fit_start_).count();
  if (seconds < kFirstGuess || batches_ == 0) return -1;
  if (context.epochs >= kMostEpochs) return -1;  // the clock alone ends the fit
  const int64_t to_do = context.steps - context.epoch * context.batches - context.batch - 1;
  return seconds / static_cast<double>(batches_) * static_cast<double>(std::max<int64_t>(to_do, 0));
}

void Progress::draw(const FitContext& context, Clock::time_point now) {
  last_draw_ = now;
  const double seconds = std::chrono::duration<double>(now - epoch_start_).count();
  const double pace = static_cast<double>(samples_) / std::max(seconds, 1e-9);
  if (terminal_)
    redraw(progress_line(context, seconds_left(context, now), pace, terminal_width() - 1));
  else
    out_ << plain_line(context, pace) << '\n' << std::flush;
}

Action Progress::before_validate(FitContext& context) {
  if (terminal_) redraw(fitting({epoch_of(context), "validating"}, terminal_width() - 1));
  return Action::proceed;
}

Action Progress::after_validate(FitContext& context) {
  if (!context.inside_epoch) return Action::proceed;
  erase();
  out_ << validation_line({.step = context.step,
                           .valid_loss = context.row.valid_loss,
                           .metrics = context.row.metrics},
                          terminal_ ? terminal_width() - 1 : kAnyWidth)
       << '\n'
       << std::flush;
  return Action::proceed;
}

void Progress::redraw(const std::string& line) {
  out_ << "\r\033[K" << line << std::flush;
  line_drawn_ = true;
}

void Progress::erase() {
  if (line_drawn_) out_ << "\r\033[K";
  line_drawn_ = false;
}

Action Progress::after_epoch(FitContext& context) {
  erase();
  const EpochRow& row = context.row;
  const size_t width = terminal_ ? terminal_width() - 2 : kAnyWidth;  // a star behind a row
  const bool tint = terminal_ && colour_allowed();
  if (std::exchange(header_due_, false))
    out_ << tinted(epoch_header(row, width), Tint::bold, tint) << '\n';
  const bool is_best = loss_of(row) < best_;
  if (is_best) best_ = loss_of(row);
  const std::string line = epoch_line(row, width);
  out_ << (terminal_ && is_best ? tinted(line + " *", Tint::green, tint) : line) << '\n'
       << std::flush;
  return Action::proceed;
}

Action Progress::after_fit(FitContext&) {
  erase();
  return Action::proceed;
}

}  // namespace tare
