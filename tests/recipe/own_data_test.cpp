// Every data set there is, with every command that takes a recipe: plan, run, dry run, resume.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <memory>

#include "recipe/own_data.h"
#include "recipe/tiny.h"
#include "support/files.h"
#include "support/npy_file.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/base/file_system.h"
#include "tare/base/io.h"
#include "tare/inference/bundle.h"
#include "tare/inference/rows.h"
#include "tare/memory/native_types.h"
#include "tare/recipe/plan.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

struct DataCase {
  std::string data, model;
};

class EveryDataSet : public ::testing::TestWithParam<DataCase> {
 protected:
  static void SetUpTestSuite() {
    at::set_num_threads(1);  // what operators take depends on their threads
    data_ = std::make_unique<OwnData>();
  }
  static void TearDownTestSuite() { data_.reset(); }

  [[nodiscard]] RecipeOptions recipe() const {
    RecipeOptions r;
    r.name = "own";
    r.folder = folder_.path();
    r.learner.device = "cpu";
    r.learner.workers = 0;
    r.data = data_->options(GetParam().data);
    r.model.name = GetParam().model;
    const bool has_head = r.model.name != "gpt";
    if (!has_head) {
      r.model.options.width = 8;
      r.model.options.layers = r.model.options.heads = 1;
    }
    r.phases = {{.name = "one", .lr = 1e-2}, {.name = "two", .reset_head = has_head, .lr = 1e-2}};
    r.export_to = "own.tare";
    return r;
  }

  static inline std::unique_ptr<OwnData> data_;
  TempDir folder_;
};

TEST_P(EveryDataSet, PeaksAsPlannedToTheByte) {
  const RecipePlan plan = plan_recipe(recipe(), {.advice = false});
  const RunReport report = run_recipe(recipe(), {.plan = true});
  ASSERT_EQ(plan.phases.size(), report.phases.size());
  for (size_t i = 0; i < plan.phases.size(); ++i) {
    ASSERT_TRUE(plan.phases[i].known()) << plan.phases[i].reason;
    EXPECT_EQ(plan.phases[i].peak_bytes, report.phases[i].peak_bytes) << plan.phases[i].at;
    ASSERT_TRUE(report.phases[i].planned_peak_bytes);
    EXPECT_EQ(*report.phases[i].planned_peak_bytes, report.phases[i].peak_bytes);
  }
  const bool has_test = GetParam().data == "mnist" || GetParam().data == "cifar";
  EXPECT_EQ(report.test.has_value(), has_test);
  EXPECT_NE(report.valid.has_value(), report.test.has_value());
  EXPECT_EQ(report.residual_bytes, 0);
}

