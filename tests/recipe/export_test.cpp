// Bundles from a run's folder, its checkpoints and other bundles.
#include "tare/recipe/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipe/own_data.h"
#include "recipe/tiny.h"
#include "support/outcome.h"
#include "tare/base/io.h"
#include "tare/callback/autosave.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/data/npy.h"
#include "tare/inference/bundle.h"
#include "tare/recipe/read_recipe.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Expects two bundles to agree on model, data and results.
void expect_same(const std::filesystem::path& bundle, const std::filesystem::path& expected) {
  const Bundle a = open_bundle(bundle), b = open_bundle(expected);
  EXPECT_EQ(a.manifest().model.name, b.manifest().model.name);
  EXPECT_EQ(a.manifest().model.options, b.manifest().model.options);
  EXPECT_EQ(a.manifest().sample_shape, b.manifest().sample_shape);
  EXPECT_EQ(a.manifest().transforms, b.manifest().transforms);
  EXPECT_EQ(a.manifest().labels, b.manifest().labels);
  EXPECT_EQ(a.manifest().metrics, b.manifest().metrics);
  EXPECT_EQ(a.manifest().trained_metrics, b.manifest().trained_metrics);
  EXPECT_EQ(a.manifest().activation, b.manifest().activation);
  EXPECT_EQ(a.manifest().loss, b.manifest().loss);
  EXPECT_EQ(a.manifest().input, b.manifest().input);
  EXPECT_EQ(a.manifest().levels, b.manifest().levels);
  for (const auto& [name, tensor] : b.tensors())
    EXPECT_TRUE(tensor.equal(a.file().tensor(name))) << name;
}

TEST(ExportBundle, OfAFinishedRunIsTheBundleThatItExported) {
  const TempDir folder;
  const RunReport run = run_recipe(tiny(folder));
  const BundleExport done = export_bundle(folder / "tiny", folder / "again.tare");
  EXPECT_EQ(done.from, run.exported->path);
  EXPECT_EQ(done.bytes, run.exported->bytes);
  expect_same(folder / "again.tare", run.exported->path);
  EXPECT_EQ(export_bundle(folder / "tiny/").bundle, run.exported->path) << "in its place";
  EXPECT_EQ(export_bundle(run.exported->path, folder / "copy.tare").from, run.exported->path);
  EXPECT_EQ(io::read_text(folder / "copy.tare"), io::read_text(run.exported->path));
}

TEST(ExportBundle, KeepsTheLevelsOfTheTraining) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  EXPECT_THAT(open_bundle(run_recipe(recipe).exported->path).manifest().levels, ElementsAre(0, 1))
      << "of pictures of 8 bits";
  write_arrays(folder.path(), 40);
  const at::Tensor levels = read_npy(folder / "x.npy").mul(200).sub(20);
  write_npy(folder / "x.npy", levels);
  recipe.batch = 8;
  recipe.phases.resize(1);
  recipe.data = {.name = "npy",
                 .labels = (folder / "y.npy").string(),
                 .file = (folder / "x.npy").string(),
                 .transforms = Transforms{Normalise{{80}, {50}}}};
  const RunReport run = run_recipe(recipe);
  const auto kept = open_bundle(run.exported->path).manifest().levels;
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0], levels.min().item<double>());
  EXPECT_EQ(kept[1], levels.max().item<double>());
  export_bundle(run.folder, folder / "again.tare");
  expect_same(folder / "again.tare", run.exported->path);
}

