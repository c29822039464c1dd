// Runs of recipes: memory, reports, dry runs and traces.
#include "tare/recipe/run.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "recipe/own_data.h"
#include "recipe/tiny.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/inference/predictor.h"
#include "tare/memory/backend.h"
#include "tare/recipe/classification.h"
#include "tare/recipe/run_text.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t tracked() { return memory::backend(c10::kCPU).usage().allocated_bytes; }

TEST(Run, GivesEveryByteBackBetweenPhasesAndAtTheEnd) {
  const TempDir folder;
  (void)run_recipe(tiny(folder));  // fills the library's caches
  const int64_t before = tracked();
  const RunReport report = run_recipe(tiny(folder));
  ASSERT_EQ(report.phases.size(), 3U);
  for (const auto& phase : report.phases) {
    EXPECT_GT(phase.consumed_bytes, 0) << phase.name;
    EXPECT_GE(phase.peak_bytes, phase.consumed_bytes) << phase.name;
    EXPECT_EQ(phase.reclaimed_bytes, phase.consumed_bytes) << phase.name;
    EXPECT_EQ(phase.residual_bytes, 0) << phase.name;
    EXPECT_EQ(phase.epochs.size(), 1U) << phase.name;
  }
  EXPECT_EQ(report.residual_bytes, 0);
  EXPECT_EQ(tracked(), before);
  ASSERT_TRUE(report.valid.has_value());
  EXPECT_EQ(Predictor(report.exported->path).manifest().labels.size(), 10U);
  EXPECT_TRUE(std::filesystem::exists(folder / "tiny/first.csv"));
  EXPECT_TRUE(std::filesystem::exists(folder / "tiny/recipe.yaml"));
}

/// Keeps a tensor of 4,000 bytes when the first epoch is printed.
class LeakyBuffer final : public std::stringbuf {
 public:
  at::Tensor kept;

 protected:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (!kept.defined() &&
        std::string_view(text, static_cast<size_t>(count)).find("epoch") != std::string_view::npos)
      kept = at::empty({1000});
    return std::stringbuf::xsputn(text, count);
  }
};

TEST(Run, ReportsWhatAPhaseLeaves) {
  const TempDir folder;
  LeakyBuffer buffer;
  std::ostream out(&buffer);
  const RunReport report = run_recipe(tiny(folder), {.out = &out, .call_sites = true});
  ASSERT_EQ(report.phases[0].leaks.size(), 1U) << buffer.str();
  const PhaseLeak& leak = report.phases[0].leaks[0];
  EXPECT_EQ(leak.bytes, 4000);
  EXPECT_EQ(leak.blocks, 1);
  EXPECT_EQ(leak.bytes, report.phases[0].residual_bytes);
  EXPECT_NE(leak.site.find("run_test.cpp:"), std::string::npos) << leak.site;
  EXPECT_TRUE(report.phases[1].leaks.empty());
  const RunFigures again = run_from_json(io::read_text(report.folder / "report.json"), "report");
  ASSERT_EQ(again.phases.at(0).leaks.size(), 1U);
  EXPECT_EQ(again.phases[0].leaks[0].site, leak.site);
}

TEST(Run, SaysWhatItsTrackerCost) {
  const TempDir folder;
  std::ostringstream out;
  const uint64_t before = memory::backend(c10::kCPU).sequence();
  const RunReport report = run_recipe(tiny(folder), {.out = &out});
  const auto& cost = report.tracker_cost;
  EXPECT_EQ(cost.records, memory::backend(c10::kCPU).sequence() - before);
  EXPECT_GT(cost.records, 1000U);
  EXPECT_LT(cost.share(), 0.5);
  EXPECT_NEAR(cost.seconds, report.seconds, 0.5);
  EXPECT_NE(out.str().find("tracker: " + cost.str("allocations") + '\n'), std::string::npos)
      << out.str();
  const auto json = nlohmann::json::parse(to_json(report)).at("tracker");
  EXPECT_EQ(json.at("allocations"), cost.records);
  EXPECT_EQ(json.at("ns_each"), cost.ns_each);
  EXPECT_EQ(json.at("share"), cost.share());
}