TEST_P(EveryDataSet, RunsDryAndLeavesNothing) {
  const RunReport report = run_recipe(recipe(), {.dry_run = true, .plan = true});
  EXPECT_EQ(report.phases.size(), 2U);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_P(EveryDataSet, ResumesToTheSameBundle) {
  RecipeOptions r = recipe();
  (void)run_recipe(r);
  r.name = "stopped";
  request_interrupt();
  ASSERT_EQ(run_recipe(r).reason, StopReason::interrupted);
  EXPECT_FALSE(run_recipe(r, {.resume = Resume::always}).resumed_from.empty());
  EXPECT_TRUE(content_of(folder_ / "own/own.tare") == content_of(folder_ / "stopped/own.tare"));
}

std::vector<DataCase> cases() {
  std::vector<DataCase> all;
  for (const auto& name : datasets::names()) {
    if (name == "text_folder" || name == "text_list" || name == "generated_texts") {
      all.push_back({name, "lstm"});
    } else if (name == "text") {
      all.push_back({name, "gpt"});
    } else if (name == "csv") {
      all.push_back({name, "tabular"});
    } else if (name == "jsonl") {
      for (const char* model : {"mlp", "tabular"}) all.push_back({name, model});
    } else {
      for (const char* model : {"mlp", "convnet"}) all.push_back({name, model});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Data, EveryDataSet, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.data + "_" + test.param.model; });

TEST(RunRecipe, TextsAreCutForPredictionsAsForTheTraining) {
  const TempDir folder;
  const OwnData own;
  RecipeOptions recipe = tiny(folder);
  recipe.data = own.options("text_folder");
  recipe.data.length = 4;
  recipe.model = {.name = "lstm"};
  recipe.phases.resize(1);
  recipe.export_to = "texts.tare";
  const Bundle bundle = open_bundle(run_recipe(recipe).exported->path);
  EXPECT_EQ(bundle.manifest().text_length, 4);
  EXPECT_EQ(parse_text("a longer text", bundle.manifest(), {}).sizes(), at::IntArrayRef({1, 4}));
  recipe.data.length = 0;
  const Bundle whole = open_bundle(run_recipe(recipe).exported->path);
  EXPECT_EQ(whole.manifest().text_length, 0);
  EXPECT_EQ(parse_text("a longer text", whole.manifest(), {}).size(1), 13);
}

TEST(RunRecipe, IsNotContinuedWithOtherTextsUnderTheSameNames) {
  const TempDir folder, texts;
  write_text_folder(texts.path(), 60);
  RecipeOptions recipe = tiny(folder);
  recipe.data = {.name = "text_folder", .folder = texts.path().string()};
  recipe.model = {.name = "lstm"};
  recipe.phases.resize(1);
  request_interrupt();
  ASSERT_EQ(run_recipe(recipe).reason, StopReason::interrupted);
  io::write_atomically(texts / "0/0.txt", "IS 0..");  // as long as before
  try {
    (void)run_recipe(recipe, {.resume = Resume::always});
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("was begun with other contents of the data of phase 1"));
  }
}

/// The message of the ConfigError; nothing is left in the folder.
std::string refusal_of(const RecipeOptions& recipe, const RunOptions& options) {
  try {
    (void)run_recipe(recipe, options);
  } catch (const ConfigError& error) {
    EXPECT_FALSE(std::filesystem::exists(recipe.folder / recipe.name));
    return error.what();
  }
  return "accepted";
}

TEST(RunRecipe, RefusesAModelThatDoesNotTakeTheSamples) {
  const TempDir folder;
  const OwnData own;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.data = own.options("text_folder");
  recipe.model = {.name = "convnet"};
  const auto refused = [&] { return refusal_of(recipe, {}); };
  EXPECT_THAT(refused(), HasSubstr("model.name cannot be made for samples of shape"));
  recipe.model = {.name = "lstm"};
  recipe.data.collate = config::Choice{.name = "pad"};
  recipe.data.collate->options.set("with", config::Node::string("none"));
  EXPECT_THAT(refused(), HasSubstr("model.name takes another number of inputs than the data give, "
                                   "which is 1: text"));
  EXPECT_THROW((void)plan_recipe(recipe), ConfigError);
  recipe.data.collate->options.set("with", config::Node::string("mask"));
  EXPECT_EQ(refused(), "accepted");
  recipe.name = "padded";
  recipe.data.collate->options.set("value", config::Node::scalar("300"));
  EXPECT_THAT(refused(), HasSubstr("collate.pad.value is not a byte"));
}

TEST(RunRecipe, RefusesACollateFunctionWhereTheDataSetJoinsNoTexts) {
  const TempDir folder;
  const OwnData own;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  for (const char* set : {"image_folder", "idx", "tfrecord", "generated_digits"}) {
    recipe.data = own.options(set);
    recipe.data.collate = config::Choice{.name = "pad"};  // what texts have where none is given
    EXPECT_THAT(refusal_of(recipe, {}),
                HasSubstr(std::string("data.collate is not taken by the data set ") + set));
  }
}

TEST(RunRecipe, RefusesAShapeOrDataThatAModelOfTokensDoesNotTakeAtItsKey) {
  const TempDir folder;
  const OwnData own;
  const auto refused = [&](const std::string& model, const std::string& data) -> std::string {
    std::ofstream(folder / "gpt.yaml") << "name: gpt\nfolder: " << folder.path().string()
                                       << "\ndevice: cpu\nbatch: 8\ndata: " << data
                                       << "\nmodel: " << model << "\nphases: [{epochs: 1}]\n";
    std::string messages;
    for (const bool plan : {true, false}) {
      try {
        (void)run_recipe(read_recipe(folder / "gpt.yaml"), {.plan = plan});
        messages += "accepted";
      } catch (const ConfigError& error) {
        if (messages != error.what()) messages += error.what();
      }
    }
    return messages;
  };
  const std::string digits = "{name: generated_digits, count: 40, size: 12}";
  EXPECT_THAT(refused("{name: gpt, classes: 256, width: 8, heads: 2, sample_shape: [16]}", digits),
              HasSubstr("gpt.yaml:6:15: model.name takes tokens, and a sample of the data is "
                        "float32 [1, 12, 12], got gpt; allowed: data whose samples are lists"));
  const std::string texts = "{name: text_folder, folder: " + own.options("text_folder").folder +
                            ", collate: {pad: {with: none}}}";
  EXPECT_THAT(refused("{name: gpt, classes: 256, width: 8, heads: 2, sample_shape: [1, 2]}", texts),
              HasSubstr("gpt.yaml:6:68: model.sample_shape must be the longest context of tokens, "
                        "got [1, 2]; allowed: a list of one number >= 1"));
  EXPECT_THAT(refused("{name: gpt, classes: 256, width: 8, heads: 2, sample_shape: [2]}", texts),
              HasSubstr("model.sample_shape is less than the longest sample of the data, got [2]"));
  EXPECT_THAT(refused("{name: gpt, classes: 256, width: 9, heads: 2, sample_shape: [900]}", texts),
              HasSubstr("gpt.yaml:6:41: model.width must be a multiple of heads, got 9"));
}

TEST(RunRecipe, OfPicturesWithoutLabelsIsRefusedBeforeItMakesAFolder) {
  const TempDir folder;
  io::make_directories(folder / "flat");
  const DigitImages digits = generate_digits({.count = 20, .size = 16});
  for (int64_t i = 0; i < 20; ++i)
    write_png(folder / "flat" / (std::to_string(i) + ".png"), digits.images[i]);
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.batch = 4;
  recipe.data = {.name = "image_folder", .folder = (folder / "flat").string()};
  recipe.model.options.classes = 10;
  for (const bool plan : {true, false})
    EXPECT_THAT(refusal_of(recipe, {.plan = plan}),
                HasSubstr("loss needs labels, and the data set 'image_folder' has none"));
}

TEST(RunRecipe, RefusesAMaskWithAClassForWhichTheModelHasNoOutput) {
  const TempDir folder;
  at::Tensor masks = at::zeros({20, 16, 16}, at::kByte);
  masks[17][3][5] = 7;  // one pixel of one picture
  write_npy(folder / "pictures.npy", at::zeros({20, 16, 16}, at::kByte));
  write_npy(folder / "masks.npy", masks);
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.batch = 4;
  recipe.data = {.name = "npy", .file = (folder / "pictures.npy").string()};
  recipe.data.labels = (folder / "masks.npy").string();
  recipe.model = {.name = "unet"};
  recipe.model.options.width = 4;
  recipe.model.options.classes = 2;
  const std::string problem =
      "model.classes is less than the classes of the labels of first, of which one is 7";
  EXPECT_THAT(refusal_of(recipe, {}), HasSubstr(problem));
  EXPECT_THAT(outcome_of([&] { (void)plan_recipe(recipe); }), HasSubstr(problem));
  EXPECT_FALSE(std::filesystem::exists(folder / "tiny"));
  recipe.model.options.classes = 8;
  EXPECT_EQ(outcome_of([&] { (void)plan_recipe(recipe, {.advice = false}); }), "accepted");
}

TEST(RunRecipe, TrainsOnNumbersFromRecordsTowardsNumbers) {
  const TempDir folder;
  std::vector<std::string> examples;
  for (int i = 0; i < 60; ++i) {
    const float x = static_cast<float>(i % 10) / 10, y = static_cast<float>(i % 7) / 7;
    examples.push_back(example_of({{"x", floats_feature({x, y})}, {"y", floats_feature({x - y})}}));
  }
  write_tf_records(folder / "rows", examples);
  RecipeOptions recipe = tiny(folder);
  recipe.phases = {{.name = "only", .epochs = 20, .lr = 1e-2}};
  recipe.data = {
      .name = "tfrecord", .files = {(folder / "rows").string()}, .input = "x", .label = "y"};
  recipe.model = {.name = "mlp", .options = {.classes = 1, .hidden = {16}}};
  recipe.learner.loss = "mse";
  recipe.learner.metrics = {"mae"};
  const RunReport report = run_recipe(recipe);
  EXPECT_LT(report.valid->metrics.at(0).value, 0.2);
  recipe.name = "refused";
  recipe.phases[0].size = 4;
  EXPECT_THAT(refusal_of(recipe, {}),
              HasSubstr("phases.0.size can change images only, and the shape of a sample is [2]"));
  recipe.phases[0].size = 0;
  recipe.data.channels = 3;
  EXPECT_THAT(refusal_of(recipe, {}), HasSubstr("data.channels is for PNG pictures"));
  recipe.data.channels = 0;
  recipe.model.options.classes = 2;
  EXPECT_THAT(refusal_of(recipe, {}),
              HasSubstr("loss does not take the targets of the data with a model of 2 outputs"));
}

TEST(RunRecipe, OfAModelThatDoesNotTakeTheDataIsRefusedBeforeItMakesAFolder) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.model = {.name = "mlp"};
  recipe.phases[0].size = 20;
  EXPECT_THAT(refusal_of(recipe, {.plan = true}), HasSubstr("model does not take the data: "));
}

