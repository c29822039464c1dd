#include "tare/callback/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iostream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/terminal.h"

namespace tare {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(10);
constexpr size_t kColumn = 10;  // least width of a column

std::string right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

size_t width_of(const std::string& name) { return std::max(kColumn, name.size()); }

}  // namespace

std::string epoch_header(const EpochRow& row) {
  std::string line =
      right("epoch", 5) + "  " + right("train_loss", kColumn) + "  " + right("valid_loss", kColumn);
  for (const auto& m : row.metrics) line += "  " + right(printable(m.name), width_of(m.name));
  return line + "  " + right("time", 9);
}

std::string epoch_line(const EpochRow& row) {
  std::string line = right(std::to_string(row.epoch), 5) + "  " +
                     right(number(row.train_loss), kColumn) + "  " +
                     right(number(row.valid_loss), kColumn);
  for (const auto& m : row.metrics) line += "  " + right(number(m.value), width_of(m.name));
  return line + "  " + right(format_seconds(row.seconds), 9);
}

Progress::Progress(std::ostream& out, Style style) : out_(out) {
  terminal_ = style == Style::terminal ||
              (style == Style::automatic && &out == &std::cout && ::isatty(STDOUT_FILENO) == 1);
}

Action Progress::before_fit(FitContext&) {
  header_due_ = true;
  return Action::proceed;
}

Action Progress::before_epoch(FitContext&) {
  epoch_start_ = last_draw_ = Clock::now();
  samples_ = 0;
  return Action::proceed;
}

Action Progress::after_batch(FitContext& context) {
  samples_ += context.data.size();
  const auto now = Clock::now();
  if (context.loss.defined() &&  // else the batch was skipped
      now - last_draw_ >= (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine)))
    draw(context, now);
  return Action::proceed;
}

void Progress::draw(const FitContext& context, Clock::time_point now) {
  last_draw_ = now;
  const double seconds = std::chrono::duration<double>(now - epoch_start_).count();
  char text[160];
  std::snprintf(text, sizeof text,
                "epoch %" PRId64 "/%" PRId64 "  batch %" PRId64 "/%" PRId64
                "  loss %.4f  lr %.2e  %.0f samples/s",
                context.epoch + 1, context.epochs, context.batch + 1, context.batches,
                context.loss_value(), context.lr,
                static_cast<double>(samples_) / std::max(seconds, 1e-9));
  std::string line = text;
  if (!terminal_) {
    out_ << line << '\n' << std::flush;
    return;
  }
  line.resize(std::min(line.size(), terminal_width() - 1));
  out_ << "\r\033[K" << line << std::flush;
  line_drawn_ = true;
}

void Progress::erase() {
  if (line_drawn_) out_ << "\r\033[K";
  line_drawn_ = false;
}

Action Progress::after_epoch(FitContext& context) {
  erase();
  if (header_due_) out_ << epoch_header(context.row) << '\n';
  header_due_ = false;
  out_ << epoch_line(context.row) << '\n' << std::flush;
  return Action::proceed;
}

Action Progress::after_fit(FitContext&) {
  erase();
  return Action::proceed;
}

}  // namespace tare
