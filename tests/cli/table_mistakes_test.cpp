// Tables with problems, and files in the place of tables: what a message says to do works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/tare_folder.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class TableMistakes : public ::testing::Test, protected TareFolder {
 protected:
  /// Runs a line of a shell in which `tare` is the program.
  [[nodiscard]] ProgramResult shell(const std::string& line) const {
    const std::string program = fs::absolute(program_path("tare")).string();
    return run_program("/bin/bash", {"-c", "tare() { '" + program + "' \"$@\"; }; " + line},
                       folder_.path());
  }
  /// Writes a recipe with these data.
  void recipe(const std::string& name, const std::string& data,
              const std::string& more = "") const {
    write(name + ".yaml", "name: " + name + "\ndevice: cpu\nbatch: 8\ndata: " + data +
                              "\nphases: [{epochs: 1, lr: 0.01}]\nexport: m.tare\n" + more);
  }
  /// Runs the command that stands behind "problems: `" in a message.
  [[nodiscard]] ProgramResult named_command(const std::string& message) const {
    const size_t start = message.find("problems: `") + std::string("problems: `").size();
    return shell(message.substr(start, message.find('`', start) - start));
  }
  static std::string numbers(int rows) {
    std::string text;
    for (int i = 0; i < rows; ++i)
      text +=
          std::to_string(i % 7) + ',' + std::to_string(i % 5) + ',' + std::to_string(i) + ".5\n";
    return text;
  }
};

TEST_F(TableMistakes, TheNamedCommandListsAllProblems) {
  std::string rows = "id|it's size|price\n";
  for (int i = 0; i < 40; ++i)
    rows += std::to_string(i) + '|' + (i % 10 == 3 ? "x" : std::to_string(i % 7)) + '|' +
            std::to_string(i) + ".5\n";
  write("bad.csv", rows);
  recipe("bad",
         "{name: csv, file: bad.csv, target: price, separator: '|', omit: [id], numbers: [\"it's "
         "size\"], train: 0.7, valid: 0.3}",
         "model: tabular\nloss: mse\n");
  const auto run = tare({"run", "bad.yaml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("bad.csv: line 5: column 'it's size' has 'x'"),
                             HasSubstr("; 3 more problems: `tare data check bad.csv name=csv "
                                       "target=price ")));
  const auto named = named_command(run.err);
  EXPECT_EQ(named.status, 2) << named.err;
  for (const char* line : {"line 5", "line 15", "line 25", "line 35"})
    EXPECT_THAT(named.out, HasSubstr(std::string("error: ") + line)) << run.err;
  EXPECT_THAT(named.out, HasSubstr("4 errors, 0 warnings"));
}

TEST_F(TableMistakes, ATextListNamesEveryWrongLine) {
  std::string rows = "review,kind\n";
  for (int i = 0; i < 20; ++i)
    rows += (i == 3 ? "" : "a film " + std::to_string(i)) +
            (i == 7  ? ","
             : i % 2 ? ",no"
                     : ",yes") +
            '\n';
  write("reviews.csv", rows);
  write("more.csv", "review,kind\nfine,maybe\ngood,yes\n");
  recipe("text",
         "{name: text_list, file: reviews.csv, columns: review, target: kind, valid_files: "
         "more.csv}",
         "model: {name: lstm, width: 8}\n");
  const auto run = tare({"validate", "text.yaml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              HasSubstr("reviews.csv: line 5: has no text: remove the row; 2 more problems: "
                        "`tare data check reviews.csv name=text_list target=kind "
                        "'columns=[review]' 'valid_files=[more.csv]'` lists them"));
  const auto named = named_command(run.err);
  EXPECT_EQ(named.status, 2);
  EXPECT_THAT(
      named.out,
      AllOf(HasSubstr("error: reviews.csv: line 5 has no text"),
            HasSubstr("error: reviews.csv: line 9 has no label"),
            HasSubstr("error: more.csv: line 2 has the class 'maybe', which no text"),
            HasSubstr("text_list: 19 texts\n2 classes: 8 no, 11 yes\n3 errors, 0 warnings")));
  const auto page = nlohmann::json::parse(
      tare({"data", "check", "text.yaml", "data.valid_files=", "--json"}).out);
  EXPECT_EQ(page["problem_count"], 2);
  EXPECT_EQ(page["problems"][1]["line"], 9);
  EXPECT_EQ(page["texts"], 18);
  EXPECT_EQ(page["classes"],
            nlohmann::json::parse(R"([{"name": "no", "texts": 8}, {"name": "yes", "texts": 10}])"));
}