// A folder's name may be any bytes, a label of a bundle only UTF-8.
TEST(Export, IsRefusedBeforeTheFirstPhaseWhereNoBundleCanHoldTheData) {
  const TempDir folder, pictures;
  write_image_folder(pictures.path(), 40);
  std::filesystem::rename(pictures / "3", pictures / "caf\xe9");
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.data = {.name = "image_folder", .folder = pictures.path().string()};
  recipe.batch = 8;
  const auto outcome = [&] { return outcome_of([&] { (void)run_recipe(recipe); }); };
  EXPECT_THAT(outcome(), AllOf(StartsWith("ConfigError: [recipe.run] export is not possible: "),
                               HasSubstr("a label"), HasSubstr("not UTF-8")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  recipe.export_to.reset();
  EXPECT_EQ(outcome(), "accepted");
}

TEST(ExportBundle, MeasuresRoundedWeightsOverTheRunsValidationSplit) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  const RunReport run = run_recipe(recipe);
  recipe.name = "rounded";
  recipe.export_weights = "int8";
  const RunReport rounded = run_recipe(recipe);
  const auto figures = open_bundle(rounded.exported->path).manifest();
  ASSERT_FALSE(figures.trained_metrics.empty());
  // From the bundle of the run, and from its checkpoint.
  for (const auto& from : {folder / "tiny", folder / "tiny/first"}) {
    export_bundle(from, folder / "small.tare", {.weights = "int8"});
    const auto manifest = open_bundle(folder / "small.tare").manifest();
    EXPECT_EQ(manifest.weights, "int8");
    EXPECT_FALSE(manifest.trained_metrics.empty()) << from;
    if (from != folder / "tiny") continue;
    EXPECT_EQ(manifest.metrics, figures.metrics);
    EXPECT_EQ(manifest.trained_metrics, figures.trained_metrics);
  }
  const auto outcome = [&](const std::filesystem::path& from, const BundleFormat& format) {
    return outcome_of([&] { export_bundle(from, folder / "none.tare", format); });
  };
  EXPECT_EQ(outcome(folder / "tiny", {.weights = "bf16", .tolerance = 10}), "accepted");
  std::filesystem::remove(folder / "none.tare");
  EXPECT_THAT(outcome(folder / "tiny", {.weights = "int8", .tolerance = -1}),
              HasSubstr("no share"));
  EXPECT_THAT(outcome(folder / "tiny", {.tolerance = 1}), HasSubstr("is for rounded weights"));
  EXPECT_THAT(outcome(folder / "tiny", {.weights = "fp32", .tolerance = 1}),
              HasSubstr("is for bundles of rounded weights"));
  EXPECT_THAT(outcome(folder / "tiny/tiny.tare", {.weights = "int8", .tolerance = 1}),
              HasSubstr("needs the data of a training"));
  EXPECT_FALSE(std::filesystem::exists(folder / "none.tare"));
}

TEST(ExportFormats, AreFilesBesideTheBundle) {
  const TempDir folder, again;
  RecipeOptions recipe = tiny(folder);
  recipe.export_formats = {"onnx", "pt2", "safetensors"};
  run_recipe(recipe);
  for (const std::string name : {"tiny.onnx", "tiny.pt2", "tiny.safetensors"}) {
    const std::string format = name.substr(5);
    export_bundle(folder / "tiny/tiny.tare", again / name, {.format = format});
    EXPECT_EQ(io::read_text(folder / ("tiny/" + name)), io::read_text(again / name)) << name;
  }
}

TEST(ExportFormats, HaveNoBatchNormsWhereTheyAreFolded) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.export_formats = {"onnx", "safetensors"};
  recipe.export_fold_norms = true;
  run_recipe(recipe);
  export_bundle(folder / "tiny/tiny.tare", folder / "folded",
                {.format = "onnx", .fold_norms = true});
  export_bundle(folder / "tiny/tiny.tare", folder / "plain", {.format = "onnx"});
  const std::string written = io::read_text(folder / "tiny/tiny.onnx");
  EXPECT_EQ(written, io::read_text(folder / "folded"));
  EXPECT_NE(written, io::read_text(folder / "plain"));
  EXPECT_THAT(written, Not(HasSubstr("BatchNormalization")));
}

