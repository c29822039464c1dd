// The page of a run, complete, unfinished and damaged.
#include "tare/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "report/markup_check.h"
#include "report/run_folder.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/report/run_data.h"
#include "tare/report/worst_rows.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace tare::testing;

TEST(RunReport, ShowsCurvesPhasesAndMemory) {
  const TempDir folder;
  write_run(folder.path());
  write_timeline(folder / "timeline.csv", 30);
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  for (const char* text :
       {"Loss by epoch", "Loss of the batch by step", "Accuracy by epoch", "Learning rate by step",
        "Training loss from 2.1 to 0.3.", "finished on cpu; 1,000 digits",
        "test accuracy</dt><dd>0.913",
        "<th scope=\"row\">head</th><td>3</td><td>5.5 s</td><td>1,234</td><td>4.8 MiB</td>",
        "Allocated bytes by category", "<title>activations</title>", "Share of the time by phase",
        "in phase backward", "<th scope=\"row\">other</th><td>step</td><td>3</td><td>72 B</td>",
        "name: &#39;digits&#39;"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("class=\"missing\"")));
}

TEST(RunReport, JoinsThePhasesIntoOneCurve) {
  const TempDir folder;
  write_run(folder.path());
  const std::string html = html_report(folder.path());
  const size_t chart = html.find("<title>Loss by epoch</title>");
  const size_t line = html.find("class=\"line s0\" d=\"", chart);
  ASSERT_NE(line, std::string::npos);
  const std::string path = html.substr(line, html.find("/>", line) - line);
  EXPECT_EQ(std::ranges::count(path, 'M'), 1) << path;
  EXPECT_EQ(std::ranges::count(path, 'L'), 4) << path;
  for (const char* title : {">epoch</text>", ">loss</text>", ">step</text>",
                            ">accuracy of the validation</text>", ">learning rate</text>"})
    EXPECT_THAT(html, HasSubstr(title));
}

TEST(RunReport, CallsNoColumnOfACallbackAFigureOfTheValidation) {
  const TempDir folder;
  write_run(folder.path());
  write_file(folder / "head.csv",
             "epoch,train_loss,valid_loss,accuracy,used_mib,seconds\n0,2.1,2,0.31,12,1.5\n"
             "1,1.2,1.3,0.55,14,1.5\n");
  const std::string html = html_report(folder.path());
  for (const char* title : {">accuracy of the validation</text>",
                            "<title>used_mib by epoch</title>", ">used_mib</text>"})
    EXPECT_THAT(html, HasSubstr(title));
  EXPECT_THAT(html, Not(HasSubstr("used_mib of the validation")));
}

TEST(RunReport, KnowsTheMetricsOfARunThatHasNotEndedByItsRecipe) {
  const TempDir folder;
  write_file(folder / "recipe.yaml", "name: r\nmetrics: [accuracy]\nphases: [{name: head}]\n");
  write_file(folder / "head.csv",
             "epoch,train_loss,valid_loss,accuracy,used_mib,peak_mib,seconds\n"
             "0,2.1,2,0.31,12,5,1.5\n1,1.2,1.3,0.55,12,6,1.5\n");
  const std::string html = html_report(folder.path());
  EXPECT_THAT(html, HasSubstr(">accuracy of the validation</text>"));
  EXPECT_THAT(html, HasSubstr("<title>peak_mib by epoch</title>"));
  EXPECT_THAT(html, Not(HasSubstr("peak_mib of the validation")));
  EXPECT_THAT(html, HasSubstr("Equal in every epoch: used_mib 12."));
}