TEST_F(TableMistakes, AModelOfTextsNamesItsColumnAndThoseThatThereAre) {
  std::string rows = "review,kind\n";
  for (int i = 0; i < 20; ++i) rows += "a film " + std::to_string(i) + (i % 2 ? ",no\n" : ",yes\n");
  write("reviews.csv", rows);
  recipe("text", "{name: text_list, file: reviews.csv, columns: review, target: kind}",
         "model: {name: lstm, width: 8}\n");
  ASSERT_EQ(tare({"run", "text.yaml"}).status, 0);
  EXPECT_THAT(tare({"inspect", "runs/text"}).out, HasSubstr("tokens, up to 9 in the data"));
  write("other.csv", "id,comment\n1,good\n2,bad\n");
  const auto other = tare({"predict", "runs/text", "other.csv"});
  EXPECT_EQ(other.status, 2);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, AllOf(HasSubstr("other.csv: names: have no 'review', which has the texts "
                                         "in the training; there are id, comment: give the column"),
                               Not(HasSubstr("whole number"))));
  const auto expected = tare({"predict", "runs/text", "reviews.csv"});
  EXPECT_EQ(expected.status, 0) << expected.err;
  const auto piped = shell("cat reviews.csv | tare predict runs/text -");
  EXPECT_EQ(piped.status, 0) << piped.err;
  const auto first = [](const std::string& lines) {
    const size_t start = lines.find(":2:");
    return lines.substr(start, lines.find('\n', start) - start);
  };
  EXPECT_EQ(first(piped.out), first(expected.out));
  write("one.json", "[{\"review\": \"a film 0\"}]");
  const auto json = shell("cat one.json | tare predict runs/text -");
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_THAT(json.out, ContainsRegex("^-:1: (yes|no) "));
  write("lacks.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  const auto lacks = shell("cat lacks.jsonl | tare predict runs/text -");
  EXPECT_EQ(lacks.status, 2);
  EXPECT_THAT(lacks.err, HasSubstr("-: names: have no 'review', which has the texts in the "
                                   "training; there are text"));
  const auto head = shell("cat other.csv | tare predict runs/text -");
  EXPECT_EQ(head.status, 2);
  EXPECT_THAT(head.err, AllOf(HasSubstr("-: line 1: has no number, and does not name the column "
                                        "'review', which has the texts in the training: it is "
                                        "'id,comment'; --text takes each line as a text"),
                              Not(HasSubstr("line 2"))));
  const auto raw = shell("cat reviews.csv | tare predict runs/text --text -");
  EXPECT_EQ(raw.status, 2);
  EXPECT_EQ(raw.out, "");
  EXPECT_THAT(raw.err, HasSubstr("standard input is a table, and --text takes each line as a text: "
                                 "omit --text, so that the column 'review' is taken"));
  const auto lines = shell("printf '[good] film\\nbad film\\n' | tare predict runs/text --text -");
  EXPECT_EQ(lines.status, 0) << lines.err;
  EXPECT_THAT(lines.out, HasSubstr("-:2: "));
  const auto bytes = shell("printf '97,32\\n98\\n' | tare predict runs/text -");
  EXPECT_EQ(bytes.status, 0) << bytes.err;
}

TEST_F(TableMistakes, AModelOfATableTakesNoLinesOfText) {
  write("t.csv", "a,b,y\n" + numbers(30));
  recipe("table", "{name: csv, file: t.csv, target: y}",
         "model: tabular\nloss: mse\nmetrics: []\n");
  ASSERT_EQ(tare({"run", "table.yaml"}).status, 0);
  const auto text = shell("echo '1,2' | tare predict runs/table --text -");
  EXPECT_EQ(text.status, 2);
  EXPECT_THAT(text.err, HasSubstr("the model takes no lines of text, but rows of a table with the "
                                  "columns a, b: omit --text, and give a CSV file or JSON lines"));
}

