// The terminal that a program prints to: its width, and colour where it is welcome.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

namespace tare {

/// Returns the columns of the terminal behind standard output; 80 if it is no terminal or does not
/// report them.
[[nodiscard]] size_t terminal_width();

/// Whether a standard stream, 1 for output and 2 for errors, is a terminal that understands control
/// sequences: TERM is not "dumb".
[[nodiscard]] bool on_terminal(int descriptor = 1);

/// Stands for the width of text that is not fitted to a terminal.
inline constexpr size_t kAnyWidth = static_cast<size_t>(-1);
/// Returns the columns that lines for `out` may have: those of the terminal if `out` is std::cout
/// on one, else kAnyWidth, so that what is written to a file does not depend on a window.
[[nodiscard]] size_t width_for(const std::ostream& out);

/// Whether NO_COLOR is unset or empty (no-color.org).
[[nodiscard]] bool colour_allowed();

/// Lists the ways in which text is emphasised on a terminal.
enum class Tint { bold, dim, red, green, yellow };

/// Returns `text` between the control sequences of a tint, or as it is unless `on`.
[[nodiscard]] std::string tinted(const std::string& text, Tint tint, bool on);
/// Whether what is written to `out` may be tinted: it is std::cout, on a terminal, and colour is
/// allowed.
[[nodiscard]] bool takes_colour(const std::ostream& out);

/// Returns `text` broken between words into lines of at most `width` columns: the first one begins
/// at the column `start`, the others behind `indent` blanks. A longer word has a line of its own.
/// Blanks between words become one; a number stays with its unit. No newline at the end.
[[nodiscard]] std::string wrapped(const std::string& text, size_t width, size_t start,
                                  size_t indent);

/// Returns a line for `out`: wrapped to the terminal's width, further lines two columns to the
/// right of its first word, if `out` is std::cout on a terminal, else as it is, so that it can be
/// parsed.
[[nodiscard]] std::string fitted(const std::string& line, const std::ostream& out);
/// Returns each line of `text` by itself, with a newline.
[[nodiscard]] std::string fitted_lines(const std::string& text, const std::ostream& out);

}  // namespace tare