TEST(RunReport, DrawsNoCurveOfAColumnThatNeverChanges) {
  const TempDir folder;
  write_run(folder.path());
  write_file(folder / "head.csv",
             "epoch,train_loss,valid_loss,accuracy,used_mib,seconds\n0,2.1,2,0.5,12,1.5\n"
             "1,1.2,1.3,0.5,12,1.5\n");
  const std::string html = html_report(folder.path());
  EXPECT_THAT(html, HasSubstr("Equal in every epoch: used_mib 12."));
  EXPECT_THAT(html, Not(HasSubstr("<title>used_mib by epoch</title>")));
  EXPECT_THAT(html, HasSubstr("<title>Accuracy by epoch</title>")) << "of the validation";
}

TEST(RunReport, DrawsTheSearchForARateWithItsSuggestions) {
  const TempDir folder;
  write_run(folder.path());
  EXPECT_THAT(html_report(folder.path()), Not(HasSubstr("Search for the rate")));
  write_file(folder / "head.lr_find.csv",
             "lr,loss,smoothed\n1e-05,2.3,2.3\n0.001,2,2.2\n0.1,1.1,1.9\n1,nan,nan\n");
  std::string report = content_of(folder / "report.json");
  const std::string name = R"("name":"head",)";
  report.insert(report.find(name) + name.size(),
                R"("lr_find":{"lr":0.002,"suggestion":"valley","valley":0.002,"steepest":0.001,)"
                R"("minimum":null,"steps":4,"stopped_early":false,"seconds":0.1},)");
  write_file(folder / "report.json", report);
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  for (const char* text :
       {"<title>Search for the rate of head</title>", ">1e-5</text>", ">learning rate</text>",
        ">valley</text>", ">steepest</text>", "The phase took 0.002, valley."})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("minimum")));
}

