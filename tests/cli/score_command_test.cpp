// `tare predict --score` on labelled data of each kind, against the figures of the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/tare_folder.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kRounding = 1e-5;  // of float32, relative; batches differ

class ScoreCommand : public ::testing::Test, protected TareFolder {
 protected:
  /// Runs a recipe with this name, data and rest, on the CPU.
  void run(const std::string& name, const std::string& rest) const {
    write(name + ".yaml", "name: " + name + "\ndevice: cpu\nbatch: 16\nexport: m.tare\n" + rest);
    const auto ran = tare({"run", name + ".yaml"});
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  /// Returns the figure of the run's own test.
  [[nodiscard]] double tested(const std::string& name, const std::string& metric) const {
    std::ifstream file(folder_ / "runs" / name / "report.json");
    const auto report = nlohmann::json::parse(file);
    for (const auto& one : report.at("test").at("metrics").items())
      if (one.key() == metric) return one.value();
    return std::nan("");
  }
  [[nodiscard]] nlohmann::json score(const std::string& name,
                                     std::vector<std::string> words) const {
    words.insert(words.begin(), {"predict", "runs/" + name});
    words.emplace_back("--json");
    const auto scored = tare(words);
    EXPECT_EQ(scored.status, 0) << scored.err;
    return nlohmann::json::parse(scored.out);
  }
  /// Writes a table of sizes and colours whose first `rows` rows begin at `first`.
  void write_table(const std::string& name, int first, int rows) const {
    std::string text = "size,colour,kind,price,\"weight, kg\"\n";
    for (int i = first; i < first + rows; ++i)
      text += std::to_string(i * 7 % 10) + (i % 2 == 0 ? ",red," : ",blue,") +
              (i * 7 % 10 + i % 2 < 5 ? "small," : "large,") + std::to_string(10 * (i % 10) + 0.5) +
              ',' + std::to_string(i * 7 % 10 + 0.25) + '\n';
    write(name, text);
  }
};

TEST_F(ScoreCommand, OfATableOfClassesIsThatOfTheTestSplit) {
  write_table("train.csv", 0, 80);
  write_table("test.csv", 80, 41);
  run("t",
      "data: {name: csv, file: train.csv, test_files: [test.csv], target: kind, columns: [size, "
      "colour]}\nmetrics: [accuracy, f1]\nmodel: {name: tabular, hidden: [8]}\n"
      "phases: [{epochs: 3, lr: 0.02}]\n");
  const auto scored = score("t", {"test.csv", "--score"});
  EXPECT_EQ(scored.at("samples"), 41);
  EXPECT_EQ(scored.at("failed"), 0);
  for (const char* metric : {"accuracy", "f1"})
    EXPECT_NEAR(scored.at("metrics").at(metric), tested("t", metric), kRounding) << metric;
  EXPECT_THAT(tare({"predict", "runs/t", "test.csv", "--score"}).out,
              ContainsRegex("^41 samples: accuracy [01][.0-9]*, f1 [01][.0-9]*\n$"));
  // Rows without a known class fail alone.
  write("some.csv", "size,colour,kind\n1,red,small\n2,red,huge\n3,red,\n4,blue,large\n");
  const auto some = tare({"predict", "runs/t", "some.csv", "--score", "--json"});
  EXPECT_EQ(some.status, 2);
  EXPECT_EQ(nlohmann::json::parse(some.out).at("samples"), 2);
  EXPECT_EQ(nlohmann::json::parse(some.out).at("failed"), 2);
  EXPECT_THAT(
      some.err,
      AllOf(HasSubstr("the class 'huge' is none of the model; its classes are large, small"),
            HasSubstr("some.csv: line 4: column 'kind' is missing, and --score compares "
                      "with it: remove the row")));
  write("none.csv", "size,colour\n1,red\n");
  EXPECT_THAT(tare({"predict", "runs/t", "none.csv", "--score"}).err,
              HasSubstr("'none.csv' has no column 'kind', with which --score compares"));
  EXPECT_THAT(tare({"predict", "runs/t", "test.csv", "--score=price"}).err,
              HasSubstr("--score=price names a column, and the bundle knows its own, kind"));
}

TEST_F(ScoreCommand, OfATableOfNumbersIsThatOfTheTestSplit) {
  write_table("train.csv", 0, 80);
  write_table("test.csv", 80, 41);
  const std::string rest =
      "loss: mse\nmetrics: [mae, rmse, r2]\nmodel: {name: tabular, hidden: [8]}\n"
      "phases: [{epochs: 3, lr: 0.02}]\n";
  run("one",
      "data: {name: csv, file: train.csv, test_files: [test.csv], target: price, numbers: "
      "[price], columns: [size, colour]}\n" +
          rest);
  run("two",
      "data: {name: csv, file: train.csv, test_files: [test.csv], targets: [price, 'weight, "
      "kg'], columns: [size, colour]}\n" +
          rest);
  const auto one = score("one", {"test.csv", "--score"}),
             two = score("two", {"test.csv", "--score"});
  EXPECT_EQ(one.at("metrics").size(), 3U);
  for (const char* metric : {"mae", "rmse", "r2"})
    EXPECT_NEAR(one.at("metrics").at(metric), tested("one", metric), 1e-3) << metric;
  EXPECT_EQ(two.at("metrics").size(), 9U);
  for (const char* metric : {"mae", "mae.price", "r2.weight, kg", "rmse.weight, kg"})
    EXPECT_NEAR(two.at("metrics").at(metric), tested("two", metric), 1e-3) << metric;
}

TEST_F(ScoreCommand, OfPicturesTakesClassesFromFoldersAndLists) {
  ASSERT_EQ(
      tare({"data", "make", "generated_digits", "--png", "--count", "100", "--out", "all"}).status,
      0);
  ASSERT_EQ(tare({"data", "make", "generated_digits", "--png", "--count", "60", "--style",
                  "written", "--out", "others"})
                .status,
            0);
  std::string list = "path,label,split\n";
  for (const char* folder : {"all", "others"})
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / folder))
      if (entry.is_regular_file())
        list += fs::relative(entry.path(), folder_.path()).string() + ',' +
                entry.path().parent_path().filename().string() +
                (folder == std::string("all") ? ",train\n" : ",test\n");
  write("list.csv", list);
  run("p",
      "data: {name: image_list, file: list.csv, train: 0.8, valid: 0.2}\nmetrics: [accuracy, "
      "f1]\nmodel: {name: mlp, hidden: [32]}\nphases: [{epochs: 3, lr: 0.01}]\n");
  const auto scored = score("p", {"others", "--score"});
  EXPECT_EQ(scored.at("samples"), 60);
  for (const char* metric : {"accuracy", "f1"})
    EXPECT_NEAR(scored.at("metrics").at(metric), tested("p", metric), kRounding) << metric;
  const auto listed = tare({"predict", "runs/p", "list.csv", "--score"});
  EXPECT_THAT(listed.out, HasSubstr("160 samples: accuracy "));
  EXPECT_THAT(listed.err, HasSubstr("list.csv: --score counts all rows, also the 100 of the "
                                    "split train: give a list"));
  // Rows of other splits are what the training has not seen.
  std::string unseen = "path,label,split\n";
  std::istringstream rows(list);
  for (std::string line; std::getline(rows, line);)
    if (line.ends_with(",test")) unseen += line + '\n';
  write("unseen.csv", unseen);
  const auto without_train = tare({"predict", "runs/p", "unseen.csv", "--score"});
  EXPECT_THAT(without_train.out, HasSubstr("60 samples: accuracy "));
  EXPECT_THAT(without_train.err, Not(HasSubstr("split")));
  const auto class_folder = tare({"predict", "runs/p", "others/3", "--score"});
  EXPECT_EQ(class_folder.status, 2);
  EXPECT_THAT(class_folder.err,
              HasSubstr("has no class: --score takes the class of a file from the "
                        "subfolder of 'others/3' that it is in"));
  EXPECT_THAT(class_folder.out, HasSubstr("0 samples\n"));
  // Folders of splits are no classes; a file deeper in a class is of it.
  fs::create_directories(folder_ / "splits");
  fs::copy(folder_ / "all", folder_ / "splits/train", fs::copy_options::recursive);
  fs::copy(folder_ / "others", folder_ / "splits/test", fs::copy_options::recursive);
  const auto splits = tare({"predict", "runs/p", "splits", "--score"});
  EXPECT_EQ(splits.status, 2);
  EXPECT_THAT(splits.err,
              HasSubstr("'splits/test' is a split and no class of the model, and --score takes the "
                        "classes of files from the subfolders of 'splits': give 'splits/test'"));
  EXPECT_EQ(score("p", {"splits/test", "--score"}).at("metrics"), scored.at("metrics"));
  fs::create_directories(folder_ / "deep/3");
  fs::copy(folder_ / "others/4", folder_ / "deep/3/4");
  EXPECT_EQ(score("p", {"deep", "--score"}).at("failed"), 0);
  const auto one = fs::directory_iterator(folder_ / "others/3")->path().string();
  EXPECT_THAT(tare({"predict", "runs/p", one, "--score"}).err,
              HasSubstr("has nothing with which --score compares: give a folder with a subfolder"));
  EXPECT_THAT(tare({"predict", "runs/p", "none.png", "--score"}).err, HasSubstr("No such file"));
  EXPECT_THAT(tare({"predict", "runs/p", "others", "--score", "--top", "2"}).err,
              HasSubstr("--score prints figures in place of predictions: omit --top"));
}

