// Shows the progress of a sweep and its runs on a terminal.
#pragma once

#include <iosfwd>
#include <sstream>
#include <string>

#include "tare/sweep/coordinator.h"

namespace tare::cli {

/// Returns a line of counts and the best run, then a row for each run that is running; lines of at
/// most `width` characters.
[[nodiscard]] std::string text(const sweep::SweepProgress& progress, const std::string& metric,
                               size_t width);

/// Keeps that text at the foot of a terminal, below the lines that it is given.
class LiveTable {
 public:
  /// Shows the runs with a column for `metric`. `terminal` must outlive this.
  LiveTable(std::ostream& terminal, std::string metric);
  ~LiveTable();  ///< removes the text and leaves the lines
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;

  /// Returns the stream for lines that stay.
  [[nodiscard]] std::ostream& lines() { return lines_; }
  void draw(const sweep::SweepProgress& progress);  ///< replaces the text at the foot

 private:
  void clear();

  std::ostream& terminal_;
  std::string metric_;
  std::ostringstream lines_;
  long drawn_lines_ = 0;
};

}  // namespace tare::cli