TEST(RunReport, ShowsTheMachineAndWhatWasConfused) {
  const TempDir folder;
  write_run(folder.path());
  EXPECT_THAT(html_report(folder.path()), Not(HasSubstr("confusion matrix")));
  add_to_run(folder.path(),
             R"("machine":{"tare":"0.1.0, commit 43d405c","libtorch":"2.11.0","processor":"A CPU",)"
             R"("threads":2,"memory_bytes":1073741824,"device":"A card"},"classification":{)"
             R"("labels":["cat","<dog>"],"counts":[[7,1],[0,4]],"worst":[{"index":17,)"
             R"("label":"cat","predicted":"<dog>","probability":0.75,"loss":1.5}]},)");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  for (const char* text :
       {"commit 43d405c", "2.11.0", "A CPU, 2 threads", "A card", "1 GiB",
        "<th scope=\"col\">&lt;dog&gt;</th>", ">7</td>", "<td>87.5%</td>", "<td>100%</td>",
        "<th scope=\"row\">17</th><td>cat</td><td>&lt;dog&gt;</td><td>75%</td><td>1.5</td>"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST(RunReport, CountsEachLabelWhereASampleMayHaveSeveral) {
  const TempDir folder;
  write_run(folder.path());
  add_to_run(
      folder.path(),
      R"x("classification":{"labels":["cat","<dog>"],"counts":[],"worst":[{"index":17,)x"
      R"x("label":"cat, <dog>","predicted":"(none)","probability":null,"loss":1.5,)x"
      R"("probabilities":[0.25,0.375]}],"label_counts":[)"
      R"({"true_positives":3,"false_positives":1,"false_negatives":2,"true_negatives":4},)"
      R"({"true_positives":0,"false_positives":0,"false_negatives":0,"true_negatives":10}]},)");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  for (const char* text : {"so there is no confusion matrix",
                           "<td>3</td><td>1</td><td>2</td><td>4</td><td>75%</td>"
                           "<td>60%</td>",
                           "<td>10</td><td>-</td><td>-</td>",
                           "<th scope=\"row\">17</th><td>cat, "
                           "&lt;dog&gt;</td><td>(none)</td><td>&lt;dog&gt; 37.5%, cat "
                           "25%</td><td>1.5</td>"})
    EXPECT_THAT(html, HasSubstr(text));
  const auto table = [&](const std::string& name) -> std::string {
    for (const DataFile& file : run_tables(folder.path()))
      if (file.name == name) return file.text;
    return "absent";
  };
  EXPECT_EQ(table("predictions.csv"), "absent");
  EXPECT_EQ(table("labels.csv"),
            "label,true_positives,false_positives,false_negatives,true_negatives\n"
            "cat,3,1,2,4\n<dog>,0,0,0,10\n");
  EXPECT_EQ(table("worst_samples.csv"),
            "index,name,label,predicted,probability,loss,cat,<dog>\n"
            "17,,\"cat, <dog>\",(none),,1.5,0.25,0.375\n");
}

TEST(RunReport, ShowsTheRowsThatArePredictedWorst) {
  const TempDir folder;
  write_run(folder.path());
  EXPECT_THAT(html_report(folder.path()), Not(HasSubstr("Worst rows")));
  const std::vector<WorstRow> rows{{"houses.csv:7", 12.5, 7.25, 27.5}, {"a,<b>.csv:9", 1, 2, 1}};
  io::write_atomically(folder / kWorstRowsFile, csv_of(rows));
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  for (const char* text :
       {"Worst rows", "<th scope=\"row\">houses.csv:7</th><td>12.5</td><td>7.25</td><td>27.5</td>",
        "<th scope=\"row\">a,&lt;b&gt;.csv:9</th><td>1</td><td>2</td><td>1</td>"})
    EXPECT_THAT(html, HasSubstr(text));
  for (const char* damaged :
       {"row,target,predicted,loss\na,1,2\n", "row,target,predicted,loss\na,1,2,x\n"}) {
    io::write_atomically(folder / kWorstRowsFile, damaged);
    EXPECT_THROW((void)html_report(folder.path()), FormatError) << damaged;
  }
}

TEST(RunReport, ShowsTheTextsOfTheWorstSamples) {
  const TempDir folder;
  write_run(folder.path());
  add_to_run(folder.path(),
             R"("classification":{"labels":["bad","good"],"counts":[[7,1],[0,4]],"worst":[)"
             R"({"index":17,"label":"bad","predicted":"good","probability":0.75,"loss":1.5,)"
             R"("name":"list.csv:8","text":"<i>so, so</i>"}]},)");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, HasSubstr("<span>&lt;i&gt;so, so&lt;/i&gt;</span><span><b>bad</b>"));
  for (const DataFile& file : run_tables(folder.path()))
    if (file.name == "worst_samples.csv") {
      EXPECT_EQ(file.text,
                "index,name,label,predicted,probability,loss,text\n"
                "17,list.csv:8,bad,good,0.75,1.5,\"<i>so, so</i>\"\n");
    }
}

TEST(RunReport, ShowsTheWorstSamplesOfModelsWithoutClasses) {
  const TempDir folder;
  write_run(folder.path());
  // Pictures whose target is a number; report.json has the pictures.
  std::vector<WorstRow> rows{{"a.png", 0.5, 0.25, 2}};
  io::write_atomically(folder / kWorstRowsFile, csv_of(rows));
  add_to_run(folder.path(), R"("worst_rows":[{"name":"a.png","target":0.5,"predicted":0.25,)"
                            R"("loss":2,"picture":"iVBORw0KGgoAAAA="}],)");
  EXPECT_THAT(html_report(folder.path()),
              AllOf(HasSubstr("alt=\"a.png\"><span><b>0.5</b>, predicted <b>0.25</b></span>"),
                    HasSubstr("Worst rows")));
  // Texts of a language model, which has no number.
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const TempDir other;
  write_run(other.path());
  rows = {{"sample 3", kNone, kNone, 2.5, "", "to be, or"}};
  io::write_atomically(other / kWorstRowsFile, csv_of(rows));
  EXPECT_EQ(csv_of(rows), "row,target,predicted,loss,text\nsample 3,,,2.5,\"to be, or\"\n");
  EXPECT_EQ(csv_of(read_worst_rows(other / kWorstRowsFile)), csv_of(rows));
  const std::string html = html_report(other.path());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, AllOf(HasSubstr("<span>to be, or</span>"), HasSubstr("Worst samples"),
                          Not(HasSubstr("nan"))));
}

TEST(RunReport, ShowsThePicturesOfTheWorstSamples) {
  const TempDir folder;
  write_run(folder.path());
  const auto worst = [](const std::string& picture) {
    return R"("classification":{"labels":["cat","<dog>"],"counts":[[7,1],[0,4]],"worst":[{"index":17,)"
           R"("label":"cat","predicted":"<dog>","probability":0.75,"loss":1.5,"picture":")" +
           picture + "\"}]},";
  };
  add_to_run(folder.path(), worst("iVBORw0KGgoAAAA="));
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  for (const char* text : {"<img src=\"data:image/png;base64,iVBORw0KGgoAAAA=\" alt=\"sample 17\"",
                           "<b>cat</b>, predicted <b>&lt;dog&gt;</b>", "with 75%, loss 1.5",
                           "img-src data:", "Worst samples", "Confusion matrix"})
    EXPECT_THAT(html, HasSubstr(text));
  for (const std::string wrong :
       {"iVBORw0KGgo\\\"onerror=", "R0lGODlhAQ==", "iVBORw0KGgoAAAA", "iVBORw0KGgoA&<>="}) {
    const TempDir other;
    write_run(other.path());
    add_to_run(other.path(), worst(wrong));
    EXPECT_THROW(static_cast<void>(html_report(other.path())), FormatError) << wrong;
  }
}

