// Runs side by side.
#include "tare/report/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/markup_check.h"
#include "report/run_folder.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/terminal.h"
#include "tare/config/node.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace tare::testing;

class ComparedRuns : public ::testing::Test {
 protected:
  ComparedRuns() {
    write_run(folder_ / "a", "all", "first");
    write_run(folder_ / "b", "rest", "second");
    write_file(folder_ / "b" / "recipe.yaml",
               "name: second\nbatch: 128\noptimizer: {kind: sgd}\nmetrics: [accuracy]\n"
               "phases:\n  - name: head\n    epochs: 3\n  - name: rest\n");
  }
  [[nodiscard]] Comparison compared() const { return compare_runs({folder_ / "a", folder_ / "b"}); }
  void write_recipes(const std::string& a, const std::string& b) const {
    write_file(folder_ / "a" / "recipe.yaml", "name: one\n" + a);
    write_file(folder_ / "b" / "recipe.yaml", "name: two\n" + b);
  }
  TempDir folder_;
};

const ComparedRow& row(const std::vector<ComparedRow>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &ComparedRow::name);
  EXPECT_NE(found, rows.end()) << name;
  return *found;
}

TEST_F(ComparedRuns, ListTheSettingsInWhichTheyDiffer) {
  const Comparison c = compared();
  EXPECT_THAT(c.runs, ElementsAre("first", "second"));
  ASSERT_EQ(c.settings.size(), 4U);
  EXPECT_THAT(row(c.settings, "batch").texts, ElementsAre("64", "128"));
  EXPECT_THAT(row(c.settings, "optimizer.kind").texts, ElementsAre("-", "sgd"));
  EXPECT_THAT(row(c.settings, "metrics").texts, ElementsAre("-", "[accuracy]"));
  EXPECT_THAT(row(c.settings, "phases.1.name").texts, ElementsAre("all", "rest"));
}

TEST_F(ComparedRuns, DifferInCallbacksWithoutOptions) {
  write_recipes("callbacks: [{gradient_norm: {}}, {memory_log: {}}]\n",
                "callbacks: [{memory_log: {}}]\n");
  EXPECT_THAT(row(compared().settings, "callbacks").texts,
              ElementsAre("[{gradient_norm: {}}, {memory_log: {}}]", "[{memory_log: {}}]"));
}

// No row denies what both runs have, in whatever form the recipe writes it.
TEST_F(ComparedRuns, HaveOneRowForAListThatIsShorterInOne) {
  write_recipes("metrics: [accuracy]\nloss: cross_entropy\n",
                "metrics: [accuracy, {top_k: {k: 3, as: ''}}]\n"
                "loss: {cross_entropy: {label_smoothing: 0.1, class_weights: []}}\n");
  const Comparison c = compared();
  ASSERT_EQ(c.settings.size(), 2U);
  EXPECT_THAT(row(c.settings, "metrics").texts,
              ElementsAre("[accuracy]", "[accuracy, {top_k: {k: 3, as: \"\"}}]"));
  EXPECT_THAT(
      row(c.settings, "loss").texts,
      ElementsAre("cross_entropy", "{cross_entropy: {label_smoothing: 0.1, class_weights: []}}"));
}

TEST_F(ComparedRuns, HaveARowForEachOptionOfAListThatBothHave) {
  write_recipes(
      "metrics: [accuracy, {top_k: {k: 3}}]\ncallbacks: [{ema: {decay: 0.9, every: 1}}]\n",
      "metrics: [f1, {top_k: {k: 4}}]\ncallbacks: [{ema: {decay: 0.8, every: 1}}]\n");
  const Comparison c = compared();
  ASSERT_EQ(c.settings.size(), 3U);
  EXPECT_THAT(row(c.settings, "callbacks.0.ema.decay").texts, ElementsAre("0.9", "0.8"));
  EXPECT_THAT(row(c.settings, "metrics.0").texts, ElementsAre("accuracy", "f1"));
  EXPECT_THAT(row(c.settings, "metrics.1.top_k.k").texts, ElementsAre("3", "4"));
}

