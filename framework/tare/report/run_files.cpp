// Writes report.json, reads it, and checks what its types cannot hold.
#include "tare/report/run_files.h"

#include <algorithm>

#include "tare/base/base64.h"
#include "tare/base/error.h"
#include "tare/report/json_fields.h"

namespace tare {
namespace {

constexpr const char* kWhere = "report.read_run";

bool is_small_png(const std::string& picture) {
  constexpr std::string_view kPng = "iVBORw0KGgo";  // how each PNG file begins, in base64
  constexpr size_t kMostBytes = size_t{64} << 10;
  return picture.starts_with(kPng) && is_base64(picture) && picture.size() <= kMostBytes;
}

void check(const Classification& classification, const std::string& file) {
  const auto refuse = [&file](const std::string& key, const char* problem) {
    throw FormatError(kWhere, file, "classification." + key, problem);
  };
  const size_t size = classification.labels.size();
  const bool several = !classification.label_counts.empty();
  const bool square = classification.counts.size() == size &&
                      std::ranges::all_of(classification.counts,
                                          [&](const auto& row) { return row.size() == size; });
  if (!square && !(several && classification.counts.empty()))
    refuse("counts", "is not a list of one row and one column for each label");
  if (several && classification.label_counts.size() != size)
    refuse("label_counts", "is not a list of one entry for each label");
  for (size_t i = 0; i < classification.worst.size(); ++i) {
    const std::string& picture = classification.worst[i].picture;
    if (!picture.empty() && !is_small_png(picture))
      refuse("worst[" + std::to_string(i) + "].picture", "is not a small PNG file in base64");
    const size_t probabilities = classification.worst[i].probabilities.size();
    if (probabilities > 0 && probabilities != size)
      refuse("worst[" + std::to_string(i) + "].probabilities",
             "is not a list of one number for each label");
  }
}

}  // namespace

std::vector<MetricValue> figures_of(const std::optional<SplitFigures>& split) {
  if (!split) return {};
  std::vector<MetricValue> figures{{"loss", split->loss}};
  figures.insert(figures.end(), split->metrics.begin(), split->metrics.end());
  return figures;
}

std::string to_json(const RunFigures& run) { return report::json_text(run, 2); }

RunFigures run_from_json(const std::string& text, const std::filesystem::path& file) {
  auto run = report::from_json_text<RunFigures>(text, {kWhere, file.string()});
  if (run.classification) check(*run.classification, file.string());
  for (size_t i = 0; i < run.worst_rows.size(); ++i)
    if (const std::string& picture = run.worst_rows[i].picture;
        !picture.empty() && !is_small_png(picture))
      throw FormatError(kWhere, file.string(), "worst_rows[" + std::to_string(i) + "].picture",
                        "is not a small PNG file in base64");
  return run;
}

}  // namespace tare