TEST(RunReport, NamesTheFilesOfTheWorstSamples) {
  const auto html_of = [](const std::string& name, const std::string& picture) {
    const TempDir folder;
    write_run(folder.path());
    add_to_run(folder.path(),
               R"("classification":{"labels":["cat","dog"],"counts":[[7,1],[0,4]],"worst":[{)"
               R"("index":17,"name":")" +
                   name + R"(","label":"cat","predicted":"dog","probability":0.75,"loss":1.5)" +
                   picture + "}]},");
    return html_report(folder.path());
  };
  const std::string cards = html_of("cat/<1>.png", R"(,"picture":"iVBORw0KGgoAAAA=")");
  EXPECT_TRUE(is_well_formed(cards));
  EXPECT_THAT(cards, HasSubstr("alt=\"cat/&lt;1&gt;.png\">"));
  EXPECT_THAT(cards, HasSubstr("<span class=\"soft\">cat/&lt;1&gt;.png</span>"));
  EXPECT_THAT(html_of("cat/1.png", ""), HasSubstr("<th scope=\"row\">cat/1.png</th><td>cat</td>"));
  const std::string cut = html_of(std::string(200, 'a') + "/1.png", "");
  EXPECT_THAT(cut, HasSubstr("<th scope=\"row\">..." + std::string(71, 'a') + "/1.png</th>"));
}

TEST(RunReport, SaysThatTheRunWasResumed) {
  const auto html_of = [](const std::string& members) {
    const TempDir folder;
    write_run(folder.path());
    add_to_run(folder.path(), members);
    return html_report(folder.path());
  };
  EXPECT_THAT(html_of(""), Not(HasSubstr(", resumed")));
  const std::string from = R"("resumed_from":"autosave-1",)";
  EXPECT_THAT(html_of(from), HasSubstr(", resumed; ")) << "of an earlier version";
  EXPECT_THAT(html_of(from + R"("resumes":1,)"), HasSubstr(", resumed once; "));
  EXPECT_THAT(html_of(from + R"("resumes":3,)"), HasSubstr(", resumed 3 times; "));
}

