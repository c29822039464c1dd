// Draws what a test confused, and its worst samples.
#include "tare/report/test_section.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tare/base/bytes.h"
#include "tare/report/markup.h"
#include "tare/report/page.h"

namespace tare::report {
namespace {

constexpr size_t kMostLabels = 30;  // of a table of all pairs
constexpr size_t kPairs = 20;
constexpr size_t kLabelBytes = 24;
constexpr size_t kMostProbabilities = 8;  // of a sample
constexpr size_t kTextBytes = 300;

/// Returns a cell, shaded by the share of its row; what is wrong has another colour.
std::string cell(int64_t count, int64_t of, bool right) {
  if (count == 0) return "<td></td>";
  const double share = of > 0 ? static_cast<double>(count) / static_cast<double>(of) : 0;
  const int percent = static_cast<int>(10 + 45 * share);
  return std::string("<td style=\"background:color-mix(in srgb,var(--c") + (right ? "0" : "2") +
         ") " + std::to_string(percent) + "%,transparent)\">" + format_count(count) + "</td>";
}

std::string matrix(const Classification& confusion) {
  std::string text =
      "<div class=\"wide matrix\" tabindex=\"0\" role=\"region\" aria-label=\"confusion "
      "matrix\"><table><thead><tr><th></th><th colspan=\"" +
      std::to_string(confusion.labels.size()) +
      "\" scope=\"colgroup\">predicted as</th><td></td></tr><tr><th scope=\"col\">label</th>";
  for (const auto& label : confusion.labels)
    text += "<th scope=\"col\">" + escaped(label, kLabelBytes) + "</th>";
  text += "<th scope=\"col\">correct</th></tr></thead><tbody>";
  for (size_t i = 0; i < confusion.labels.size(); ++i) {
    const auto& row = confusion.counts[i];
    const int64_t all = std::accumulate(row.begin(), row.end(), int64_t{0});
    text += "<tr><th scope=\"row\">" + escaped(confusion.labels[i], kLabelBytes) + "</th>";
    for (size_t j = 0; j < row.size(); ++j) text += cell(row[j], all, i == j);
    text += "<td>" +
            (all > 0 ? percent(static_cast<double>(row[i]) / static_cast<double>(all)) : "-") +
            "</td></tr>";
  }
  return text + "</tbody></table></div>";
}

/// Returns a ratio as text; "-" where there is nothing to divide by.
std::string share(int64_t part, int64_t rest) {
  if (part + rest == 0) return "-";
  return percent(static_cast<double>(part) / static_cast<double>(part + rest));
}

std::string label_counts(const Classification& confusion) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < confusion.labels.size(); ++i) {
    const LabelCounts& counts = confusion.label_counts[i];
    rows.push_back({confusion.labels[i], format_count(counts.true_positives),
                    format_count(counts.false_positives), format_count(counts.false_negatives),
                    format_count(counts.true_negatives),
                    share(counts.true_positives, counts.false_positives),
                    share(counts.true_positives, counts.false_negatives)});
  }
  return table("labels",
               {"label", "true positives", "false positives", "false negatives", "true negatives",
                "precision", "recall"},
               rows) +
         note(
             "A sample may have several labels, so there is no confusion matrix: each label is "
             "counted alone, and is predicted where its probability is at least 50 %.");
}

std::string confused_pairs(const Classification& confusion) {
  struct Pair {
    int64_t count;
    size_t label, predicted;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < confusion.counts.size(); ++i)
    for (size_t j = 0; j < confusion.counts.size(); ++j)
      if (i != j && confusion.counts[i][j] > 0) pairs.push_back({confusion.counts[i][j], i, j});
  std::ranges::stable_sort(pairs, std::ranges::greater{}, &Pair::count);
  std::vector<std::vector<std::string>> rows;
  for (const auto& pair : pairs) {
    if (rows.size() == kPairs) break;
    rows.push_back(
        {confusion.labels[pair.label], confusion.labels[pair.predicted], format_count(pair.count)});
  }
  if (rows.empty()) return note("No sample was confused.");
  return table("confused pairs", {"label", "predicted as", "samples"}, rows);
}

/// Returns the probability of the predicted class, or those of several labels, the highest first.
std::string probability_of(const Classification& confusion, const WorstSample& sample) {
  if (sample.probabilities.empty())
    return std::isnan(sample.probability) ? "-" : percent(sample.probability);
  std::vector<size_t> order(sample.probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](size_t i) { return sample.probabilities[i]; });
  std::string text;
  for (size_t i = 0; i < std::min(order.size(), kMostProbabilities); ++i)
    text += (i == 0 ? "" : ", ") + tail(confusion.labels[order[i]], kLabelBytes) + ' ' +
            percent(sample.probabilities[order[i]]);
  return text + (order.size() > kMostProbabilities ? ", ..." : "");
}