TEST(RunRecipe, OfAModelThatDoesNotTakeTextsIsRefusedBeforeItMakesAFolder) {
  const TempDir folder;
  const OwnData own;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.data = own.options("text_folder");
  recipe.data.collate = config::Choice{.name = "pad"};
  recipe.data.collate->options.set("with", config::Node::string("none"));
  recipe.model = {.name = "gpt", .options = {.classes = 256, .sample_shape = {900}, .width = 8}};
  recipe.model.options.heads = 2;
  EXPECT_NE(refusal_of(recipe, {.plan = true}), "accepted");
  recipe.model = {.name = "mlp"};
  EXPECT_NE(refusal_of(recipe, {.plan = true}), "accepted");
  recipe.model = {.name = "lstm"};
  recipe.data.collate = config::Choice{.name = "stack"};  // texts of different length
  EXPECT_NE(refusal_of(recipe, {.plan = true}), "accepted");
}

// oneDNN refuses it with an error of its own, which is none of LibTorch's.
TEST(RunRecipe, OfARecurrentLayerThatTheProcessorCannotComputeIsRefusedBeforeItMakesAFolder) {
  const TempDir folder;
  const OwnData own;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.data = own.options("text_folder");
  recipe.model = {.name = "lstm"};
  recipe.learner.precision = memory::processor_computes(at::kBFloat16) ? "fp16" : "bf16";
  const std::string refused = refusal_of(recipe, {.plan = true});
  if (refused == "accepted") GTEST_SKIP() << "this processor computes it";
  EXPECT_THAT(refused, HasSubstr("use the precision fp32"));
}