TEST(RunReport, ListsConfusedPairsOfManyLabels) {
  const TempDir folder;
  write_run(folder.path());
  std::string labels, counts;
  for (int i = 0; i < 40; ++i) {
    std::string row;
    for (int j = 0; j < 40; ++j) row += (j ? "," : "") + std::string(i == 3 && j == 5 ? "9" : "0");
    labels += (i ? ",\"" : "\"") + std::to_string(100 + i) + '"';
    counts += (i ? ",[" : "[") + row + ']';
  }
  add_to_run(folder.path(), "\"classification\":{\"labels\":[" + labels + "],\"counts\":[" +
                                counts + "],\"worst\":[]},");
  EXPECT_THAT(html_report(folder.path()),
              HasSubstr("<th scope=\"row\">103</th><td>105</td><td>9</td>"));
}

TEST(RunReport, RefusesADamagedClassification) {
  for (const char* part : {R"({"labels":["a"],"counts":[],"worst":[]})",
                           R"({"labels":["a"],"counts":[[1,2]],"worst":[]})",
                           R"({"labels":[1],"counts":[[1]],"worst":[]})",
                           R"({"labels":["a"],"counts":[["x"]],"worst":[]})",
                           R"({"labels":["a"],"counts":[],"worst":[],"label_counts":[]})",
                           R"({"labels":["a"],"counts":[],"worst":[],"label_counts":[{}]})",
                           R"({"labels":["a"],"counts":[[1]],"worst":[{}]})", "3"}) {
    const TempDir folder;
    write_run(folder.path());
    add_to_run(folder.path(), std::string("\"classification\":") + part + ',');
    EXPECT_THROW(static_cast<void>(html_report(folder.path())), FormatError) << part;
  }
}

TEST(RunReport, ReadsTheTraceFromItsOwnFolder) {
  const TempDir folder, trace;
  write_run(folder.path());
  EXPECT_THAT(html_report(folder.path()), HasSubstr("no record of the run&#39;s allocations"));
  EXPECT_THROW((void)html_report(folder.path(), trace.path()), IoError);
  write_timeline(trace / "timeline.csv", 3);
  EXPECT_THAT(html_report(folder.path(), trace.path()), HasSubstr("At the peak: "));
}

TEST(RunReport, StaysBelowAMegabyteWithAMillionEvents) {
  const TempDir folder;
  write_run(folder.path());
  write_timeline(folder / "timeline.csv", 50'000);
  const std::string html = html_report(folder.path());
  EXPECT_LT(html.size(), 200'000U);
  EXPECT_THAT(html, HasSubstr("1,005,001 allocations and frees"));
}

TEST(RunReport, StaysBelowAMegabyteWithManyPhasesAndMetrics) {
  const TempDir folder;
  write_run(folder.path());
  std::string recipe = "phases:\n", header = "epoch,train_loss,valid_loss";
  for (int i = 0; i < 300; ++i) header += ",metric" + std::to_string(i);
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "phase-with-a-long-name-" + std::to_string(i);
    recipe += "  - {name: " + name + "}\n";
    if (i >= 30) continue;
    std::string rows = header + ",seconds\n";
    for (int epoch = 0; epoch < 60; ++epoch) {
      rows += std::to_string(epoch);
      for (int column = 0; column < 302; ++column) rows += ",0." + std::to_string(column * 7919);
      rows += ",1\n";
    }
    write_file(folder / (name + ".csv"), rows);
  }
  recipe += "# " + std::string(500'000, '<') + '\n';
  write_file(folder / "recipe.yaml", recipe);
  const std::string html = html_report(folder.path());
  EXPECT_LT(html.size(), kMaxPageBytes);
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, HasSubstr("and 2,802 more"));  // of 3,002, two of them from report.json
}

/// The run with these members in its first phase.
void add_to_first_phase(const std::filesystem::path& folder, const std::string& members) {
  std::string report = content_of(folder / "report.json");
  report.insert(report.find("\"epochs\":[],") + 12, members);
  write_file(folder / "report.json", report);
}

TEST(RunReport, TellsOfMicroBatchesAndOverflows) {
  const TempDir folder;
  write_run(folder.path());
  EXPECT_THAT(html_report(folder.path()), Not(HasSubstr("micro-batches")));
  add_to_first_phase(folder.path(), R"("micro_batch":52,"overflows":3,)");
  const std::string html = html_report(folder.path());
  EXPECT_THAT(html, HasSubstr("head worked on batches in parts; its micro-batches were of 52 "));
  EXPECT_THAT(html, HasSubstr("head skipped 3 steps"));
  EXPECT_THAT(html, Not(HasSubstr("stopped early")));
}

TEST(RunReport, NamesTheCallbackThatStoppedAPhaseEarly) {
  const TempDir folder;
  write_run(folder.path());
  add_to_first_phase(folder.path(), R"("stopped_by":"stop_file:<stop>",)");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, HasSubstr("head was stopped early by stop_file:&lt;stop&gt;."));
}

