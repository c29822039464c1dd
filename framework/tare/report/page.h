// The frame of an HTML page: head, style, sections. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tare::report {

/// Shows a figure that stands out: "time", "1 min 52 s".
struct Tile {
  std::string name{}, value{};
};

/// Returns tiles of figures. All functions here escape their texts, except `content`, which is
/// HTML.
[[nodiscard]] std::string tiles(const std::vector<Tile>& all);
/// Returns a section with a heading; "" if `content` is empty.
[[nodiscard]] std::string section(std::string_view heading, std::string_view content);
/// Returns a chart with a caption and a legend; "" if `chart` is empty.
[[nodiscard]] std::string chart_with(std::string_view caption, const std::string& chart,
                                     const std::string& legend = {});
[[nodiscard]] std::string note(std::string_view text);
/// Returns text of several lines that opens on a click.
[[nodiscard]] std::string folded(std::string_view heading, std::string_view text);
/// Returns the whole document. Its policy forbids scripts and every request; pictures stand in the
/// page. `style`: rules beside those of every page.
[[nodiscard]] std::string page(std::string_view title, std::string_view subtitle,
                               std::string_view content, std::string_view style = {});

}  // namespace tare::report