TEST(RunRecipe, RefusesASampleShapeThatIsNotThatOfTheData) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  const char* const problem = "model.sample_shape is not the shape of the samples of the first";
  for (const auto& shape : std::vector<std::vector<int64_t>>{{1, 99, 99}, {3, 16, 16}}) {
    recipe.model.options.sample_shape = shape;
    EXPECT_THAT(refusal_of(recipe, {}), HasSubstr(problem));
    EXPECT_THROW((void)plan_recipe(recipe), ConfigError);
  }
  recipe.model = {.name = "mlp", .options = {.sample_shape = {256}}};
  EXPECT_THAT(refusal_of(recipe, {}), HasSubstr(problem))
      << "as many numbers, which change nothing";
  recipe.phases[0].size = 20;
  recipe.model.options.sample_shape = {1, 20, 20};
  EXPECT_EQ(refusal_of(recipe, {}), "accepted") << "the shape that the first phase shows";
}

/// Lets no bundle be opened while in scope.
class NoBundle final : public io::FileSystem {
 public:
  NoBundle() : before_(io::set_file_system(this)) {}
  ~NoBundle() override { io::set_file_system(before_); }
  NoBundle(const NoBundle&) = delete;
  NoBundle& operator=(const NoBundle&) = delete;

  int open(const char* path, io::Mode mode) override {
    return std::string_view(path).find(".tare") == std::string_view::npos
               ? FileSystem::open(path, mode)
               : -EACCES;
  }

 private:
  io::FileSystem* before_;
};

TEST(RunRecipe, KeepsItsReportWhereTheBundleCannotBeWritten) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  {
    const NoBundle no_bundle;
    EXPECT_THROW((void)run_recipe(recipe), IoError);
  }
  EXPECT_THAT(content_of(folder / "tiny/report.json"), HasSubstr("\"accuracy\""));
  const RunReport report = run_recipe(recipe, {.resume = Resume::always});
  EXPECT_TRUE(std::filesystem::is_regular_file(report.exported->path))
      << "the training was not lost";
}

TEST(RunRecipe, AnErrorWhileItIsPlannedEndsItBeforeItMakesAFolder) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.model = {.name = "unreadable"};
  models::add("unreadable", [](int64_t classes) -> Model {
    static int64_t made = 0;
    if (++made == 1) throw IoError("models.make", "weights", "not there for the plan");
    return models::make("convnet", {.classes = classes, .sample_shape = {1, 16, 16}});
  });
  EXPECT_THROW((void)run_recipe(recipe, {.plan = true}), IoError);
  EXPECT_FALSE(std::filesystem::exists(folder / "tiny"));
}

}  // namespace
}  // namespace tare::testing