TEST_F(ScoreCommand, OfTextsTakesTheColumnOfTheirClasses) {
  std::string train = "text,mood\n", test = train;
  for (int i = 0; i < 90; ++i)
    (i < 60 ? train : test) += (i % 2 == 0 ? "the soup was good" : "it was awful, number ") +
                               std::to_string(i) + (i % 2 == 0 ? ",yes\n" : ",no\n");
  // A text with a comma is quoted.
  for (std::string* text : {&train, &test})
    for (size_t at = 0; (at = text->find("it was awful, number ", at)) != std::string::npos;) {
      const size_t end = text->find(",no", at);
      text->insert(end, "\"");
      text->insert(at, "\"");
      at = end;
    }
  write("train.csv", train);
  write("test.csv", test);
  run("x",
      "data: {name: text_list, file: train.csv, target: mood, test_files: [test.csv]}\n"
      "metrics: [accuracy, f1]\nmodel: {name: lstm, width: 8}\n"
      "phases: [{epochs: 2, lr: 0.02}]\n");
  const auto scored = score("x", {"test.csv", "--score=mood"});
  EXPECT_EQ(scored.at("samples"), 30);
  for (const char* metric : {"accuracy", "f1"})
    EXPECT_NEAR(scored.at("metrics").at(metric), tested("x", metric), kRounding) << metric;
  EXPECT_THAT(tare({"predict", "runs/x", "test.csv", "--score"}).err,
              HasSubstr("'test.csv' has no column 'label', with which --score compares: name the "
                        "column of the classes, as in --score=COLUMN; there are text, mood"));
  // A folder of texts has its classes in subfolders.
  for (const char* mood : {"yes", "no"}) {
    fs::create_directories(folder_ / "texts" / mood);
    write(std::string("texts/") + mood + "/a.txt", "the soup was good");
  }
  EXPECT_EQ(score("x", {"texts", "--score"}).at("metrics").at("accuracy"), 0.5);
}

}  // namespace
}  // namespace tare::testing
