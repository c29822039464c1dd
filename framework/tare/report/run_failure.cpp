// Writes and reads why a run failed.
#include "tare/report/run_failure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/time_text.h"
#include "tare/report/json_fields.h"

namespace tare::report {
namespace {

constexpr const char* kWhere = "report.read_run";
constexpr size_t kMostBytes = 4000;  // of a reason

/// Returns the moment as text; empty for a number that is no time.
std::string moment_text(double time_s) {
  constexpr double kMost = 1e10;  // seconds: the year 2286
  if (!(std::abs(time_s) < kMost)) return {};
  const std::chrono::seconds since(std::llround(time_s));
  return time_text(std::chrono::system_clock::time_point(since));
}

}  // namespace

std::string to_json(const RunFailure& failure) { return json_text(failure, 2); }

std::optional<RunFailure> read_failure(const std::filesystem::path& folder) {
  const auto file = folder / kFailureFile;
  if (!std::filesystem::exists(file)) return std::nullopt;
  auto failure = from_json_text<RunFailure>(io::read_text(file), {kWhere, file.string()});
  failure.reason = printable(failure.reason, kMostBytes);
  failure.phase = printable(failure.phase);
  return failure;
}

std::string phase_text(const std::string& phase) {
  constexpr std::string_view kUnnamed = "phase ";
  const bool unnamed = phase.size() > kUnnamed.size() && phase.starts_with(kUnnamed) &&
                       std::ranges::all_of(phase.substr(kUnnamed.size()),
                                           [](char c) { return c >= '0' && c <= '9'; });
  return unnamed ? phase : std::string(kUnnamed) + phase;
}

std::string place_text(const RunFailure& failure) {
  std::string text =
      failure.phase.empty() ? "outside of a phase" : "in " + phase_text(failure.phase);
  if (failure.epoch > 0)
    text += ", epoch " + format_count(failure.epoch) + ", after " + format_count(failure.steps) +
            (failure.steps == 1 ? " step" : " steps");
  const std::string moment = moment_text(failure.time_s);
  return moment.empty() ? text : text + ", at " + moment;
}

}  // namespace tare::report
