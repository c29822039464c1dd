// Plots of a run's metric by epoch as image files: SVG for pages, PNG for everything else.
//
// Pure functions of values; who writes the files does so through base/io.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tare::report {

/// Holds the curves of a plot: values by epoch, the first one of epoch 1; either list may be empty.
/// Values that are NaN, infinite or beyond 1e100 leave a gap.
struct MetricPlot {
  std::string metric{};                  ///< any text; cut in the image where it is too long
  std::vector<double> train{}, valid{};  ///< of the two splits
};

/// Returns the title "Training and Validation Loss". A name that has no capital gets one.
[[nodiscard]] std::string plot_title(std::string_view metric);

/// Returns an SVG file of 720 by 432 pixels on white, with the title and the last values as its
/// text alternative. Without a value the picture has a note. The y axis is logarithmic in the cases
/// of line_chart().
[[nodiscard]] std::string plot_svg(const MetricPlot& plot);

/// Returns the image as a PNG file of 720 by 432 pixels. Throws StateError where
/// Cairo cannot draw.
[[nodiscard]] std::string plot_png(const MetricPlot& plot);

/// Returns the name of the metric's files without extension, as io::checked_name() wants it: the
/// metric itself where that is safe, else with '_' for what is not and a hash, so that other
/// metrics have other names.
[[nodiscard]] std::string plot_file_name(std::string_view metric);

}  // namespace tare::report