TEST(ExportFormats, HaveTheOperatorsOfTheVersionAskedFor) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.phases = {{.name = "all", .lr = 1e-2}};
  recipe.model = {.name = "vit"};
  recipe.model.options.width = 16;
  recipe.model.options.layers = 1;
  recipe.model.options.heads = 2;
  recipe.export_formats = {"onnx", "pt2"};
  recipe.export_opset = 23;
  run_recipe(recipe);
  export_bundle(folder / "tiny/tiny.tare", folder / "new", {.format = "onnx", .opset = 23});
  export_bundle(folder / "tiny/tiny.tare", folder / "old", {.format = "onnx"});
  const std::string written = io::read_text(folder / "tiny/tiny.onnx");
  EXPECT_EQ(written, io::read_text(folder / "new"));
  EXPECT_NE(written, io::read_text(folder / "old"));
}

TEST(ExportFormats, ThatCannotHoldTheModelAreRefusedBeforeTheTraining) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.export_formats = {"onnx", "gguf"};
  EXPECT_THAT(
      outcome_of([&] { run_recipe(recipe); }),
      AllOf(HasSubstr("export_formats.1 is not possible"), HasSubstr("GGUF is for the model gpt")));
  EXPECT_FALSE(std::filesystem::exists(folder / "tiny/first"));
  const auto refusal = [&](const char* yaml) {
    io::write_atomically(
        folder / "r.yaml",
        std::string("data: {name: generated_digits}\nphases: [{lr: 1e-3}]\n") + yaml);
    return outcome_of([&] { (void)read_recipe(folder / "r.yaml"); });
  };
  EXPECT_THAT(refusal("export_formats: [onnx]\n"),
              HasSubstr("export_formats has no effect, because the recipe exports no bundle"));
  EXPECT_THAT(refusal("export: a.tare\nexport_formats: [onx]\n"),
              HasSubstr("export_formats.0 is not known (did you mean \"onnx\"?)"));
  EXPECT_THAT(refusal("export: a.onnx\n"),
              HasSubstr("export names a bundle, and has the extension of onnx"));
  EXPECT_THAT(refusal("export: a.tare\nexport_formats: [safetensors]\nexport_fold_norms: true\n"),
              HasSubstr("export_fold_norms has no effect, because the recipe exports no graph"));
  EXPECT_THAT(refusal("export: a.tare\nexport_formats: [pt2]\nexport_opset: 23\n"),
              HasSubstr("export_opset has no effect, because the recipe exports no onnx file"));
  EXPECT_THAT(refusal("export: a.tare\nexport_formats: [onnx]\nexport_opset: 19\n"),
              HasSubstr("export_opset is no version of ONNX's operators that Tare writes"));
  EXPECT_THAT(refusal("export: a.tare\nexport_formats: [onnx, onnx]\n"),
              HasSubstr("would be 'a.onnx' in the run's folder, which is the onnx file"));
}

TEST(ExportBundle, OfACheckpointEqualsTheExportAfterItsPhase) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.data.transforms = Transforms{Normalise{{0.2}, {0.4}}, Shift{1}};
  recipe.phases.resize(1);
  recipe.phases[0].size = 20;
  const RunReport run = run_recipe(recipe);
  const BundleExport done = export_bundle(folder / "tiny/first/");
  EXPECT_EQ(done.bundle.filename(), "first.tare");
  EXPECT_EQ(done.phase, "first");
  expect_same(done.bundle, run.exported->path);
  EXPECT_THAT(open_bundle(done.bundle).manifest().sample_shape, ElementsAre(1, 20, 20));
}

TEST(ExportBundle, WithoutAnExportedBundleItIsTheLastThatAPhaseSaved) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.export_to.reset();
  recipe.phases[1].save = "second";
  (void)run_recipe(recipe);
  const BundleExport done = export_bundle(folder / "tiny");
  EXPECT_EQ(done.from, folder / "tiny/second");
  EXPECT_EQ(done.bundle, folder / "tiny/tiny.tare");
  EXPECT_EQ(done.phase, "head");
}

TEST(ExportBundle, WithoutAnyOfThoseItIsTheNewestThatACallbackSaved) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.export_to.reset();
  recipe.phases.resize(1);
  recipe.phases[0].save.clear();
  recipe.phases[0].epochs = 2;
  recipe.callbacks = {{{.name = "keep_checkpoints"}}};
  (void)run_recipe(recipe);
  EXPECT_EQ(export_bundle(folder / "tiny").from, folder / "tiny/epoch-2");
}

