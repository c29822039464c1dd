// Plots of metrics as SVG and PNG.
#include "tare/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "report/markup_check.h"
#include "tare/base/io.h"
#include "tare/report/axis.h"
#include "tare/report/picture.h"

namespace tare::report {
namespace {

using tare::testing::count_of;
using tare::testing::is_well_formed;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

MetricPlot falling() {
  return {.metric = "loss", .train = {2, 1, 0.5, 0.25}, .valid = {2, NAN, INFINITY, 1}};
}

/// A decoded PNG; without pixels if it is none.
struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint32_t> pixels{};  ///< RGBA

  explicit Image(const std::string& file) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) return;
    image.format = PNG_FORMAT_RGBA;
    pixels.resize(size_t{image.width} * image.height);
    if (png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0) pixels.clear();
    width = image.width;
    height = image.height;
  }
  [[nodiscard]] int64_t count(uint8_t red, uint8_t green, uint8_t blue) const {
    const uint32_t pixel = 0xff000000U | uint32_t{blue} << 16 | uint32_t{green} << 8 | red;
    return std::ranges::count(pixels, pixel);
  }
  [[nodiscard]] int64_t training() const { return count(0x00, 0x72, 0xb2); }
  [[nodiscard]] int64_t validation() const { return count(0xd5, 0x5e, 0x00); }
};

/// Checks the properties that every plot must have, whatever its values.
void expect_files(const MetricPlot& plot) {
  const std::string svg = plot_svg(plot);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  const Image image(plot_png(plot));
  EXPECT_EQ(image.width, 720U);
  EXPECT_EQ(image.height, 432U);
  EXPECT_GT(std::set(image.pixels.begin(), image.pixels.end()).size(), 4U) << "of one colour";
}

TEST(Plot, ShowsBothCurvesWithAxesAndLegend) {
  const std::string svg = plot_svg(falling());
  for (const char* text : {">Training and Validation Loss</text>", ">Training</text>",
                           ">Validation</text>", ">Epochs</text>", ">Loss</text>", ">4</text>",
                           "width=\"720\" height=\"432\" viewBox=\"0 0 720 432\"",
                           "<title>Training and Validation Loss</title>",
                           "<desc>4 epochs; last training value 0.25; last validation value 1.",
                           "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_EQ(count_of(svg, "stroke=\"#0072b2\" stroke-width=\"2\""), 2U) << "line and legend";
  EXPECT_EQ(count_of(svg, "stroke=\"#d55e00\" stroke-width=\"2\" stroke-dasharray"), 2U);
  expect_files(falling());
}

TEST(Plot, ScalesAsTheAxisSays) {
  // 0 to 2 in steps of 0.5, between the tops of the plot at 84 and its foot at 370.
  const std::string svg = plot_svg({.metric = "loss", .train = {2, 1, 0}, .valid = {}});
  EXPECT_THAT(svg, HasSubstr("stroke-width=\"2\" d=\"M"));
  EXPECT_THAT(svg, HasSubstr(" 84h0L"));
  EXPECT_THAT(svg, HasSubstr(" 227L"));
  EXPECT_THAT(svg, HasSubstr("L692 370\""));
}

TEST(Plot, LeavesAGapWhereThereIsNoValue) {
  const std::string svg = plot_svg(falling());
  const size_t line = svg.find("stroke=\"#d55e00\"");
  const std::string path = svg.substr(line, svg.find("/>", line) - line);
  EXPECT_EQ(count_of(path, "M"), 2U) << path;
  EXPECT_EQ(count_of(path, "L"), 0U) << path;
}

