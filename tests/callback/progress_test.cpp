#include "tare/callback/progress.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <sstream>

#include "callback/fake_trainee.h"

namespace tare::testing {
namespace {

EpochRow row(int64_t epoch) {
  EpochRow r;
  r.epoch = epoch;
  r.train_loss = 0.5;
  r.valid_loss = 0.25;
  r.metrics = {{"accuracy", 0.75}};
  r.seconds = 1.5;
  return r;
}

// A fit of two epochs of `batches` steps as the Learner tells it.
std::string show(Progress::Style style, int64_t batches) {
  std::ostringstream out;
  Progress progress(out, style);
  FakeTrainee learner;
  FitContext c{.learner = learner};
  c.epochs = 2;
  c.batches = batches;
  progress.before_fit(c);
  for (c.epoch = 0; c.epoch < 2; ++c.epoch) {
    progress.before_epoch(c);
    for (c.batch = 0; c.batch < batches; ++c.batch) {
      c.loss = at::zeros({});
      progress.after_batch(c);
    }
    c.row = row(c.epoch);
    progress.after_epoch(c);
  }
  progress.after_fit(c);
  return out.str();
}

TEST(Progress, IntoAFileWritesPlainLinesOnly) {
  const std::string text = show(Progress::Style::plain, 5);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 127)) << static_cast<int>(c);
  EXPECT_EQ(std::ranges::count(text, '\n'), 3) << text;
  EXPECT_NE(text.find("epoch  train_loss  valid_loss    accuracy       time"), std::string::npos)
      << text;
  EXPECT_NE(text.find("    0    0.500000    0.250000    0.750000      1.5 s"), std::string::npos)
      << text;
}

TEST(Progress, OnATerminalRedrawsSeldomAndErasesItsLine) {
  const std::string text = show(Progress::Style::terminal, 100000);
  const auto redraws = std::ranges::count(text, '\r');
  EXPECT_LT(redraws, 50) << "at most 10 a second";
  EXPECT_NE(text.find("accuracy"), std::string::npos);
}

TEST(Progress, EscapesNamesOfMetrics) {
  EpochRow r = row(0);
  r.metrics[0].name = "a\nb\033[2J";
  EXPECT_EQ(epoch_header(r).find('\n'), std::string::npos);
  EXPECT_EQ(epoch_header(r).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace tare::testing