TEST_F(TableMistakes, FilesOfAnotherKindAreNamed) {
  write("t.csv", "a,b,y\n" + numbers(30));
  write("t.json", "[{\"a\": 1, \"y\": 2.5},\n {\"a\": 2, \"y\": 3.5}]\n");
  write("nan.jsonl", "{\"a\": 1, \"y\": 2.5}\n{\"a\": NaN, \"y\": 3.5}\n{\"a\": 3, \"y\": 4}\n");
  write("nan.json", "[{\"a\": \"NaN\", \"y\": -Infinity}]");
  write("x.npz", std::string("PK\3\4") + std::string(22, '\0') + std::string("\5\0\0\0x.npy", 9));
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"data", "check"});
    const auto result = tare(words);
    EXPECT_EQ(result.status, 2) << result.out;
    return result.err + result.out;
  };
  EXPECT_THAT(refusal({"t.json", "name=csv", "target=y"}),
              HasSubstr("t.json: the file: holds JSON and no CSV: the data set jsonl reads it"));
  EXPECT_THAT(
      refusal({"t.csv", "name=jsonl", "target=y"}),
      HasSubstr("t.csv: the file: begins with 'a,b,y', which is no JSON object: the data set "
                "csv reads a table with separators"));
  EXPECT_THAT(
      refusal({"nan.jsonl", "target=y"}),
      HasSubstr("line 2 has NaN, which JSON does not have: write null for a missing value"));
  EXPECT_THAT(refusal({"nan.json", "target=y"}),
              HasSubstr("begins as a JSON array, but is none: it has -Infinity, which JSON"));
  EXPECT_THAT(refusal({"x.npz"}), AllOf(HasSubstr("is an archive of arrays of NumPy: save one"),
                                        Not(HasSubstr("Excel"))));
}

TEST_F(TableMistakes, SettingsAreTakenAsTheyAreTyped) {
  std::string rows = "a|b|y\n" + numbers(30);
  for (char& c : rows)
    if (c == ',') c = '|';
  write("t.csv", "a,b,y\n" + numbers(30));
  write("bar.csv", rows);
  for (char& c : rows)
    if (c == '|') c = '\t';
  write("tab.csv", rows);
  recipe("table", "{name: csv, file: t.csv, target: y, omit: [b]}",
         "model: tabular\nloss: mse\nmetrics: []\n");
  const auto validates = [&](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"validate", "table.yaml"});
    const auto result = tare(settings);
    EXPECT_EQ(result.status, 0) << result.err;
  };
  validates({"data.separator=,"});
  validates({"data.separator=|", "data.file=bar.csv"});
  validates({"data.separator=\\t", "data.file=tab.csv"});
  validates({"data.omit=", "data.columns=b"});
  validates({"data.target=", "data.targets=y"});
}

TEST_F(TableMistakes, NumbersThatAreTakenForClassesAreNamed) {
  write("t.csv",
        "a,b,count\n1,2,3\n2,1,4\n4,2,3\n3,3,5\n1,1,4\n2,2,5\n5,1,3\n2,3,4\n9,1,5\n8,1,3\n");
  recipe("table", "{name: csv, file: t.csv, target: count}",
         "model: tabular\nloss: mse\nmetrics: []\n");
  const auto refused = tare({"validate", "table.yaml"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("allowed: data.numbers: [count], which reads the target as a "
                                     "number, cross_entropy or another loss of classes"));
  const auto numbers = tare({"validate", "table.yaml", "data.numbers=count"});
  EXPECT_EQ(numbers.status, 0) << numbers.err;
}

TEST_F(TableMistakes, AListOfPicturesNamesItsColumns) {
  write("list.csv", "Path,Label\na.png,cat\n");
  recipe("pictures", "{name: image_list, file: list.csv}", "model: mlp\n");
  EXPECT_THAT(tare({"validate", "pictures.yaml"}).err,
              HasSubstr("list.csv: line 1: has no column `path`; there are Path, Label: name the "
                        "column of the paths `path` in the first row"));
  EXPECT_THAT(
      tare({"validate", "pictures.yaml", "data.target=shape"}).err,
      HasSubstr("data.target is not taken by the data set image_list, whose classes stand in "
                "the column `label` of the list: give the column that name in the first "
                "row, or name columns of numbers in targets, got shape; allowed: omit it"));
}

}  // namespace
}  // namespace tare::testing