// A rate of each layer group, and a list in place of a word.
TEST_F(ComparedRuns, HaveOneRowForAValueOfAnotherKind) {
  write_recipes("lr: 0.001\nfreeze: null\n", "lr: {from: 1e-5, to: 0.001}\nfreeze: [a, b]\n");
  const Comparison c = compared();
  ASSERT_EQ(c.settings.size(), 2U);
  EXPECT_THAT(row(c.settings, "freeze").texts, ElementsAre("null", "[a, b]"));
  EXPECT_THAT(row(c.settings, "lr").texts, ElementsAre("0.001", "{from: 1e-5, to: 0.001}"));
}

TEST_F(ComparedRuns, HaveTheDefaultOfAKeyThatTheRecipeOmits) {
  write_recipes("optimizer: {kind: muon, options: {}}\n",
                "optimizer: {kind: muon, options: {ns_steps: 4}}\nseed: 7\nbatch: 64\n");
  const OwnDefaults own = [](const std::string& choice, const std::string& kind) {
    EXPECT_EQ(choice + ' ' + kind, "optimizer muon");
    return config::parse_text("{ns_steps: 5, float32: false}", "defaults");
  };
  const Comparison c = compare_runs({folder_ / "a", folder_ / "b"}, "seed: 42\nbatch: 64\n", own);
  ASSERT_EQ(c.settings.size(), 2U);
  EXPECT_THAT(row(c.settings, "optimizer.options.ns_steps").texts, ElementsAre("5", "4"));
  EXPECT_THAT(row(c.settings, "seed").texts, ElementsAre("42", "7"));
}

// Another run that has no such optimizer has no such option.
TEST_F(ComparedRuns, HaveNoDefaultOfAnotherKind) {
  write_recipes("optimizer: {kind: sgd, options: {}}\n",
                "optimizer: {kind: muon, options: {ns_steps: 4}}\n");
  const OwnDefaults own = [](const std::string&, const std::string& kind) {
    return kind == "muon" ? config::parse_text("{ns_steps: 5}", "defaults") : config::Node::map();
  };
  const Comparison c = compare_runs({folder_ / "a", folder_ / "b"}, {}, own);
  EXPECT_THAT(row(c.settings, "optimizer.options.ns_steps").texts, ElementsAre("-", "4"));
}

// A phase without data of its own has those of the recipe.
TEST_F(ComparedRuns, ListNoDefaultsOfDataThatAPhaseLacks) {
  write_recipes("phases: [{name: head, data: null}]\n",
                "phases: [{name: head, data: {name: mnist, size: 0, fit: crop}}]\n");
  const Comparison c =
      compare_runs({folder_ / "a", folder_ / "b"},
                   "phases: [{name: '', data: {name: '', size: 0, fit: stretch}}]\n");
  ASSERT_EQ(c.settings.size(), 2U);
  EXPECT_THAT(row(c.settings, "phases.0.data.fit").texts, ElementsAre("-", "crop"));
  EXPECT_THAT(row(c.settings, "phases.0.data.name").texts, ElementsAre("-", "mnist"));
}

// A phase that one run alone has lists what it sets, and not what it leaves at the defaults.
TEST_F(ComparedRuns, ListNoDefaultsOfAPhaseThatSomeLack) {
  const std::string before = "name: one\nphases:\n  - {name: head, epochs: 3}\n";
  write_file(folder_ / "a" / "recipe.yaml", before);
  write_file(folder_ / "b" / "recipe.yaml",
             before +
                 "  - {name: all, epochs: 2, lr: null, load: '', size: 0, schedule: {kind: "
                 "cosine, warmup: 0}, callbacks: [{memory_log: {}}]}\n");
  const Comparison c = compare_runs(
      {folder_ / "a", folder_ / "b"},
      "phases: [{name: '', epochs: 1, lr: null, load: '', size: 0, schedule: {kind: one_cycle, "
      "warmup: 0}, callbacks: []}]\n");
  std::vector<std::string> names;
  for (const ComparedRow& each : c.settings) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("phases", "phases.1.callbacks.0.memory_log", "phases.1.epochs",
                                 "phases.1.name", "phases.1.schedule.kind"));
  EXPECT_THAT(row(c.settings, "phases").texts, ElementsAre("1", "2"));
  EXPECT_THAT(row(c.settings, "phases.1.epochs").texts, ElementsAre("-", "2"));
}