TEST(ExportBundle, StoresWeightsAsItIsAsked) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.export_weights = "fp8";
  recipe.learner.frozen_weights = "fp8";
  recipe.phases.pop_back();
  recipe.phases[1].save = "head";
  const RunReport run = run_recipe(recipe);
  EXPECT_EQ(open_bundle(run.exported->path).manifest().weights, "fp8");
  const auto exported = [&](const std::filesystem::path& from, std::optional<std::string> weights) {
    const auto to = folder / "made.tare";
    EXPECT_EQ(export_bundle(from, to, {.weights = weights}).bundle, to);
    return open_bundle(to);
  };
  const auto head = folder / "tiny/head";
  expect_same(exported(head, {}).file().path(), run.exported->path);
  EXPECT_EQ(exported(head, "as_is").manifest().weights, "as_is") << "what was held is dequantised";
  expect_same(exported(run.exported->path, {}).file().path(), run.exported->path);
  EXPECT_EQ(exported(run.exported->path, "fp32").manifest().weights, "as_is");
  const auto full = folder / "full.tare";
  export_bundle(run.exported->path, full, {.weights = "fp32"});
  expect_same(exported(full, "fp8").file().path(), run.exported->path);
  EXPECT_LT(std::filesystem::file_size(run.exported->path), std::filesystem::file_size(full) / 2);
  EXPECT_THROW(export_bundle(full, folder / "x.tare", {.weights = "fp4"}), ConfigError);
}

TEST(ExportBundle, OfAnUnfinishedRunIsItsNewestCheckpoint) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  (void)run_recipe(recipe);
  request_interrupt();  // after the first step, in the first phase
  const RunReport run = run_recipe(recipe);
  ASSERT_EQ(run.reason, StopReason::interrupted);
  const BundleExport done = export_bundle(run.folder, folder / "part.tare");
  EXPECT_THAT(Autosave::names(), ::testing::Contains(done.from.filename().string()));
  EXPECT_EQ(done.phase, "first");
  const auto loaded = checkpoint::load(done.from);
  const Bundle bundle = open_bundle(done.bundle);
  for (const auto& [name, tensor] : loaded.model)
    EXPECT_TRUE(tensor.equal(bundle.file().tensor(name))) << name;
}

TEST(ExportBundle, OfABestCheckpointIsThatOfItsPhaseWithoutFiguresOfCallbacks) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.callbacks = {{{.name = "memory_log"}}};
  recipe.phases[1].callbacks = {{{.name = "save_best"}}};
  (void)run_recipe(recipe);
  const BundleExport done = export_bundle(folder / "tiny/best", folder / "best.tare");
  EXPECT_EQ(done.phase, "head");
  std::vector<std::string> names;
  const Bundle bundle = open_bundle(done.bundle);
  for (const BundleMetric& metric : bundle.manifest().metrics) names.push_back(metric.name);
  EXPECT_THAT(names, ElementsAre("valid_loss", "accuracy"));
}

TEST(ExportBundle, RefusesACheckpointWhoseDataHaveChanged) {
  const TempDir folder, pictures;
  write_image_folder(pictures.path(), 60);
  RecipeOptions recipe = tiny(folder);
  recipe.data = {.name = "image_folder", .folder = pictures.path().string()};
  recipe.phases.resize(1);
  recipe.phases[0].save = "saved";
  (void)run_recipe(recipe);
  std::filesystem::rename(pictures / "3", pictures / "zebra");
  try {
    (void)export_bundle(folder / "tiny/saved", folder / "saved.tare");
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("was begun with other data of phase 1"));
  }
}