TEST(RunReport, ListsLeaksByTheLineThatAllocatedThem) {
  const TempDir folder;
  write_run(folder.path());
  EXPECT_THAT(html_report(folder.path()), HasSubstr("answers for: no leak."));
  add_to_first_phase(
      folder.path(),
      R"("planned_peak_bytes":3145728,"leaks":[{"phase":"forward","site":"/me/<a>.cpp:41",)"
      R"("blocks":3,"bytes":2048,"youngest_steps":1,"oldest_steps":1200},{"phase":"none",)"
      R"("site":"","blocks":1,"bytes":8,"youngest_steps":2,"oldest_steps":2}],)");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, HasSubstr("<td>3 MiB</td>")) << "planned";
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">head</th><td>3</td><td>2 KiB</td><td>1 to 1,200"
                              "</td><td>forward</td><td>/me/&lt;a&gt;.cpp:41</td>"));
  EXPECT_THAT(html, HasSubstr("<td>8 B</td><td>2</td><td>none</td><td>unknown</td>"));
}

TEST(RunReport, RefusesDamagedLeaks) {
  for (const char* leaks : {R"("leaks":3,)", R"("leaks":[3],)", R"("leaks":[{"phase":"x"}],)"}) {
    const TempDir folder;
    write_run(folder.path());
    add_to_first_phase(folder.path(), leaks);
    EXPECT_THROW(static_cast<void>(html_report(folder.path())), FormatError) << leaks;
  }
}

TEST(RunReport, EscapesWhatTheFilesSay) {
  const TempDir folder;
  const std::string evil = "<img src=x onerror=alert(1)>&\"";
  write_run(folder.path(), "<b>all&");
  write_file(folder / "<b>all&.csv", "epoch,train_loss,valid_loss,\"" + std::string("<i>\"\"m") +
                                         "\",seconds\n0,1,1,0.5,1\n");
  std::string report;
  write_file(folder / "recipe.yaml", "name: x\nphases: [{name: '<b>all&'}] # </pre><script>\n");
  write_file(
      folder / "report.json",
      R"({"name":"<script>alert(1)</script>","data":"<img src=x>","device":"cpu","reason":"finished",)"
      R"("phases":[],"residual_bytes":0,"process_bytes":0,"seconds":null,)"
      R"("test":{"loss":null,"metrics":{"<u>":1}}})");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  for (const char* raw : {"<script", "<img", "<b>", "<i>", "<u>", "</pre><script>"})
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

TEST(RunReport, CallsFiguresOfTheValidationSplitByItsName) {
  const TempDir folder;
  write_run(folder.path());
  write_file(folder / "report.json",
             R"({"name":"a","data":"10 generated digits","device":"cpu","reason":"finished",)"
             R"("phases":[],"residual_bytes":0,"process_bytes":0,"seconds":1,)"
             R"("classification":{"labels":["a","b"],"counts":[[1,2],[3,4]],"worst":[]},)"
             R"("valid":{"loss":0.5,"metrics":{"accuracy":0.25}}})");
  const std::string html = html_report(folder.path());
  EXPECT_THAT(html, HasSubstr("valid accuracy"));
  EXPECT_THAT(html, HasSubstr("<h2>Validation</h2>"));
  EXPECT_THAT(html, Not(HasSubstr("test accuracy")));
  EXPECT_THAT(html, Not(HasSubstr("<h2>Test</h2>")));
  EXPECT_THAT(html, HasSubstr("10 generated digits"));
}

TEST(RunReport, NamesNoOtherFileOrAddress) {
  const TempDir folder;
  write_run(folder.path());
  write_timeline(folder / "timeline.csv", 3);
  const std::string html = html_report(folder.path());
  for (const char* reference : {"src=", "href=", "url(", "@import", "<script", "<link", "<iframe"})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(RunReport, SaysWhatAnUnfinishedRunLacks) {
  const TempDir folder;
  write_run(folder.path());
  fs::remove(folder / "report.json");
  fs::remove(folder / "all.csv");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, HasSubstr("The run has not ended"));
  EXPECT_THAT(html, HasSubstr("Phase all has no finished epoch."));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">head</th><td>3</td><td>-</td>"));
  fs::remove(folder / "head.csv");
  fs::remove(folder / "head.steps.csv");
  fs::remove(folder / "all.steps.csv");
  EXPECT_TRUE(is_well_formed(html_report(folder.path()))) << "not even an epoch";
}