// A setting that both runs have is listed also where one of them has the default.
TEST_F(ComparedRuns, ListADefaultThatTheOtherRunChanges) {
  for (const auto& [run, norm] : {std::pair{"a", "0"}, {"b", "1"}})
    write_file(folder_ / run / "recipe.yaml",
               "name: one\nexport: " + std::string(norm == std::string("0") ? "null" : "b.tare") +
                   "\nclip: {norm: " + norm + "}\nphases: [{name: head}]\n");
  const Comparison c =
      compare_runs({folder_ / "a", folder_ / "b"}, "export: null\nclip: {norm: 0}\nphases: []\n");
  EXPECT_THAT(row(c.settings, "clip.norm").texts, ElementsAre("0", "1"));
  EXPECT_THAT(row(c.settings, "export").texts, ElementsAre("null", "b.tare"));
}

TEST_F(ComparedRuns, AreOneTableOfValues) {
  const std::string csv = to_csv(compared());
  EXPECT_THAT(csv, StartsWith("kind,name,epoch,first,second\nsetting,batch,,64,128\n"));
  EXPECT_THAT(csv, HasSubstr("\nsetting,optimizer.kind,,,sgd\n"));
  EXPECT_THAT(csv, HasSubstr("\nfigure,test accuracy,,0.913,0.913\n"));
  EXPECT_THAT(csv, HasSubstr("\nfigure,samples/s of rest,,,1234.5\n"));
  EXPECT_THAT(csv, HasSubstr("\ncurve,train_loss,5,0.3,0.3\n"));
  EXPECT_THAT(csv, HasSubstr("\ncurve,valid_loss,3,,\n")) << "NaN";
}

TEST_F(ComparedRuns, HaveTheirFiguresAndCurves) {
  const Comparison c = compared();
  EXPECT_THAT(row(c.figures, "test accuracy").values, ElementsAre(0.913, 0.913));
  EXPECT_THAT(row(c.figures, "time").texts, ElementsAre("1 min 35 s", "1 min 35 s"));
  EXPECT_THAT(row(c.figures, "highest peak of a phase").values, ElementsAre(30e6, 30e6));
  EXPECT_TRUE(std::isnan(row(c.figures, "samples/s of rest").values[0]));
  EXPECT_EQ(row(c.figures, "samples/s of rest").texts[0], "-");
  ASSERT_EQ(c.curves.size(), 4U);
  EXPECT_EQ(c.curves[0].name, "train_loss");
  EXPECT_THAT(c.curves[0].lines[1], ElementsAre(2.1, 1.2, 0.8, 0.5, 0.3));
  EXPECT_THAT(c.curves[0].places[1], ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(c.curves[2].name, "accuracy");
  EXPECT_EQ(c.curves[3].name, "learning_rate");
  EXPECT_EQ(c.curves[3].axis, CurveAxis::step);
  ASSERT_EQ(c.curves[3].places[1].size(), 180U);
  EXPECT_EQ(c.curves[3].places[1].back(), 180) << "steps go on in the second phase";
  EXPECT_DOUBLE_EQ(c.curves[3].lines[1][44], 45e-4);
  EXPECT_THAT(c.unfinished, IsEmpty());
}

TEST_F(ComparedRuns, AreShownAsTextJsonAndPage) {
  const Comparison c = compared();
  const std::string text = to_text(c, kAnyWidth);
  for (const char* part : {"setting", "first", "second", "optimizer.kind", "test accuracy"})
    EXPECT_THAT(text, HasSubstr(part));
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["settings"]["batch"][1], "128");
  EXPECT_EQ(json["figures"]["test loss"][0], 0.41);
  EXPECT_TRUE(json["figures"]["samples/s of rest"][0].is_null());
  EXPECT_TRUE(json["curves"]["valid_loss"][0][2].is_null());
  const std::string html = to_html(c);
  EXPECT_TRUE(is_well_formed(html));
  for (const char* part : {"Train_loss by epoch", "Accuracy by epoch", "optimizer.kind", "second"})
    EXPECT_THAT(html, HasSubstr(part));
}

