// The commands with pictures of several shapes: `data.fit` in training and in predictions.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/npy_file.h"
#include "support/tare_folder.h"
#include "tare/base/io.h"
#include "tare/data/image_folder.h"
#include "tare/transform/image.h"

namespace tare::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class PicturesOfSeveralShapes : public ::testing::Test, protected TareFolder {
 protected:
  /// Wide pictures that are bright on the right, and tall ones that are bright below.
  void SetUp() override {
    for (const char* label : {"right", "below"}) {
      const bool right = label == std::string("right");
      io::make_directories(folder_ / "pictures" / label);
      for (int i = 0; i < 20; ++i) {
        at::Tensor picture =
            at::randint(0, 100, right ? at::IntArrayRef{1, 12, 21} : at::IntArrayRef{1, 23, 10});
        picture.narrow(right ? 2 : 1, 9, 9).fill_(200 + i);
        write_png(folder_ / "pictures" / label / (std::to_string(i) + ".png"),
                  picture.to(at::kByte));
      }
    }
    write("own.yaml",
          "name: own\ndevice: cpu\nmodel: mlp\n"
          "data: {name: image_folder, folder: pictures, size: 8, transforms: [{normalise: {mean: "
          "[0.5], std: [0.25]}}]}\nphases: [{epochs: 2}]\nexport: m.tare\n");
  }
  [[nodiscard]] nlohmann::json predicted(const std::string& file) const {
    const auto result = tare({"predict", "runs/own", file, "--json", "--top", "2"});
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out).at(0).at("predictions");
  }
};

TEST_F(PicturesOfSeveralShapes, ArePredictedAsTheyWereTrained) {
  write_png(folder_ / "other.png", at::randint(256, {1, 30, 17}).to(at::kByte));
  for (const std::string fit : {"crop", "pad", "stretch"}) {
    const auto run = tare({"run", "own.yaml", "--overwrite", "data.fit=" + fit});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("(planned "));
    // The data set gives these pixels, which need no resizing any more.
    const auto data = image_folder(folder_ / "pictures", {.height = 8, .width = 8, .fit = fit});
    const std::vector<int64_t> last{39};
    write_png(folder_ / "sample.png", data->get({last}).input()[0]);
    EXPECT_EQ(predicted("pictures/" + data->sample_name(39)), predicted("sample.png")) << fit;
    const at::Tensor other = read_image(folder_ / "other.png");
    write_png(folder_ / "fitted.png", resize_image(other, 8, 8, true, fit));
    EXPECT_EQ(predicted("other.png"), predicted("fitted.png")) << fit;
    if (fit == "stretch") continue;
    write_png(folder_ / "fitted.png", resize_image(other, 8, 8));
    EXPECT_NE(predicted("other.png"), predicted("fitted.png")) << "stretched for " << fit;
  }
}