TEST(Run, SameSeedSameRun) {
  const TempDir a, b;
  const RunReport first = run_recipe(tiny(a)), second = run_recipe(tiny(b));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(first.phases[i].epochs[0].train_loss, second.phases[i].epochs[0].train_loss);
    EXPECT_EQ(first.phases[i].epochs[0].valid_loss, second.phases[i].epochs[0].valid_loss);
  }
}

TEST(Run, DryRunLeavesNothingBehind) {
  const TempDir folder;
  const RunReport report = run_recipe(tiny(folder), {.dry_run = true});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  for (const auto& phase : report.phases) EXPECT_GT(phase.peak_bytes, 0);
  EXPECT_FALSE(report.exported.has_value());
}

TEST(Run, PeakOfADryRunIsThatOfTheRun) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.learner.workers = 0;  // what a worker has ready at the peak is a matter of time
  (void)run_recipe(recipe);
  const RunReport dry = run_recipe(recipe, {.dry_run = true}), real = run_recipe(recipe);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(dry.phases[i].peak_bytes, real.phases[i].peak_bytes) << i;
}

TEST(Run, ReportsAsJson) {
  const TempDir folder;
  const auto json = nlohmann::json::parse(to_json(run_recipe(tiny(folder))));
  EXPECT_EQ(json["phases"].size(), 3U);
  EXPECT_TRUE(json["phases"][0]["epochs"][0]["metrics"]["accuracy"].is_number());
  for (const char* key : {"consumed_bytes", "peak_bytes", "reclaimed_bytes", "residual_bytes",
                          "fragmented_bytes", "allocator_retries"}) {
    EXPECT_TRUE(json["phases"][1][key].is_number_integer()) << key;
  }
  EXPECT_TRUE(json["valid"]["metrics"]["accuracy"].is_number());
  EXPECT_GT(json["export"]["bytes"].get<int64_t>(), 0);
  EXPECT_EQ(json["residual_bytes"], 0);
  for (const char* key : {"tare", "libtorch", "processor", "device"})
    EXPECT_NE(json["machine"][key], "") << key;
  EXPECT_GT(json["machine"]["memory_bytes"].get<int64_t>(), 0);
  EXPECT_EQ(json["phases"][0]["epochs"][0]["epoch"], 1);
}

TEST(Run, ReportsWhatItsTestConfused) {
  const TempDir folder;
  const RunReport report = run_recipe(tiny(folder));
  ASSERT_TRUE(report.classification.has_value());
  const auto& [labels, counts, worst, label_counts] = *report.classification;
  EXPECT_EQ(labels.size(), 10U);
  EXPECT_TRUE(label_counts.empty()) << "a sample has one label";
  int64_t right = 0, all = 0;
  for (size_t i = 0; i < 10; ++i) {
    right += counts[i][i];
    all = std::accumulate(counts[i].begin(), counts[i].end(), all);
  }
  EXPECT_EQ(all, 40) << "a fifth of the samples";
  EXPECT_NEAR(static_cast<double>(right) / static_cast<double>(all), report.valid->metrics[0].value,
              1e-6);
  ASSERT_EQ(worst.size(), kWorstSamples);
  for (size_t i = 1; i < worst.size(); ++i) EXPECT_GE(worst[i - 1].loss, worst[i].loss);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["classification"]["worst"][0]["index"], worst[0].index);
  EXPECT_EQ(
      json["classification"]["worst"][0]["picture"].get<std::string>().rfind("iVBORw0KGgo", 0), 0U);
}