TEST(ExportBundle, SaysWhatElseCanBeExportedWhereTheNewestIsDamaged) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  recipe.save_every = 1;
  const auto run = folder / "tiny", bundle = run_recipe(recipe).exported->path;
  const auto refused = [&] { return outcome_of([&] { (void)export_bundle(run); }); };
  const std::string bytes = io::read_text(bundle);
  io::write_atomically(bundle, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(refused(),
              AllOf(StartsWith("FormatError"), HasSubstr("its bundle: does not verify ("),
                    HasSubstr("`tare export " + (run / "first").string() + '`')));
  io::write_atomically(bundle, bytes);
  for (const auto& name : Autosave::names()) {
    std::filesystem::copy(run / "first", run / name);
    io::write_atomically(run / name / "model.safetensors", "short");
  }
  EXPECT_THAT(refused(), AllOf(HasSubstr("its newest automatic checkpoint: does not verify ("),
                               HasSubstr("`tare export " + bundle.string() + " --out FILE`"),
                               HasSubstr("`tare export " + (run / "first").string() + '`')));
  io::write_atomically(bundle, "");
  io::write_atomically(run / "first/model.safetensors", "short");
  EXPECT_THAT(refused(), HasSubstr("nothing else there verifies: `tare run "));
}

TEST(ExportBundle, RefusesNamesThatTheRunWritesItself) {
  const TempDir folder;
  (void)run_recipe(tiny(folder));
  const auto run = folder / "tiny", bundle = run / "tiny.tare";
  const auto outcome = [&](const std::filesystem::path& to) {
    return outcome_of([&] { (void)export_bundle(bundle, to); });
  };
  std::filesystem::remove(run / "report.json");
  for (const char* name : {"report.json", "autosave-0", "autosave-0/x.tare", "first/x.tare",
                           "recipe.yaml.partial", "run_data.json", "first.csv"})
    EXPECT_THAT(outcome(run / name),
                AllOf(StartsWith("ConfigError: [export] '"),
                      HasSubstr("in the run's folder, which is"), HasSubstr("give another name")))
        << name;
  EXPECT_FALSE(std::filesystem::exists(run / "report.json"));
  EXPECT_THAT(outcome(folder.path()), HasSubstr("names a folder: give the name of a file"));
  for (const char* name : {"tiny/tiny.tare", "tiny/other.tare", "tiny/mine/x.tare", "x.tare"})
    EXPECT_EQ(outcome(folder / name), "accepted") << name;
}

TEST(ExportBundle, RefusesWhatIsNoneOfThese) {
  const TempDir folder;
  RecipeOptions recipe = tiny(folder);
  const RunReport run = run_recipe(recipe);
  const auto refused = [](const std::filesystem::path& from) {
    return outcome_of([&] { (void)export_bundle(from); });
  };
  EXPECT_THAT(refused(folder.path()),
              HasSubstr("holds runs: give one of them, such as " + (folder / "tiny").string()));
  io::make_directories(folder / "empty");
  EXPECT_THAT(refused(folder / "empty"), HasSubstr("is neither a run's folder nor a checkpoint"));
  EXPECT_THAT(refused(run.exported->path), HasSubstr("say with --out where the new one goes"));
  EXPECT_THAT(refused(folder / "none"), HasSubstr("IoError"));
  EXPECT_THAT(refused(folder / "tiny/report.json"), HasSubstr("FormatError"));
  io::move(folder / "tiny/first", folder / "alone");
  EXPECT_THAT(refused(folder / "alone"), HasSubstr("outside a run's folder"));
  io::remove_all(run.exported->path);
  EXPECT_THAT(refused(folder / "tiny"), HasSubstr("holds neither a checkpoint nor the bundle"));
  EXPECT_THAT(refused(folder / "tiny"), HasSubstr("tiny/recipe.yaml export=NAME.tare` makes"));
  io::move(folder / "alone", folder / "tiny/first");
  recipe.model.options.width = 8;
  io::write_atomically(folder / "tiny/recipe.yaml", config::to_yaml(config::to_node(recipe)));
  EXPECT_THAT(refused(folder / "tiny/first"), HasSubstr("is not the recipe's; "));
}

}  // namespace
}  // namespace tare::testing