TEST_F(PicturesOfSeveralShapes, ArePredictedInTheirOrderWhateverTheBatch) {
  ASSERT_EQ(tare({"run", "own.yaml"}).status, 0);
  write("pictures/below/5.png", "no picture");
  const auto all = [&](const std::string& batch) {
    const auto result =
        tare({"predict", "runs/own", "pictures", "absent.png", "--json", "--batch", batch});
    EXPECT_EQ(result.status, 2) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json alone = all("1");
  ASSERT_EQ(alone.size(), 41U);
  for (const std::string batch : {"3", "64", "auto"}) {
    const nlohmann::json together = all(batch);
    ASSERT_EQ(together.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i].at("path"), alone[i].at("path")) << batch;
      EXPECT_EQ(together[i].contains("error"), alone[i].contains("error")) << batch;
      if (alone[i].contains("error")) continue;
      const auto &one = alone[i].at("predictions").at(0),
                 &other = together[i].at("predictions").at(0);
      EXPECT_EQ(other.at("label"), one.at("label")) << batch;
      EXPECT_NEAR(other.at("probability").get<double>(), one.at("probability").get<double>(), 1e-6);
    }
  }
  const auto wrong = tare({"predict", "runs/own", "pictures", "--batch", "0"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--batch must be a whole number >= 1, got '0'"));
}

class Masks : public ::testing::Test, protected TareFolder {};

TEST_F(Masks, AreWrittenAsPictures) {
  const at::Tensor pictures = at::randint(256, {24, 1, 16, 16}).to(at::kByte);
  write_npy(folder_ / "x.npy", pictures);
  write_npy(folder_ / "y.npy", pictures.squeeze(1).gt(127).to(at::kLong));
  write("masks.yaml",
        "name: masks\ndevice: cpu\nbatch: 4\nmodel: {name: unet, classes: 2, width: 4}\n"
        "data: {name: npy, file: x.npy, labels: y.npy}\nphases: [{epochs: 1}]\nexport: m.tare\n");
  const auto run = tare({"run", "masks.yaml"});
  ASSERT_EQ(run.status, 0) << run.err;
  io::make_directories(folder_ / "in");
  write_png(folder_ / "in/one.png", pictures[0]);
  const auto predicted =
      tare({"predict", "runs/masks", "in/one.png", "x.npy", "--masks", "out", "--json-lines"});
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  std::istringstream lines(predicted.out);
  int64_t count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(std::filesystem::exists(folder_ / nlohmann::json::parse(line).at("mask")));
  EXPECT_EQ(count, 25);
  const at::Tensor first = read_image(folder_ / "out/in/one.png", 1);
  EXPECT_EQ(first.sizes(), (at::IntArrayRef{1, 16, 16}));
  EXPECT_LE(first.max().item<int64_t>(), 1);
  EXPECT_TRUE(at::equal(first, read_image(folder_ / "out/x-1.png", 1)));
  const auto scores = tare({"predict", "runs/masks", "in/one.png", "--json"});
  const auto values =
      nlohmann::json::parse(scores.out).at(0).at("values").get<std::vector<float>>();
  const at::Tensor both = at::tensor(values).view({2, 16, 16});
  EXPECT_TRUE(at::equal(first[0].to(at::kLong), both.argmax(0)));
  const auto twice = tare({"predict", "runs/masks", "in/one.png", "in/one.png", "--masks", "out"});
  EXPECT_THAT(twice.err, HasSubstr("two samples would have the mask 'out/in/one.png'"));
}

/// Grey pictures with the numbers of a list: how bright they are, and two labels.
class NumbersOfPictures : public ::testing::Test, protected TareFolder {
 protected:
  void SetUp() override {
    io::make_directories(folder_ / "p");
    std::string rows = "path,light,bright,left\n";
    for (int i = 0; i < 60; ++i) {
      const int light = i * 37 % 60, left = i % 2;
      at::Tensor picture = at::full({1, 8, 8}, 2 * light, at::kByte);
      picture.narrow(2, left == 1 ? 0 : 4, 4).add_(100);
      const std::string name = "p/" + std::to_string(i) + ".png";
      write_png(folder_ / name, picture);
      rows += name + ',' + std::to_string(0.5 * light) + ',' + (light > 30 ? "1," : "0,") +
              std::to_string(left) + '\n';
    }
    write("list.csv", rows);
    write("numbers.yaml",
          "name: numbers\ndevice: cpu\nbatch: 8\nmodel: mlp\nloss: mse\nmetrics: [mae, r2]\n"
          "data: {name: image_list, file: list.csv, targets: [light]}\n"
          "phases: [{epochs: 30, lr: 0.01}]\nexport: m.tare\n");
    write("labels.yaml",
          "name: labels\ndevice: cpu\nbatch: 8\nmodel: mlp\nloss: bce_with_logits\n"
          "metrics: [{f1: {threshold: 0.5}}, {accuracy: {threshold: 0.5}}]\n"
          "data: {name: image_list, file: list.csv, targets: [bright, left]}\n"
          "phases: [{epochs: 30, lr: 0.01}]\nexport: m.tare\n");
  }
  [[nodiscard]] nlohmann::json report(const std::string& run) const {
    return nlohmann::json::parse(io::read_text(folder_ / "runs" / run / "report.json", 1 << 24));
  }
};

TEST_F(NumbersOfPictures, ArePlannedTrainedAndPredicted) {
  EXPECT_EQ(tare({"validate", "numbers.yaml"}).status, 0);
  EXPECT_THAT(tare({"plan", "numbers.yaml"}).out, HasSubstr("fits"));
  const auto run = tare({"run", "numbers.yaml"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("(planned "));
  EXPECT_LT(report("numbers").at("valid").at("metrics").at("mae").get<double>(), 3);
  const auto predicted = tare({"predict", "runs/numbers", "p/1.png", "--json"});
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  const auto values = nlohmann::json::parse(predicted.out).at(0).at("values");
  ASSERT_EQ(values.size(), 1U);
  EXPECT_NEAR(values.at(0).get<double>(), 18.5, 9);
  EXPECT_THAT(tare({"predict", "runs/numbers", "p/1.png", "--csv"}).out,
              ContainsRegex("\np/1.png,,,0,light,[0-9.]+\n"));
  const auto list = tare({"predict", "runs/numbers", "list.csv"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out, ContainsRegex("^p/0.png: [0-9.]+\np/1.png: [0-9.]+\n"));
  EXPECT_THAT(tare({"inspect", "runs/numbers"}).out, ContainsRegex("targets +light"));
  ASSERT_EQ(tare({"export", "runs/numbers", "--out", "again.tare"}).status, 0);
  EXPECT_THAT(tare({"predict", "again.tare", "p/1.png", "--csv"}).out, HasSubstr(",0,light,"));
  EXPECT_THAT(tare({"predict", "runs/numbers", "p/1.png", "--top", "2"}).err,
              HasSubstr("the outputs of this one are values"));
  const std::string worst = io::read_text(folder_ / "runs/numbers/worst_rows.csv", 1 << 20);
  EXPECT_THAT(worst, ContainsRegex("\np/[0-9]+.png,[0-9.]+,"));
  ASSERT_EQ(tare({"report", "runs/numbers"}).status, 0);
  EXPECT_THAT(io::read_text(folder_ / "runs/numbers/report.html", 1 << 24),
              HasSubstr("samples of the highest loss"));
}

TEST_F(NumbersOfPictures, AreSwept) {
  write("sweep.yaml",
        "name: s\nrecipe: numbers.yaml\nmetric: {name: mae, goal: minimize}\n"
        "parameters: {phases.0.epochs: [1, 2]}\nresources: {jobs: 1}\n");
  const auto sweep = tare({"sweep", "run", "sweep.yaml"});
  EXPECT_EQ(sweep.status, 0) << sweep.err;
  EXPECT_THAT(sweep.out, HasSubstr("2 complete, 0 failed"));
}

TEST_F(NumbersOfPictures, SeveralLabelsHaveAProbabilityEach) {
  const auto run = tare({"run", "labels.yaml"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("(planned "));
  EXPECT_GT(report("labels").at("valid").at("metrics").at("f1").get<double>(), 0.7);
  const auto all = tare({"predict", "runs/labels", "p/1.png"});
  EXPECT_THAT(all.out, ContainsRegex("^p/1.png: (left [0-9.]+\np/1.png: bright|bright [0-9.]+\n"
                                     "p/1.png: left) [0-9.]+\n$"));
  EXPECT_THAT(tare({"predict", "runs/labels", "p/1.png", "--csv"}).out,
              ::testing::AllOf(ContainsRegex("\np/1.png,,,0,bright,[0-9.e-]+\n"),
                               ContainsRegex("\np/1.png,,,1,left,[0-9.e-]+\n")));
  const auto one = tare({"predict", "runs/labels", "p/1.png", "--top", "1", "--json"});
  EXPECT_EQ(nlohmann::json::parse(one.out).at(0).at("predictions").size(), 1U);
  EXPECT_THAT(tare({"inspect", "runs/labels/m.tare"}).out,
              ContainsRegex("labels +2: bright, left"));
  EXPECT_THAT(tare({"inspect", "runs/labels", "--json"}).out, HasSubstr("\"targets\": []"));
  EXPECT_EQ(tare({"report", "runs/labels"}).status, 0);
  const std::string page = io::read_text(folder_ / "runs/labels/report.html", 1 << 24);
  for (const char* text : {"A sample may have several labels, so there is no confusion matrix",
                           "true positives", "Worst samples", "<img src="})
    EXPECT_THAT(page, HasSubstr(text));
  const auto classification = report("labels").at("classification");
  EXPECT_EQ(classification.at("counts").size(), 0U);
  ASSERT_EQ(classification.at("label_counts").size(), 2U);
  for (const auto& counts : classification.at("label_counts")) {
    int64_t samples = 0;
    for (const auto& [name, count] : counts.items()) samples += count.get<int64_t>();
    EXPECT_EQ(samples, 12) << "the validation split";
  }
  EXPECT_EQ(classification.at("worst").at(0).at("probabilities").size(), 2U);
}

TEST_F(NumbersOfPictures, AreCheckedBeforeAnyWork) {
  const auto check = tare({"data", "check", "list.csv", "targets=[light, left]"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_THAT(check.out, ContainsRegex("light +0 +14.75 +29.5\nleft +0 +0.5 +1\n"));
  EXPECT_THAT(tare({"data", "check", "labels.yaml"}).out, HasSubstr("0 errors, 0 warnings"));
  const auto softmax = tare({"validate", "labels.yaml", "loss=cross_entropy", "metrics=[]"});
  EXPECT_EQ(softmax.status, 2);
  EXPECT_THAT(softmax.err, HasSubstr("loss takes the probabilities of classes, which add up to 1, "
                                     "and the targets of sample"));
  EXPECT_THAT(softmax.err, HasSubstr("bce_with_logits for labels of 0 or 1"));
  std::string wrong = io::read_text(folder_ / "list.csv", 1 << 16);
  wrong.replace(wrong.rfind(",1,"), 3, ",2,");
  write("wrong.csv", wrong);
  const auto too_large = tare({"validate", "labels.yaml", "data.file=wrong.csv"});
  EXPECT_EQ(too_large.status, 2);
  EXPECT_THAT(too_large.err, ContainsRegex("loss takes targets from 0 to 1, and the target 'bright'"
                                           " of sample [0-9]+ .from 0. of the [a-z]+ split is 2"));
  const std::string left = "data: {name: image_list, file: list.csv, targets: [left]}";
  const auto other =
      tare({"validate", "numbers.yaml", "phases=[{epochs: 1}, {epochs: 1, " + left + "}]"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("gives the outputs of the model another meaning: the target is "
                                   "light in phase 1, and left in phase 2"));
  const auto accuracy = tare({"validate", "labels.yaml", "metrics=[accuracy]"});
  EXPECT_EQ(accuracy.status, 2);
  EXPECT_THAT(accuracy.err, HasSubstr("{f1: {threshold: 0.5}} where they are labels"));
  const auto balanced = tare({"validate", "labels.yaml", "sampling=balanced"});
  EXPECT_EQ(balanced.status, 2);
  EXPECT_THAT(tare({"validate", "labels.yaml", "data.targets=[brihgt]"}).err,
              HasSubstr("no column 'brihgt'"));
  EXPECT_THAT(tare({"validate", "labels.yaml", "model.classes=3"}).err,
              HasSubstr("with a model of 3 outputs"));
}

class ArrayCommands : public ::testing::Test, protected TareFolder {
 protected:
  void SetUp() override {
    write_npy(folder_ / "x.npy", at::rand({40, 1, 8, 8}));
    write_npy(folder_ / "y.npy", at::arange(40).remainder(2));
    write("own.yaml",
          "name: own\ndevice: cpu\nmodel: mlp\ndata: {name: npy, file: x.npy, labels: y.npy}\n"
          "phases: [{epochs: 1}]\nexport: m.tare\n");
  }
};

TEST_F(ArrayCommands, CheckArrays) {
  const auto one = tare({"data", "check", "x.npy"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("x.npy  float32  [40, 1, 8, 8]           0"));
  EXPECT_THAT(one.out, HasSubstr("0 errors, 0 warnings"));
  for (const auto& words : {std::vector<std::string>{"data", "check", "x.npy", "labels=y.npy"},
                            {"data", "check", "own.yaml"}}) {
    const auto both = tare(words);
    EXPECT_EQ(both.status, 0) << both.err;
    EXPECT_THAT(both.out, HasSubstr("y.npy  int64    [40]"));
    EXPECT_THAT(both.out, HasSubstr("40 samples [1, 8, 8] of x.npy; train 32, valid 8, test none"));
  }
  write_npy(folder_ / "short.npy", at::arange(7));
  const auto unequal = tare({"data", "check", "x.npy", "labels=short.npy"});
  EXPECT_EQ(unequal.status, 2);
  EXPECT_THAT(unequal.err, HasSubstr("labels has 7 targets for 40 samples"));
  at::Tensor bad = at::rand({40, 2});
  bad[7][1] = INFINITY;
  write_npy(folder_ / "bad.npy", bad);
  const auto refused = tare({"data", "check", "bad.npy"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.out, HasSubstr("error: bad.npy: array[7, 1] is infinite: remove the sample"));
  const auto page = nlohmann::json::parse(tare({"data", "check", "bad.npy", "--json"}).out);
  EXPECT_EQ(page["problem_count"], 1);
  EXPECT_EQ(page["arrays"][0]["first_not_finite"], nlohmann::json({7, 1}));
  EXPECT_EQ(page["arrays"][0]["shape"], nlohmann::json({40, 2}));
  EXPECT_THAT(tare({"data", "check", "x.npy", "target=a"}).err,
              HasSubstr("target is not taken by the data set npy"));
}

TEST_F(ArrayCommands, PredictFromAnArray) {
  ASSERT_EQ(tare({"run", "own.yaml"}).status, 0);
  const auto result = tare({"predict", "runs/own", "x.npy", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto all = nlohmann::json::parse(result.out);
  ASSERT_EQ(all.size(), 40U);
  EXPECT_EQ(all[39]["line"], 40);
  EXPECT_THAT(tare({"predict", "runs/own", "x.npy", "--csv"}).out, HasSubstr("\nx.npy,40,,"));
  const auto other = tare({"predict", "runs/own", "y.npy"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("y.npy: shape: is [40], and the model takes [samples, 1, any"));
}

TEST_F(PicturesOfSeveralShapes, AFitIsCheckedBeforeAnyWork) {
  EXPECT_EQ(tare({"validate", "own.yaml", "data.fit=pad"}).status, 0);
  const auto without = tare({"validate", "own.yaml", "data.fit=pad", "data.size=0"});
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, HasSubstr("data.fit needs the size"));
  const auto unknown = tare({"validate", "own.yaml", "data.fit=squash"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("stretch"));
  const auto texts =
      tare({"validate", "own.yaml", "data={name: generated_texts, fit: crop}", "model=lstm"});
  EXPECT_EQ(texts.status, 2);
  EXPECT_THAT(texts.err, HasSubstr("data.fit is not taken by the data set generated_texts"));
  // Without the first line, which has the free memory of the machine.
  const auto plan_of = [&](const std::string& fit) {
    const auto plan = tare({"plan", "own.yaml", "data.fit=" + fit});
    EXPECT_EQ(plan.status, 0) << plan.err;
    return plan.out.substr(plan.out.find('\n'));
  };
  const std::string plain = plan_of("stretch");
  for (const char* fit : {"crop", "pad"}) EXPECT_EQ(plan_of(fit), plain) << fit;
  const auto check = tare({"data", "check", "pictures"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("`fit` stretches, crops or pads"));
}

}  // namespace
}  // namespace tare::testing