TEST(Run, NamesTheFilesThatItsTestConfused) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  (void)datasets::make_png_files("generated_digits", folder / "pictures",
                                 {.count = 60, .size = 16});
  recipe.data = {.name = "image_folder", .folder = (folder / "pictures").string()};
  recipe.batch = 16;
  const auto json = nlohmann::json::parse(to_json(run_recipe(recipe)));
  for (const auto& sample : json["classification"]["worst"]) {
    const auto name = sample["name"].get<std::string>();
    EXPECT_TRUE(name.starts_with(sample["label"].get<std::string>() + '/')) << name;
    EXPECT_TRUE(std::filesystem::exists(folder / "pictures" / name)) << name;
  }
  EXPECT_FALSE(json["classification"]["worst"].empty());
  const auto drawn = nlohmann::json::parse(to_json(run_recipe(tiny(folder))));
  EXPECT_FALSE(drawn["classification"]["worst"][0].contains("name")) << "no files";
}

TEST(Run, StopsAfterAStepWhenAsked) {
  const TempDir folder;
  request_interrupt();
  const RunReport report = run_recipe(tiny(folder));
  EXPECT_EQ(report.reason, StopReason::interrupted);
  EXPECT_EQ(report.phases.size(), 1U);
  EXPECT_EQ(report.phases[0].residual_bytes, 0);
  EXPECT_FALSE(interrupt_requested());
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Run, WritesAMemoryTrace) {
  const TempDir folder, traces;
  std::ostringstream out;
  RecipeOptions recipe = tiny(folder);
  (void)run_recipe(recipe);  // fills the library's caches
  const int64_t before = tracked();
  const RunReport report =
      run_recipe(recipe, {.out = &out, .allocation_recording = traces / "trace"});
  const auto lines = lines_of(traces / "trace/timeline.csv");
  ASSERT_GT(lines.size(), 1000U);
  EXPECT_EQ(lines[1], "0,start,0," + std::to_string(before) + ",0,none,none,unknown");
  for (const char* phase : {"data", "forward", "backward", "validate", "save", "purge"}) {
    const std::string field = std::string(",") + phase + ',';
    EXPECT_TRUE(std::ranges::any_of(lines, [&](const auto& l) { return l.find(field) != l.npos; }))
        << phase;
  }
  for (const char* category :
       {"parameters", "gradients", "optimizer", "activations", "batch", "workspace"}) {
    const std::string field = std::string(",") + category;
    EXPECT_TRUE(std::ranges::any_of(lines, [&](const auto& l) { return l.ends_with(field); }))
        << category;
  }
  for (const char* file : {"snapshot.pickle", "trace.json", "peak.folded"})
    EXPECT_GT(std::filesystem::file_size(traces / "trace" / file), 100U) << file;
  EXPECT_NE(out.str().find(" events in "), std::string::npos) << out.str();
  EXPECT_NE(out.str().find(", 0 older ones dropped; recording took "), std::string::npos);
}

TEST(Run, WritesTheMemoryTraceOfARunThatFails) {
  const TempDir folder, traces;
  RecipeOptions recipe = tiny(folder);
  recipe.phases[0].lr = 1e30;
  EXPECT_THROW((void)run_recipe(recipe, {.allocation_recording = traces.path()}), DivergedError);
  EXPECT_GT(lines_of(traces / "timeline.csv").size(), 100U);
}