TEST(Plot, DrawsInThePngWhatItDrawsInTheSvg) {
  const Image both(plot_png(falling()));
  EXPECT_GT(both.training(), 300);
  EXPECT_GT(both.validation(), 25);
  EXPECT_GT(both.count(0xff, 0xff, 0xff), 250'000) << "on white";
  const Image trained(plot_png({.metric = "loss", .train = {2, 1}, .valid = {}}));
  EXPECT_GT(trained.training(), 300);
  EXPECT_EQ(trained.validation(), 0);
  const Image validated(plot_png({.metric = "loss", .train = {NAN, NAN}, .valid = {2, 1}}));
  EXPECT_EQ(validated.training(), 0);
  EXPECT_GT(validated.validation(), 25);
}

TEST(Plot, SaysThatItsScaleIsLogarithmic) {
  MetricPlot plot{.metric = "loss", .train = {100, 1, 0.1}, .valid = {}};
  EXPECT_THAT(plot_svg(plot), HasSubstr(">Loss (log scale)</text>"));
  plot.metric = std::string(500, 'W');
  EXPECT_THAT(plot_svg(plot), HasSubstr("W... (log scale)</text>"));
  plot.train = {2, 1};
  EXPECT_THAT(plot_svg(plot), Not(HasSubstr("log scale")));
}

TEST(Plot, NamesOnlyTheCurvesItHas) {
  const std::string svg = plot_svg({.metric = "accuracy", .train = {}, .valid = {0.5, 0.6}});
  EXPECT_THAT(svg, HasSubstr(">Validation</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">Training</text>")));
  expect_files({.metric = "accuracy", .train = {}, .valid = {0.5, 0.6}});
}

TEST(Plot, SaysThatThereAreNoValues) {
  for (const MetricPlot& plot :
       {MetricPlot{.metric = "loss"}, MetricPlot{.metric = "loss", .train = {NAN, INFINITY}}}) {
    EXPECT_THAT(plot_svg(plot), HasSubstr(">No values</text>"));
    EXPECT_THAT(plot_svg(plot), HasSubstr("<desc>No values.</desc>"));
    expect_files(plot);
  }
}

TEST(Plot, ShowsOneEpochAsADotInTheMiddle) {
  const MetricPlot plot{.metric = "loss", .train = {0.5}, .valid = {}};
  EXPECT_THAT(plot_svg(plot), HasSubstr("stroke-width=\"6\""));
  EXPECT_THAT(plot_svg(plot), HasSubstr("<desc>One epoch; last training value 0.5.</desc>"));
  expect_files(plot);
}

TEST(Plot, TakesAnyValues) {
  const double most = std::numeric_limits<double>::max();
  const double least = std::numeric_limits<double>::denorm_min();
  for (const std::vector<double>& values : {std::vector<double>{0, 0, 0},
                                            {1e100, 1e100},
                                            {-1e100, 1e100},
                                            {most, -most, 1},
                                            {least, 0},
                                            {1e-100, 1e100},
                                            {1, 1 + 1e-15},
                                            {-5, -5, -5},
                                            {1e-100, 1e-100}}) {
    SCOPED_TRACE(::testing::PrintToString(values));
    expect_files({.metric = "loss", .train = values, .valid = values});
  }
}

TEST(Plot, IsSmallForManyEpochs) {
  MetricPlot plot{.metric = "loss"};
  for (int i = 0; i < 200'000; ++i) plot.train.push_back(1 + std::sin(i));
  EXPECT_LT(plot_svg(plot).size(), 30'000U);
  expect_files(plot);
}

TEST(Plot, EscapesAnyName) {
  std::vector<std::string> names{"<b>&\"'</b>",
                                 "präzision 精度",
                                 "a\n\x01\x7f\t/../b",
                                 std::string("a\0b", 3),
                                 "\xff\xfe\xc3",
                                 std::string(500, 'W'),
                                 ""};
  for (const char* noncharacter :
       {"\xef\xbf\xbe", "\xef\xbf\xbf", "\xef\xb7\x90", "\xf0\x9f\xbf\xbe", "\xf4\x8f\xbf\xbf"})
    names.push_back(noncharacter);
  for (const auto& name : names) {
    SCOPED_TRACE(::testing::PrintToString(name));
    expect_files({.metric = name, .train = {1, 2}, .valid = {2, 1}});
  }
  EXPECT_THAT(plot_svg({.metric = "<b>&"}), HasSubstr("Validation &lt;b&gt;&amp;</title>"));
  EXPECT_THAT(plot_svg({.metric = "a\xef\xbf\xbf"}), HasSubstr("Validation A\xef\xbf\xbd</title>"));
  EXPECT_THAT(plot_svg({.metric = "😀"}), HasSubstr("Validation 😀</title>"));
}

TEST(Plot, CutsANameThatHasNoRoom) {
  const std::string svg = plot_svg({.metric = std::string(500, 'W'), .train = {1, 2}});
  EXPECT_THAT(svg, HasSubstr("WWW...</text>"));
  EXPECT_THAT(svg, HasSubstr(std::string(500, 'W') + "</title>")) << "whole in the alternative";
  EXPECT_EQ(fitting("accuracy", 12, 500), "accuracy");
  EXPECT_LE(width_of(fitting(std::string(500, 'a'), 12, 100), 12), 100);
  EXPECT_EQ(fitting("ééééé", 10, 40), "éé...") << "not amid a letter";
}

TEST(Plot, CapitalizesAPlainName) {
  EXPECT_EQ(plot_title("loss"), "Training and Validation Loss");
  EXPECT_EQ(plot_title("mAP"), "Training and Validation mAP");
  EXPECT_EQ(plot_title("präzision"), "Training and Validation Präzision");
  EXPECT_EQ(plot_title(""), "Training and Validation ");
}

TEST(Plot, TellsTicksApart) {
  std::set<std::string> labels;
  const Axis axis = round_axis(1 + 1e-9, 1 + 6e-9, Unit::number, 6);
  for (const auto& tick : axis.ticks) labels.insert(tick.label);
  EXPECT_EQ(labels.size(), axis.ticks.size());
}

TEST(PlotFileName, IsTheMetricWhereThatIsSafe) {
  for (const char* name : {"loss", "accuracy", "top-5_acc.", "f1.macro"})
    EXPECT_EQ(plot_file_name(name), name);
}

TEST(PlotFileName, IsSafeAndOneForEachMetric) {
  std::set<std::string> names;
  const std::vector<std::string> metrics{"",
                                         ".",
                                         "..",
                                         "a/b",
                                         "a_b",
                                         "a b",
                                         "a\n",
                                         "精度",
                                         "精 度",
                                         ".hid",
                                         "_hid",
                                         "\xff",
                                         std::string("a\0", 2),
                                         std::string(500, 'W'),
                                         std::string(501, 'W')};
  for (const auto& metric : metrics) {
    const std::string name = plot_file_name(metric);
    EXPECT_NO_THROW((void)io::checked_name(name + ".svg", "file"));
    EXPECT_LE(name.size(), 80U);
    names.insert(name);
  }
  EXPECT_EQ(names.size(), metrics.size());
  EXPECT_EQ(plot_file_name("a/b"), plot_file_name("a/b"));
}

}  // namespace
}  // namespace tare::report
