// Shades and draws the lines of many runs.
#include "tare/report/strands.h"

#include <algorithm>
#include <cmath>

#include "tare/report/chart.h"
#include "tare/report/markup.h"

namespace tare::report {
namespace {

constexpr size_t kBestColour = 2;
constexpr size_t kFew = 200;                    // strands that have names and full strength
constexpr size_t kTitleBytes = 2 * kNameBytes;  // a name and a value

std::string shade_class(double shade) {
  if (std::isnan(shade)) return " grey";
  const double scaled = std::clamp(shade, 0.0, 1.0) * static_cast<double>(kShades - 1);
  return " q" + std::to_string(std::llround(scaled));
}

std::string path_of(const Strand& strand, bool named) {
  std::string text =
      std::string("<path") + (strand.dashed ? " class=\"dash\"" : "") + " d=\"" + strand.path + '"';
  return text + (named ? "><title>" + escaped(strand.name, kTitleBytes) + "</title></path>" : "/>");
}

std::string best_path(const Strand& strand) {
  const std::string path = "d=\"" + strand.path + "\"";
  return "<path class=\"halo\" " + path + "/><path class=\"line best s" +
         std::to_string(kBestColour) + "\" " + path + "><title>" +
         escaped(strand.name, kTitleBytes) + "</title></path>";
}

std::string scale() {
  constexpr int kWidth = 14;
  std::string text = "<svg width=\"" + std::to_string(kWidth * static_cast<int>(kShades)) +
                     "\" height=\"12\" aria-hidden=\"true\">";
  for (size_t i = 0; i < kShades; ++i)
    text += "<path class=\"swatch q" + std::to_string(i) + "\" d=\"M" +
            std::to_string(kWidth * static_cast<int>(i)) + " 6h" + std::to_string(kWidth) + "\"/>";
  return text + "</svg>";
}

std::string line_item(const std::string& classes, const std::string& name) {
  return "<li><svg width=\"18\" height=\"12\" aria-hidden=\"true\"><path class=\"line " + classes +
         "\" d=\"M0 6h18\"/></svg>" + name + "</li>";
}

}  // namespace

Shading::Shading(const std::vector<const SweepRun*>& runs, bool maximize)
    : sign_(maximize ? -1 : 1) {
  for (const auto* run : runs) costs_.push_back(sign_ * run->value);
  std::ranges::sort(costs_);
  if (costs_.empty()) costs_.push_back(NAN);
  const auto complete =
      std::ranges::find_if(runs, [](const auto* run) { return is_complete(*run); });
  if (complete != runs.end()) best_run_ = *complete;
}

double Shading::worse_than(double cost) const {
  return static_cast<double>(costs_.end() - std::ranges::upper_bound(costs_, cost));
}

double Shading::shade(double value) const {
  if (!std::isfinite(value)) return NAN;
  const double most = worse_than(costs_.front());
  return most > 0 ? worse_than(sign_ * value) / most : 1;
}

std::string drawn(std::vector<Strand> strands) {
  const bool few = strands.size() <= kFew;
  std::ranges::stable_sort(strands, {}, [](const Strand& strand) {
    return std::isnan(strand.shade) ? -1 : strand.shade;
  });
  std::string text = std::string("<g class=\"strands") + (few ? "" : " many") + "\">", group, best;
  bool open = false;
  for (const auto& strand : strands) {
    if (strand.best) best += best_path(strand);
    if (strand.best) continue;
    const std::string shade = shade_class(strand.shade);
    if (!open || shade != group)
      text += std::string(open ? "</g>" : "") + "<g class=\"line" + shade + "\">";
    open = true;
    group = shade;
    text += path_of(strand, few);
  }
  return text + (open ? "</g>" : "") + "</g>" + best;
}

std::string strand_legend(const std::vector<Strand>& all, const Shading& shading) {
  std::string text = "<ul class=\"legend\">";
  if (std::abs(shading.best() - shading.worst()) > 0)
    text += "<li><span>worst " + figure(shading.worst()) + "</span>" + scale() + "<span>best " +
            figure(shading.best()) + "</span></li>";
  if (std::ranges::any_of(all, &Strand::best))
    text += line_item("best s" + std::to_string(kBestColour), "best run");
  if (std::ranges::any_of(all, &Strand::dashed)) text += line_item("q4 dash", "pruned");
  if (std::ranges::any_of(all, [](const Strand& s) { return std::isnan(s.shade); }))
    text += line_item("grey", "no value at the end");
  return text + "</ul>";
}

std::string strand_style() {
  const char* light[kShades] = {"#4fc36a", "#2caf7e", "#219a89", "#26848d", "#2e6e8e",
                                "#39578b", "#423e83", "#482072", "#440154"};
  const char* dark[kShades] = {"#33648d", "#2a798e", "#228e8c", "#22a286", "#36b678",
                               "#5cc762", "#8ed544", "#c7e026", "#fde725"};
  std::string variables = ":root{", night = "@media(prefers-color-scheme:dark){:root{", classes;
  for (size_t i = 0; i < kShades; ++i) {
    const std::string number = std::to_string(i);
    variables += "--q" + number + ':' + light[i] + ';';
    night += "--q" + number + ':' + dark[i] + ';';
    classes += ".q" + number + "{stroke:var(--q" + number + ")}";
  }
  return variables + "}" + night +
         "}}.strands .line{stroke-width:1.6;stroke-linecap:round;"
         "stroke-opacity:.85}"
         ".strands path{vector-effect:non-scaling-stroke}"
         ".many .line{stroke-width:1;stroke-opacity:.4}"
         ".strands path:hover{stroke:var(--ink);stroke-width:3;stroke-opacity:1}"
         ".grey{stroke:var(--c9)}" +
         classes +
         ".best{stroke-width:3;stroke-linecap:round}"
         ".halo{fill:none;stroke:var(--card);stroke-width:6;stroke-linejoin:round;"
         "vector-effect:non-scaling-stroke}"
         ".swatch{stroke-width:12}.legend span{margin-right:6px}";
}

}  // namespace tare::report