TEST(RunReport, SaysWhyARunFailed) {
  const TempDir folder;
  write_run(folder.path());
  fs::remove(folder / "report.json");
  write_file(folder / "failure.json",
             R"({"reason":"out of <room>","phase":"all","epoch":2,"steps":1,"time_s":1795000000})");
  const std::string html = html_report(folder.path());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, HasSubstr("failed: out of &lt;room&gt;"));
  EXPECT_THAT(html, HasSubstr("The run failed in phase all, epoch 2, after 1 step, at 20"));
  EXPECT_THAT(html, Not(HasSubstr("not ended")));
}

TEST(RunReport, NeedsNoRecipe) {
  const TempDir folder;
  write_run(folder.path());
  fs::remove(folder / "recipe.yaml");
  const std::string html = html_report(folder.path());
  EXPECT_THAT(html, HasSubstr("recipe.yaml is missing"));
  EXPECT_THAT(html, HasSubstr("Loss by epoch"));
}

TEST(RunReport, RefusesAFolderWithoutARun) {
  const TempDir folder;
  EXPECT_THROW((void)html_report(folder / "absent"), IoError);
  try {
    (void)html_report(folder.path());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds no recipe.yaml, no report.json and no history.csv"));
  }
}

TEST(RunReport, RefusesDamagedFilesByName) {
  struct Damage {
    const char *file, *text, *message;
  };
  for (const auto& [file, text, message] : std::initializer_list<Damage>{
           {"report.json", "{\"name\":", "report.json: the file: is not JSON"},
           {"report.json", "[]", "is not an object"},
           {"report.json", "{\"name\":3}", "name: is not text"},
           {"report.json", "{\"name\":\"a\"}", "data: is missing"},
           {"head.csv", "epoch,train_loss\n", "head.csv: line 1: has too few columns"},
           {"head.csv", "a,b,c,d\n1,2,3\n", "line 2: has not as many fields"},
           {"head.steps.csv", "step,loss,lr\n1,x,2\n", "line 2: has text where a number"},
           {"recipe.yaml", "phases: [{name: ../../secret}]", "has a path as name"},
           {"timeline.csv", "x", "is not the header"}}) {
    const TempDir folder;
    write_run(folder.path());
    write_file(folder / file, text);
    try {
      (void)html_report(folder.path());
      ADD_FAILURE() << file << ": " << text;
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

}  // namespace
}  // namespace tare::report
