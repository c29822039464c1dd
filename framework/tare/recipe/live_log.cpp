// Writes the figures of a fit under way.
#include "tare/recipe/live_log.h"

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/memory/snapshot.h"

namespace tare {
namespace {

constexpr std::chrono::seconds kEvery{2};

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

bool LiveLog::is_due() const { return !failed_ && (!written_ || Clock::now() - last_ >= kEvery); }

Action LiveLog::before_fit(FitContext&) {
  last_ = Clock::now();
  samples_ = 0;
  samples_per_s_ = 0;
  written_ = false;
  return Action::proceed;
}

// Behind the forward the activations are there.
Action LiveLog::after_loss(FitContext& context) {
  if (!is_due()) return Action::proceed;
  const auto snapshot = memory::take_snapshot(context.learner.device());
  allocated_bytes_ = snapshot.allocated_bytes;
  memory_.clear();
  for (size_t i = 0; i < kCategories; ++i) {
    const auto category = static_cast<Category>(i);
    if (const int64_t bytes = snapshot.categories[category]; bytes > 0)
      memory_.push_back({to_string(category), static_cast<double>(bytes)});
  }
  return Action::proceed;
}

Action LiveLog::after_batch(FitContext& context) {
  samples_ += context.data.size();
  if (is_due()) write(context);
  return Action::proceed;
}

// The rate of samples counts the time of training alone.
Action LiveLog::before_validate(FitContext&) {
  validation_ = Clock::now();
  return Action::proceed;
}

Action LiveLog::after_validate(FitContext&) {
  last_ += Clock::now() - validation_;
  return Action::proceed;
}

// Before the log of the epochs has the row, so that the file is never behind it.
Action LiveLog::after_epoch(FitContext& context) {
  if (written_ && !failed_) write(context);
  return Action::proceed;
}

Action LiveLog::after_fit(FitContext&) {
  if (!written_) return Action::proceed;
  try {
    io::remove_all(folder_ / report::kLiveFile);
  } catch (const IoError& error) {
    forget(error.what());
  }
  written_ = false;
  return Action::proceed;
}

void LiveLog::write(const FitContext& context) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  if (samples_ > 0 && seconds > 0) samples_per_s_ = static_cast<double>(samples_) / seconds;
  const bool by_clock = context.epochs >= kMostEpochs;
  const report::LiveFigures live{.phase = phase_,
                                 .epoch = context.epoch + 1,
                                 .epochs = by_clock ? 0 : context.epochs,
                                 .step = context.step,
                                 .steps = by_clock ? 0 : context.steps,
                                 .samples_per_s = samples_per_s_,
                                 .lr = context.lr,
                                 .allocated_bytes = allocated_bytes_,
                                 .memory = memory_,
                                 .time_s = now_s()};
  last_ = now;
  samples_ = 0;
  try {
    io::write_atomically(folder_ / report::kLiveFile, to_json(live), io::Flush::no);
    written_ = true;
  } catch (const IoError& error) {
    forget(error.what());
  }
}

void LiveLog::forget(const std::string& reason) {
  failed_ = true;
  log::warning("what the run is doing now is not written for `tare watch`: " + reason);
}

}  // namespace tare