TEST_F(ComparedRuns, HaveTheirMemoryAndTheirWorstSamplesSideBySide) {
  write_timeline(folder_ / "b" / "timeline.csv", 20);
  add_to_run(folder_ / "a",
             R"("classification":{"labels":["cat","dog"],"counts":[[7,1],[0,4]],"worst":[)"
             R"({"index":17,"label":"cat","predicted":"dog","probability":0.75,"loss":1.5,)"
             R"("picture":"iVBORw0KGgoAAAA="}]},)");
  add_to_run(
      folder_ / "b",
      R"("worst_rows":[{"name":"houses.csv:7","target":12.5,"predicted":7.25,"loss":27.5}],)");
  const Comparison c = compared();
  const ComparedCurve& memory = c.curves.back();
  EXPECT_EQ(memory.name, "bytes");
  EXPECT_EQ(memory.axis, CurveAxis::seconds);
  EXPECT_THAT(memory.lines[0], IsEmpty());
  EXPECT_GE(*std::ranges::max_element(memory.lines[1]), 40e6);
  const std::string html = to_html(c);
  EXPECT_TRUE(is_well_formed(html));
  for (const char* part : {"Memory over time", "Learning_rate by step", "first, test:",
                           "second, test:", "Confusion matrix", "iVBORw0KGgoAAAA=", "houses.csv:7"})
    EXPECT_THAT(html, HasSubstr(part));
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["worst"][0][0]["predicted"], "dog");
  EXPECT_EQ(json["worst"][1][0]["name"], "houses.csv:7");
  EXPECT_EQ(json["step_curves"]["learning_rate"][0]["at"].size(), 180U);
  EXPECT_EQ(json["seconds_curves"]["bytes"][0]["at"].size(), 0U);
  const std::string csv = to_csv(c);
  EXPECT_THAT(csv, HasSubstr("\nstep_curve,learning_rate,45,0.0045,0.0045\n"));
  EXPECT_THAT(csv, HasSubstr("\nseconds_curve,bytes,0,,"));
}

TEST_F(ComparedRuns, ThatAreEqualDifferInNothing) {
  const Comparison c = compare_runs({folder_ / "a", folder_ / "a"});
  EXPECT_THAT(c.settings, IsEmpty());
  EXPECT_THAT(to_text(c, kAnyWidth), HasSubstr("the settings are equal"));
  EXPECT_THAT(to_html(c), HasSubstr("The settings are equal."));
  // Two runs of one name go by their folders.
  EXPECT_EQ(c.runs[0], (folder_ / "a").string());
}

TEST_F(ComparedRuns, ThatHaveNotEndedHaveEpochs) {
  fs::remove(folder_ / "b" / "report.json");
  const Comparison c = compared();
  EXPECT_THAT(c.unfinished, ElementsAre("second"));
  EXPECT_THAT(row(c.figures, "epochs").texts, ElementsAre("5", "5"));
  EXPECT_THAT(row(c.figures, "test accuracy").texts, ElementsAre("0.913", "-"));
  EXPECT_THAT(to_text(c, kAnyWidth), HasSubstr("second has not ended"));
}

TEST_F(ComparedRuns, ThatFailedSayWhy) {
  fs::remove(folder_ / "b" / "report.json");
  write_file(folder_ / "b" / "failure.json",
             R"({"reason":"no <room>","phase":"rest","epoch":2,"steps":9,"time_s":1795000000})");
  const Comparison c = compared();
  EXPECT_THAT(c.unfinished, IsEmpty());
  EXPECT_THAT(to_text(c, kAnyWidth), HasSubstr("\nsecond failed: no <room>\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(c))["failed"]["second"], "no <room>");
  EXPECT_THAT(to_html(c), HasSubstr("second failed: no &lt;room&gt;"));
}

TEST_F(ComparedRuns, HostileNamesAreEscaped) {
  write_run(folder_ / "x", "all", "<script>alert(1)</script>");
  const std::string html = to_html(compare_runs({folder_ / "a", folder_ / "x"}));
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
}

TEST_F(ComparedRuns, OfAnotherNumberOrNoRunAreRefused) {
  EXPECT_THROW((void)compare_runs({folder_ / "a"}), ConfigError);
  EXPECT_THROW((void)compare_runs(std::vector<fs::path>(kMostCompared + 1, folder_ / "a")),
               ConfigError);
  fs::create_directories(folder_ / "none");
  EXPECT_THROW((void)compare_runs({folder_ / "a", folder_ / "none"}), ConfigError);
  EXPECT_THROW((void)compare_runs({folder_ / "a", folder_ / "absent"}), IoError);
}

}  // namespace
}  // namespace tare::report