/// Returns the name of the sample's file, or its index.
std::string name_of(const WorstSample& sample) {
  return sample.name.empty() ? std::to_string(sample.index) : tail(sample.name, kNameBytes - 3);
}

std::string soft(const std::string& text) { return "<span class=\"soft\">" + text + "</span>"; }

/// Says what is shown of samples.
enum class Shown { numbers, pictures, texts };

template <class Samples>
Shown shown_of(const Samples& samples) {
  if (std::ranges::all_of(samples, [](const auto& one) { return !one.picture.empty(); }))
    return Shown::pictures;
  return std::ranges::any_of(samples, [](const auto& one) { return !one.text.empty(); })
             ? Shown::texts
             : Shown::numbers;
}

/// Returns one item of a list: the picture or the text of a sample, markup about it, its name.
template <class Sample>
std::string item(const Sample& sample, const std::string& about, const std::string& name) {
  const std::string shown =
      sample.picture.empty()
          ? "<span>" + escaped(sample.text, kTextBytes) + "</span>"
          : "<img src=\"data:image/png;base64," + sample.picture + "\" alt=\"" + name + "\">";
  return "<li>" + shown + about + soft(name) + "</li>";
}

std::string item(const Classification& confusion, const WorstSample& sample) {
  return item(sample,
              "<span><b>" + escaped(sample.label, kLabelBytes) + "</b>, predicted <b>" +
                  escaped(sample.predicted, kLabelBytes) + "</b></span>" +
                  soft("with " + escaped(probability_of(confusion, sample)) + ", loss " +
                       figure(sample.loss)),
              (sample.name.empty() ? "sample " : "") + escaped(name_of(sample)));
}

std::string item(const WorstRow& row) {
  const std::string numbers = std::isnan(row.target)
                                  ? ""
                                  : "<span><b>" + figure(row.target) + "</b>, predicted <b>" +
                                        figure(row.predicted) + "</b></span>";
  return item(row, numbers + soft("loss " + figure(row.loss)),
              escaped(tail(row.name, kNameBytes - 3)));
}

std::string list_of(const std::string& items, Shown shown) {
  return std::string("<ul class=\"worst") + (shown == Shown::texts ? " texts" : "") + "\">" +
         items + "</ul>";
}

std::string worst_table(const Classification& confusion) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& sample : confusion.worst)
    rows.push_back({name_of(sample), sample.label, sample.predicted,
                    probability_of(confusion, sample), figure(sample.loss)});
  return table("worst samples", {"sample", "label", "predicted", "with", "loss"}, rows);
}

std::string worst_samples(const Classification& confusion) {
  if (confusion.worst.empty()) return {};
  const Shown shown = shown_of(confusion.worst);
  std::string items;
  for (const auto& sample : confusion.worst) items += item(confusion, sample);
  return chart_with("Worst samples",
                    shown == Shown::numbers ? worst_table(confusion) : list_of(items, shown)) +
         note("The samples of the highest loss: " +
              std::string(confusion.label_counts.empty()
                              ? "the label, the predicted class with its probability"
                              : "the labels, the predicted ones, the probability of each label") +
              ", and the file in the data folder, or else the index in the split.");
}

std::string rows_table(const std::vector<WorstRow>& rows, bool numbers) {
  std::vector<std::string> columns{"sample"};
  if (numbers) columns.insert(columns.end(), {"target", "predicted"});
  columns.emplace_back("loss");
  std::vector<std::vector<std::string>> cells;
  for (const WorstRow& row : rows) {
    auto& line = cells.emplace_back(1, tail(row.name, kNameBytes - 3));
    if (numbers) line.insert(line.end(), {figure(row.target), figure(row.predicted)});
    line.push_back(figure(row.loss));
  }
  return table("worst samples", columns, cells);
}

}  // namespace

std::string test_section(const Classification& confusion) {
  if (!confusion.label_counts.empty())
    return chart_with("Labels", label_counts(confusion)) + worst_samples(confusion);
  const bool few = confusion.labels.size() <= kMostLabels;
  return chart_with(few ? "Confusion matrix" : "Confused pairs",
                    few ? matrix(confusion) : confused_pairs(confusion)) +
         worst_samples(confusion);
}

std::string worst_rows_section(const std::vector<WorstRow>& rows) {
  const bool numbers =
      std::ranges::any_of(rows, [](const WorstRow& row) { return !std::isnan(row.target); });
  const Shown shown = shown_of(rows);
  std::string items;
  for (const WorstRow& row : rows) items += item(row);
  return chart_with(numbers ? "Worst rows" : "Worst samples",
                    shown == Shown::numbers ? rows_table(rows, numbers) : list_of(items, shown)) +
         note(
             "The samples of the highest loss: the file, of a table with the line, or else the "
             "index in the split" +
             std::string(numbers ? ", the target, and what the model predicts." : "."));
}

}  // namespace tare::report
