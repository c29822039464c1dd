// Keeps what the callbacks of a run note across a resume.
#include "tare/recipe/run_callbacks.h"

#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/report/run_tables.h"

namespace tare {

std::string SmallestMicroBatch::state() const {
  if (samples_ == 0) return {};
  return nlohmann::json{{"micro_batches", most_}, {"samples", samples_}}.dump();
}

void SmallestMicroBatch::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto count = [&](const char* field) {
    if (!value.is_object() || !value.contains(field) || !value[field].is_number_unsigned())
      throw FormatError("run.load_state", name(), field, "is not a count");
    return value[field].get<int64_t>();
  };
  most_ = count("micro_batches");
  samples_ = count("samples");
}

Action FoundRate::before_fit(FitContext& context) {
  if (!context.lr_find) return Action::proceed;
  if (context.step == 0) print_(*context.lr_find);
  if (file_.empty()) return Action::proceed;
  std::string table = report::kRatesHeader;
  for (const LrFindPoint& point : context.lr_find->points)
    table += report::csv_line(report::RateRow{point.lr, point.loss, point.smoothed});
  const auto path = context.learner.folder() / file_;
  try {
    io::make_directories(path.parent_path());
    io::write_atomically(path, table);
  } catch (const IoError& error) {  // as for the other tables
    log::warning(std::string("the curve of the search is not written: ") + error.what());
  }
  return Action::proceed;
}

RateSearch figures_of(const LrFindResult& found) {
  return {.lr = found.lr(),
          .suggestion = found.suggestion,
          .valley = found.valley,
          .steepest = found.steepest,
          .minimum = found.minimum,
          .steps = static_cast<int64_t>(found.points.size()),
          .stopped_early = found.stopped_early,
          .seconds = found.seconds};
}

}  // namespace tare