TEST(Run, RefusesAMemoryTraceWhereNoneCanBeWritten) {
  const TempDir folder, other;
  io::write_atomically(other / "file", "text");
  EXPECT_THROW((void)run_recipe(tiny(folder), {.allocation_recording = other / "file/trace"}),
               IoError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Run, MakesTheFoldersAboveItsMemoryTrace) {
  const TempDir folder;
  (void)run_recipe(tiny(folder), {.allocation_recording = folder / "absent/trace"});
  EXPECT_TRUE(std::filesystem::exists(folder / "absent/trace/timeline.csv"));
}

TEST(Run, PrintsTablesAndReports) {
  const TempDir folder;
  std::ostringstream out;
  (void)run_recipe(tiny(folder), {.out = &out, .verbose = true});
  for (const char* text : {"train_loss", "reclaimed", "residual 0 B", "after destroy", "exported",
                           "layer groups", "largest after_", "unexplained 0 B"}) {
    EXPECT_NE(out.str().find(text), std::string::npos) << text << "\n" << out.str();
  }
}

TEST(PhaseLine, HasTheMetricsOfTheBestEpochAndNoOtherColumns) {
  PhaseReport phase{.name = "all"};
  for (int64_t epoch = 1; epoch <= 2; ++epoch)
    phase.epochs.push_back({.epoch = epoch,
                            .train_loss = 1.0 / static_cast<double>(epoch),
                            .valid_loss = 2.0 / static_cast<double>(epoch),
                            .metrics = {{"accuracy", 0.5}, {"mae.age", 3}, {"free_bytes", 7}}});
  const std::string line = phase_line(phase, {"accuracy", "mae"});
  EXPECT_THAT(line, HasSubstr("best epoch 2 (valid_loss 1, accuracy 0.5, mae.age 3)"));
}

TEST(Run, PhasesWithoutNamesAreCountedFromOne) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases = {{.lr = 1e-2}, {.name = "last", .lr = 1e-2}};
  std::ostringstream out;
  (void)run_recipe(recipe, {.out = &out});
  EXPECT_THAT(out.str(), AllOf(HasSubstr("phase 1 of 2: "), HasSubstr("last, phase 2 of 2: "),
                               Not(HasSubstr("phase 0"))));
}

TEST(Run, WeightsOfABundleSayWhatElseOfItDoesNotApply) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.data.transforms = {Normalise{{0.1}, {0.3}}};
  const RunReport first = run_recipe(recipe);
  recipe.model.options.weights = (first.folder / "tiny.tare").string();
  const auto warnings = [&] {
    ::testing::internal::CaptureStderr();
    (void)run_recipe(recipe, {.dry_run = true});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warnings(), Not(HasSubstr("the weights alone")));
  recipe.data.transforms = {};
  EXPECT_THAT(warnings(), AllOf(HasSubstr("the weights alone are taken from "),
                                HasSubstr("normalise"), HasSubstr("gives none")));
}

TEST(Run, WarnsOfAPhaseWhoseDataHaveFewerClassesThanTheModel) {
  const TempDir folder;
  write_image_folder(folder / "pictures", 160);
  for (const char* digit : {"3", "4", "5", "6", "7", "8", "9"})
    std::filesystem::remove_all(folder / "pictures" / digit);
  RecipeOptions recipe = tiny(folder);
  recipe.phases[1].data =
      DataOptions{.name = "image_folder", .folder = (folder / "pictures").string()};
  ::testing::internal::CaptureStderr();
  (void)run_recipe(recipe, {.dry_run = true});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the data of head have 3 classes, and the model has 10 outputs"));
}

TEST(Run, WeightsThatDoNotFitSayWhatDoes) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  const RunReport first = run_recipe(recipe);
  const auto problem = [&](const std::filesystem::path& weights, int64_t width) {
    recipe.model.options.weights = weights.string();
    recipe.model.options.width = width;
    try {
      (void)run_recipe(recipe, {.dry_run = true});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(problem(first.folder / "first", 4),
              AllOf(HasSubstr("weights is a folder"), HasSubstr("first/model.safetensors")));
  EXPECT_THAT(problem(first.folder, 4), HasSubstr("a safetensors file, a bundle (.tare)"));
  EXPECT_THAT(problem(first.folder / "tiny.tare", 8),
              AllOf(HasSubstr("Float [4, 1, 3, 3] in the file and Float [8, 1, 3, 3] in the model"),
                    HasSubstr("give the model the options")));
}

TEST(RunRecipe, RefusesABlockThatTheModelLacksBeforeAnyWork) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.back().recompute = BlockNames{{"layer9"}};
  try {
    (void)run_recipe(recipe, {});
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'layer9' names no block"), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace tare::testing
