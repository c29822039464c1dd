// The epochs table and the progress line, in a file and on a terminal.
#include "tare/callback/progress.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "callback/fake_learner.h"
#include "support/environment.h"

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

// A fit of two epochs of `batches` steps as the Learner reports it.
std::string show(Progress::Style style, int64_t batches) {
  std::ostringstream out;
  Progress progress(out, style);
  FakeLearner learner;
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

TEST(EpochLine, ShowsNoSignOfANan) {
  EpochRow diverged = row(1);
  diverged.train_loss = -std::numeric_limits<double>::quiet_NaN();
  diverged.metrics[0].value = -std::numeric_limits<double>::quiet_NaN();
  const std::string line = epoch_line(diverged);
  EXPECT_NE(line.find("       nan    0.250000         nan"), std::string::npos) << line;
  EXPECT_EQ(line.find("-nan"), std::string::npos) << line;
}

TEST(Progress, OnATerminalRedrawsSeldomAndErasesItsLine) {
  const std::string text = show(Progress::Style::terminal, 100000);
  const auto redraws = std::ranges::count(text, '\r');
  EXPECT_LT(redraws, 50) << "at most 10 a second";
  EXPECT_NE(text.find("accuracy"), std::string::npos);
}

// Rows of a fit with these validation losses, as a terminal gets them.
std::string rows_of(std::initializer_list<double> losses) {
  std::ostringstream out;
  Progress progress(out, Progress::Style::terminal);
  FakeLearner learner;
  FitContext c{.learner = learner};
  progress.before_fit(c);
  for (const double loss : losses) {
    c.row = row(1);
    c.row.valid_loss = loss;
    progress.after_epoch(c);
  }
  return out.str();
}

TEST(Progress, OnATerminalMarksTheBestEpochSoFar) {
  const ScopedVariable colour("NO_COLOR", "");
  const std::string text = rows_of({0.5, 0.75, 0.25});
  std::istringstream lines(text);
  std::string head, first, second, third;
  std::getline(lines, head), std::getline(lines, first);
  std::getline(lines, second), std::getline(lines, third);
  EXPECT_TRUE(head.starts_with("\033[1m")) << head;
  EXPECT_TRUE(first.starts_with("\033[32m") && first.ends_with(" *\033[0m")) << first;
  EXPECT_EQ(second.find_first_of("\033*"), std::string::npos) << second;
  EXPECT_TRUE(third.ends_with(" *\033[0m")) << third;
}

TEST(Progress, WithoutColourKeepsTheMark) {
  const ScopedVariable colour("NO_COLOR", "1");
  const std::string text = rows_of({0.5, 0.75, 0.25});
  EXPECT_EQ(text.find('\033'), std::string::npos) << text;
  EXPECT_EQ(std::ranges::count(text, '*'), 2) << text;
}

TEST(Progress, LeavesOutMetricsThatDoNotFit) {
  EpochRow r = row(1);
  for (const char* name : {"top5_accuracy", "f1", "precision", "recall", "auroc"})
    r.metrics.push_back({name, 0.5});
  EXPECT_LE(epoch_header(r, 60).size(), 60U);
  EXPECT_EQ(epoch_header(r, 60).size(), epoch_line(r, 60).size());
  EXPECT_TRUE(epoch_header(r, 60).ends_with("    accuracy       time")) << epoch_header(r, 60);
  EXPECT_NE(epoch_header(r).find("auroc"), std::string::npos);
}

TEST(Progress, LineHasABarAndTheTimeLeft) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  c.epoch = 1, c.epochs = 8, c.batch = 49, c.batches = 100, c.lr = 1e-3;
  c.loss = at::zeros({});
  EXPECT_EQ(progress_line(c, 71.5, 5432, 120),
            "epoch 2/8  [==========>         ]  1 min 12 s left  loss 0.0000  lr 1.00e-03  "
            "5432 samples/s");
  EXPECT_EQ(progress_line(c, 0, 5432, 120).find("0 us left"), std::string::npos);
  EXPECT_EQ(progress_line(c, -1, 5432, 40), "epoch 2/8  [==========>         ]");
  EXPECT_EQ(progress_line(c, -1, 5432, 50), "epoch 2/8  [==========>         ]  batch 50/100");
  EXPECT_EQ(progress_line(c, -1, 5432, 4), "epoc");
  const ValidationRow validation{
      .step = 1200, .valid_loss = 0.25, .metrics = {{"accuracy", 0.75}, {"f1", 0.5}}};
  EXPECT_EQ(validation_line(validation),
            "step 1200  valid_loss 0.250000  accuracy 0.750000  f1 0.500000");
  EXPECT_EQ(validation_line(validation, 50), "step 1200  valid_loss 0.250000  accuracy 0.750000");
}

TEST(Progress, BarIsFullAtTheEnd) {
  EXPECT_EQ(progress_bar(0, 6), "[>   ]");
  EXPECT_EQ(progress_bar(0.5, 6), "[==> ]");
  EXPECT_EQ(progress_bar(1, 6), "[====]");
}

TEST(Progress, BestEpochIsByValidationElseByTraining) {
  std::vector<EpochRow> rows{row(1), row(2), row(3)};
  rows[1].valid_loss = 0.125, rows[2].valid_loss = 0.125;
  EXPECT_EQ(best_epoch(rows)->epoch, 2);
  for (auto& r : rows) r.valid_loss = std::numeric_limits<double>::quiet_NaN();
  rows[2].train_loss = 0.25;
  EXPECT_EQ(best_epoch(rows)->epoch, 3);
  for (auto& r : rows) r.train_loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(best_epoch(rows), nullptr);
  EXPECT_EQ(best_epoch({}), nullptr);
}

TEST(Progress, EscapesNamesOfMetrics) {
  EpochRow r = row(0);
  r.metrics[0].name = "a\nb\033[2J";
  EXPECT_EQ(epoch_header(r).find('\n'), std::string::npos);
  EXPECT_EQ(epoch_header(r).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace tare::testing
