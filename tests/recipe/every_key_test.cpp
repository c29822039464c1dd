// Every key of a recipe, and every option of what a recipe names: another value changes what can be
// observed, or is refused with advice.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "recipe/own_data.h"
#include "support/every_key.h"
#include "support/torchscript_file.h"
#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/data/collate.h"
#include "tare/memory/reference_kernels.h"
#include "tare/model/registry.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/recipe_keys.h"
#include "tare/recipe/run.h"
#include "tare/train/interrupt.h"
#include "tare/transform/transform.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;

/// Holds the text that the callback Observer has written of the run under way.
std::ostringstream& seen() {
  static std::ostringstream text;
  return text;
}

/// Writes down what a report does not say: rates, switches of LibTorch, threads, files.
class Observer final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "observer"; }
  Action before_fit(FitContext&) override {
    const auto& context = at::globalContext();
    seen() << "tf32 " << static_cast<int>(context.float32MatmulPrecision())
           << context.allowTF32CuDNN() << " cudnn " << context.userEnabledCuDNN()
           << context.benchmarkCuDNN() << " deterministic " << context.deterministicAlgorithms()
           << " reference " << memory::reference_kernels() << '\n';
    return Action::proceed;
  }
  Action after_step(FitContext& context) override {
    seen() << context.lr << ' ' << context.momentum << ' ' << context.loss_value() << '\n';
    return Action::proceed;
  }
  Action after_validate(FitContext& context) override {
    seen() << "validated " << context.step << ' ' << context.row.valid_loss << '\n';
    return Action::proceed;
  }
  Action after_batch(FitContext& context) override {
    const auto tasks = fs::directory_iterator("/proc/self/task");
    seen() << std::distance(begin(tasks), end(tasks)) << " threads;";
    std::set<std::string> names;
    if (fs::exists(context.learner.folder()))
      for (const auto& entry : fs::directory_iterator(context.learner.folder()))
        names.insert(entry.path().filename());
    for (const auto& name : names) seen() << ' ' << name;
    seen() << '\n';
    return Action::proceed;
  }
};

/// Rows of four numbers whose targets are three probabilities.
datasets::Found shares(const DataOptions&, bool) {
  const at::Tensor rows = at::arange(256).reshape({64, 4}).remainder(7).to(at::kFloat);
  return {.description = "64 rows", .data = tensor_dataset(rows, rows.slice(1, 1).softmax(1))};
}

/// Images whose target says of each pixel whether it is bright.
datasets::Found masks(const DataOptions&, bool) {
  const at::Tensor images =
      at::arange(12 * 16 * 16).remainder(7).to(at::kFloat).reshape({12, 1, 16, 16}).div(7);
  const at::Tensor targets = images.squeeze(1).gt(0.5).to(at::kLong);
  return {.description = "12 images", .data = tensor_dataset(images, targets, {"dark", "bright"})};
}

/// A model of texts that reads every position, with what follows a text.
struct WholeTextImpl : torch::nn::Module {
  explicit WholeTextImpl(int64_t classes)
      : line(register_module("line", torch::nn::Linear(1, classes))) {}
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& ends) {
    const auto mean = tokens.to(torch::kFloat).mean(1, true).div(256);
    return line(mean + ends.to(torch::kFloat).reshape({tokens.size(0), -1}).mean(1, true));
  }
  torch::nn::Linear line;
};
TORCH_MODULE(WholeText);

class EveryKey : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    at::set_num_threads(1);
    datasets::registry().add("shares", "rows with probabilities", [] {
      return datasets::Kind{{}, shares};
    });
    datasets::registry().add("masks", "images with a class for each pixel", [] {
      return datasets::Kind{{}, masks};
    });
    models::add("whole_text", [](int64_t classes) { return WholeText(classes); });
    callbacks::registry().add("observer", "write down what a report does not say",
                              [] { return std::make_shared<Observer>(); });
  }

  void SetUp() override {
    const fs::path other = folder_ / "other";
    write_image_folder(other / "pictures", 50);
    write_image_folder(other / "narrow", 50, 10);
    write_image_list(other / "listed/list.csv", 50);
    write_cifar(other / "cifar", 30);
    write_idx_pair(other, "t10k", 50);
    write_tfrecord(other / "digits.tfrecord", 50);
    write_rows(other / "rows.tfrecord", 96);
    write_text_folder(other / "texts", 72);
    write_text_list(other / "texts.csv", 72);
    write_text(other / "book.txt", 150);
    write_table(other / "table.csv", 80);
    write_json_lines(other / "table.jsonl", 80);
    write_arrays(other, 50);
    write_torchscript(other / "net.pt", 144);
    write_torchscript(other / "other.pt", 144);
    (void)observed({});  // the pools of threads are made once
    const auto first = read({"phases.0.save=first", "folder=" + (folder_ / "first").string()});
    weights_ = run_recipe(first).folder / "first/model.safetensors";
  }

  [[nodiscard]] RecipeOptions read(const std::vector<std::string>& settings) const {
    std::ofstream(folder_ / "r.yaml")
        << "name: tiny\nfolder: " << (folder_ / "runs").string()
        << "\nseed: 1\nbatch: 32\nworkers: 0\ndevice: cpu\nsave_every: 0\n"
           "data: {name: generated_digits, count: 96, size: 12}\n"
           "model: {name: resnet9, width: 4}\ncallbacks: [observer]\n"
           "phases: [{name: one}, {name: two}]\n";
    return read_recipe(folder_ / "r.yaml", settings);
  }

  /// All that a user sees of the recipe with these settings, or its refusal; without times.
  [[nodiscard]] std::string observed(const std::vector<std::string>& settings) const {
    fs::remove_all(folder_ / "runs");
    fs::remove_all(folder_ / "elsewhere");
    seen().str("");
    std::ostringstream text;
    text.precision(17);
    try {
      const RecipeOptions recipe = read(settings);
      for (const char* device : {"host:8GiB", "cuda:8GiB"})
        text << to_json(plan_recipe(recipe, {.device = device, .advice = false})) << '\n';
      const RunReport report = run_recipe(recipe);
      const ExportedBundle bundle = report.exported.value_or(ExportedBundle{});
      text << report.folder << report.data << report.device << bundle.path << bundle.bytes << ' '
           << report.residual_bytes << '\n';
      for (const PhaseReport& phase : report.phases) {
        text << phase.name << ' ' << phase.consumed_bytes << ' ' << phase.peak_bytes << ' '
             << phase.micro_batch << ' ' << phase.reclaimed_bytes << '\n';
        for (const EpochRow& row : phase.epochs) add(text, row.train_loss, row.metrics);
      }
      for (const auto& evaluation : {report.test, report.valid})
        if (evaluation) add(text, evaluation->loss, evaluation->metrics);
      std::set<std::string> files;
      for (const auto& entry : fs::recursive_directory_iterator(report.folder))
        files.insert(entry.path().string());
      for (const auto& file : files) {
        text << file << size_of_log(file) << '\n';
        if (file.ends_with(".txt")) text << io::read_text(file);  // written by a language model
      }
    } catch (const Error& error) {
      text << "refused: " << error.what() << '\n';
    }
    return text.str() + seen().str();
  }

  static void add(std::ostream& text, double loss, const std::vector<MetricValue>& metrics) {
    text << loss;
    for (const auto& metric : metrics) {
      text << ' ' << metric.name;
      if (!metric.name.ends_with("_per_s") && metric.name != "mfu") text << ' ' << metric.value;
    }
    text << '\n';
  }

  /// The size of an event file, whose values take the same bytes in every run, or the lines of
  /// JSON.
  static std::string size_of_log(const std::string& file) {
    if (file.ends_with(".tare") && file.find("tfevents") != std::string::npos)
      return ' ' + std::to_string(fs::file_size(file));
    if (!file.ends_with(".jsonl")) return "";
    std::ifstream text(file);
    int64_t lines = 0;
    for (std::string line; std::getline(text, line);) ++lines;
    return ' ' + std::to_string(lines);
  }

  [[nodiscard]] KeyRows rows() const;
  [[nodiscard]] KeyRows option_rows() const;

  OwnData own_;
  TempDir folder_;
  fs::path weights_;
};

/// Keys that change only how fast a run is, a file for other programs, or what happens without a
/// network, with their tests.
const std::map<std::string, std::string>& not_observed() {
  static const char* const network = "Datasets.TheNetworkIsTriedAndWarnedOfOncePerProcess";
  static const std::map<std::string, std::string> table{
      {"data.num_parallel_reads@tfrecord",
       "TfRecord.EveryFileIsReadByAThreadOfItsOwnWhereThereAreSoMany"},
      {"export_tolerance", "Export.MeasuresRoundedWeightsOverTheValidationSplit"},
      {"export_fold_norms", "ExportFormats.HaveNoBatchNormsWhereTheyAreFolded"},
      {"export_opset", "ExportFormats.HaveTheOperatorsOfTheVersionAskedFor"},
      {"data_parallel.bucket_mib", "Ranks.SendGradientsInBucketsOfAnySize"},
      {"data_parallel.find_unused", "Ranks.LeaveOutWhatABackwardDoesNotUse"},
      {"data_parallel.static_graph", "Ranks.SendGradientsInBucketsOfAnySize"},
      {"data_parallel.sync_batch_norm", "Ranks.NormaliseOverTheWholeBatch"},
      {"data_parallel.shard", "Ranks.KeepTheirPartsOfTheOptimizersState"},
      {"data_parallel.compression", "Ranks.SendGradientsInHalfPrecision"},
      {"data.download@digits", network},
      {"data.download@mnist", network},
      {"data.download@mnist10k", network}};
  return table;
}

/// "data.channels@tfrecord" is the key data.channels in a recipe of its own.
std::string key_of(const std::string& row) { return row.substr(0, row.find('@')); }

KeyRows EveryKey::rows() const {
  const std::string mine = own_.path().string(), other = (folder_ / "other").string();
  const auto idx = [&](const std::string& more) {
    return "data={name: idx, images: " + mine +
           "/mnist10k/t10k-images-idx3-ubyte.gz, labels: " + mine +
           "/mnist10k/t10k-labels-idx1-ubyte.gz" + more + "}";
  };
  const std::string listed = "data={name: image_list, file: " + mine + "/listed/list.csv}";
  const std::string tfrecord = "data={name: tfrecord, files: [" + mine + "/digits.tfrecord]}";
  const std::string numbers = "data={name: tfrecord, files: [" + other + "/rows.tfrecord]}";
  const std::string texts = "data={name: text_folder, folder: " + mine + "/texts}",
                    lstm = "model={name: lstm, width: 8}";
  const std::string listed_texts = "data={name: text_list, file: " + mine + "/texts.csv}";
  const std::string reviews = "data={name: generated_texts, count: 72, length: 20}";
  const std::string text = "data={name: text, file: " + mine + "/book.txt, context: 12}",
                    gpt = "model={name: gpt, layers: 1, heads: 1, width: 8}";
  const std::string tabular = "model={name: tabular, hidden: [4]}";
  const auto table = [&](const std::string& kind, const std::string& more = "") {
    return "data={name: " + kind + ", file: " + mine + "/table." + kind + ", target: kind" + more +
           "}";
  };
  const auto several = [&](const std::string& kind, const std::string& other_target) {
    return KeyRow{"data.targets=[" + other_target + "]",
                  {"data={name: " + kind + ", file: " + mine + "/table." + kind + ", targets: [x]}",
                   tabular, "loss=mse", "metrics=[mae]"}};
  };
  const std::string csv = table("csv"), jsonl = table("jsonl");
  const std::string npy = "data={name: npy, file: " + mine + "/x.npy, labels: " + mine + "/y.npy}";
  const std::string rmsprop = "optimizer={kind: rmsprop, lr: 0.01}";
  const std::string one_cycle = "phases.1.schedule.one_cycle";
  const std::string search = "phases.1.lr={find: {steps: 40}}";
  const std::string momentum = "phases.1.schedules.momentum", beta2 = "phases.1.schedules.beta2",
                    decay = "phases.1.schedules.weight_decay",
                    steady = "phases.1.schedule=constant",
                    decays = "optimizer={kind: sgd, lr: 0.01, weight_decay: 0.5}";
  const std::string frozen = "phases.1.freeze_to=-1", sgd = "optimizer={kind: sgd, lr: 0.01}";
  return {
      {"name", {"name=other"}},
      {"seed", {"seed=7"}},
      {"device", {"device=cuda:77"}},
      {"stages", {"stages=[cpu, cpu]", {"device=auto", "micro_batch=8"}}},
      {"folder", {"folder=" + (folder_ / "elsewhere").string()}},
      {"batch", {"batch=16"}},
      {"micro_batch", {"micro_batch=8"}},
      {"recompute", {"recompute=all"}},
      {"sampling", {"sampling=balanced"}},
      {"class_sampling", {"class_sampling={'3': 9}"}},
      {"group_by_length", {"group_by_length=true", {texts, lstm}}},
      {"group_by_length@images", {"group_by_length=true"}},
      {"offload", {"offload=all"}},
      {"precision", {"precision=bf16"}},
      {"step_in_backward", {"step_in_backward=true"}},
      {"graph", {"graph=true"}},
      {"frozen_weights", {"frozen_weights=fp8", {frozen}}},
      {"frozen_weights@unfrozen", {"frozen_weights=fp8"}},
      {"kernels.tf32", {"kernels.tf32=true"}},
      {"kernels.cudnn", {"kernels.cudnn=false"}},
      {"kernels.cudnn_benchmark", {"kernels.cudnn_benchmark=true"}},
      {"kernels.deterministic", {"kernels.deterministic=true"}},
      {"kernels.channels_last", {"kernels.channels_last=true"}},
      {"kernels.reference", {"kernels.reference=true"}},
      {"shuffle", {"shuffle=false"}},
      {"drop_last", {"drop_last=true"}},
      {"stop_on_nan", {"stop_on_nan=false", {"optimizer={kind: sgd, lr: 1e30}"}}},
      {"workers", {"workers=2"}},
      {"save_every", {"save_every=1"}},
      {"save_in_background", {"save_in_background=true", {"save_every=1"}}},
      {"save_in_background@unsaved", {"save_in_background=true"}},
      {"valid_every", {"valid_every=1"}},
      {"valid_every@unsplit", {"valid_every=1", {"data.valid=0"}}},
      {"data.name", {"data.name=digits"}},
      {"data.size", {"data.size=16"}},
      {"data.fit",
       {"data.fit=crop", {"data={name: image_folder, folder: " + other + "/narrow, size: 12}"}}},
      {"data.count", {"data.count=120"}},
      {"data.style@generated_digits", {"data.style=written"}},
      {"data.seed", {"data.seed=3"}},
      {"data.images@idx", {"data.images=" + other + "/t10k-images-idx3-ubyte.gz", {idx("")}}},
      {"data.labels@idx", {"data.labels=" + other + "/t10k-labels-idx1-ubyte.gz", {idx("")}}},
      {"data.folder@image_folder",
       {"data.folder=" + other + "/pictures",
        {"data={name: image_folder, folder: " + mine + "/pictures}"}}},
      {"data.folder@cifar",
       {"data.folder=" + other + "/cifar", {"data={name: cifar, folder: " + mine + "/cifar}"}}},
      {"data.file@image_list", {"data.file=" + other + "/listed/list.csv", {listed}}},
      {"data.targets@image_list",
       {"data.targets=[half]",
        {"data={name: image_list, file: " + mine + "/listed/list.csv, targets: [number]}",
         "loss=mse", "metrics=[mae]"}}},
      {"data.cache@image_list", {"data.cache=0", {listed}}},
      {"data.channels@image_list", {"data.channels=3", {listed}}},
      {"data.folder@text_folder", {"data.folder=" + other + "/texts", {texts, lstm}}},
      {"data.length@text_folder", {"data.length=6", {texts, lstm}}},
      {"data.collate@text_folder", {"data.collate={pad: {with: mask}}", {texts, lstm}}},
      {"data.file@text_list", {"data.file=" + other + "/texts.csv", {listed_texts, lstm}}},
      {"data.columns@text_list", {"data.columns=[review]", {listed_texts, lstm}}},
      {"data.target@text_list", {"data.target=kind", {listed_texts, lstm}}},
      {"data.valid_files@text_list",
       {"data.valid_files=[" + other + "/texts.csv]", {listed_texts, lstm}}},
      {"data.test_files@text_list",
       {"data.test_files=[" + other + "/texts.csv]", {listed_texts, lstm}}},
      {"data.length@text_list", {"data.length=6", {listed_texts, lstm}}},
      {"data.collate@text_list", {"data.collate={pad: {with: mask}}", {listed_texts, lstm}}},
      {"data.length@generated_texts", {"data.length=12", {reviews, lstm}}},
      {"data.collate@generated_texts", {"data.collate={pad: {with: mask}}", {reviews, lstm}}},
      {"data.file@text", {"data.file=" + other + "/book.txt", {text, gpt}}},
      {"data.context@text", {"data.context=8", {text, gpt}}},
      {"data.tokenizer@text",
       {"data.tokenizer=bytes",
        {text, "model={name: gpt, classes: 256, layers: 1, heads: 1, width: 8}"}}},
      {"data.vocabulary@text",
       {"data.vocabulary=30", {text, gpt, "data.tokenizer=bpe", "data.vocabulary=20"}}},
      {"data.cache@image_folder",
       {"data.cache=0", {"data={name: image_folder, folder: " + mine + "/pictures}"}}},
      {"data.channels@image_folder",
       {"data.channels=3", {"data={name: image_folder, folder: " + mine + "/pictures}"}}},
      {"data.channels@tfrecord", {"data.channels=3", {tfrecord}}},
      {"data.channels@rows", {"data.channels=3", {numbers, "model={name: mlp, classes: 3}"}}},
      {"data.transforms@rows",
       {"data.transforms=[{shift: {pixels: 1}}]", {numbers, "model={name: mlp, classes: 3}"}}},
      {"data.files@tfrecord", {"data.files=[" + other + "/digits.tfrecord]", {tfrecord}}},
      {"data.valid_files@tfrecord",
       {"data.valid_files=[" + other + "/digits.tfrecord]", {tfrecord}}},
      {"data.test_files@tfrecord", {"data.test_files=[" + other + "/digits.tfrecord]", {tfrecord}}},
      {"data.input@tfrecord", {"data.input=picture", {tfrecord}}},
      {"data.label@tfrecord", {"data.label=class", {tfrecord}}},
      {"data.shape@tfrecord", {"data.shape=[1, 5, 5]", {tfrecord}}},
      {"data.file@csv", {"data.file=" + other + "/table.csv", {csv, tabular}}},
      {"data.target@csv", {"data.target=x", {csv, tabular}}},
      {"data.targets@csv", several("csv", "y")},
      {"data.targets@jsonl", several("jsonl", "z")},
      {"data.columns@csv", {"data.columns=[x]", {csv, tabular}}},
      {"data.omit@csv", {"data.omit=[z]", {csv, tabular}}},
      {"data.categories@csv", {"data.categories=[x]", {csv, tabular}}},
      {"data.numbers@csv", {"data.numbers=[kind]", {csv, tabular}}},
      {"data.missing_values@csv", {"data.missing_values=[\"1\", \"1.5\"]", {csv, tabular}}},
      {"data.fill@csv",
       {"data.fill=mean", {table("csv", ", missing_values: [\"4\", \"4.5\"]"), tabular}}},
      {"data.valid_files@csv", {"data.valid_files=[" + other + "/table.csv]", {csv, tabular}}},
      {"data.test_files@csv", {"data.test_files=[" + other + "/table.csv]", {csv, tabular}}},
      {"data.file@jsonl", {"data.file=" + other + "/table.jsonl", {jsonl, tabular}}},
      {"data.target@jsonl", {"data.target=x", {jsonl, tabular}}},
      {"data.columns@jsonl", {"data.columns=[x]", {jsonl, tabular}}},
      {"data.omit@jsonl", {"data.omit=[z]", {jsonl, tabular}}},
      {"data.categories@jsonl", {"data.categories=[x]", {jsonl, tabular}}},
      {"data.numbers@jsonl", {"data.numbers=[kind]", {jsonl, tabular}}},
      {"data.missing_values@jsonl", {"data.missing_values=[\"1\", \"1.5\"]", {jsonl, tabular}}},
      {"data.fill@jsonl",
       {"data.fill=mean", {table("jsonl", ", missing_values: [\"4\", \"4.5\"]"), tabular}}},
      {"data.valid_files@jsonl",
       {"data.valid_files=[" + other + "/table.jsonl]", {jsonl, tabular}}},
      {"data.test_files@jsonl", {"data.test_files=[" + other + "/table.jsonl]", {jsonl, tabular}}},
      {"data.file@npy", {"data.file=" + other + "/x.npy", {npy}}},
      {"data.labels@npy", {"data.labels=" + other + "/y.npy", {npy}}},
      {"data.separator@csv", {"data.separator=;", {csv, tabular}}},
      {"data.header@csv", {"data.header=false", {csv, tabular}}},
      {"data.train", {"data.train=0.6"}},
      {"data.valid", {"data.valid=0.1"}},
      {"data.test", {"data.test=0.1", {"data.train=0.7"}}},
      {"data.folds", {"data.folds=4"}},
      {"data.fold", {"data.fold=1", {"data.folds=4"}}},
      {"data.stratify", {"data.stratify=false"}},
      {"data.transforms", {"data.transforms=[{shift: {pixels: 1}}]"}},
      {"model.name", {"model.name=convnet"}},
      {"model.classes", {"model.classes=12"}},
      {"model.sample_shape", {"model.sample_shape=[2, 12, 12]"}},
      {"model.sample_shape@larger", {"model.sample_shape=[1, 99, 99]"}},
      {"model.sample_shape@mlp", {"model.sample_shape=[144]", {"model={name: mlp}"}}},
      {"model.weights", {"model.weights=" + weights_.string()}},
      {"model.rename",
       {"model.rename={layer1.3.conv1.: layer1.3.conv2., layer1.3.conv2.: layer1.3.conv1.}",
        {"model.weights=" + weights_.string()}}},
      {"model.width", {"model.width=8"}},
      {"model.layers", {"model.layers=2"}},
      {"model.heads", {"model.heads=2"}},
      {"model.hidden", {"model.hidden=[4]", {"model={name: mlp}"}}},
      {"model.dropout", {"model.dropout=0.5"}},
      {"model.options", {"model.options={scale: 2}"}},
      {"loss", {"loss=mse"}},
      {"metrics", {"metrics=[top_5_accuracy]"}},
      {"limit.train_batches", {"limit.train_batches=1"}},
      {"limit.valid_batches", {"limit.valid_batches=1"}},
      {"overfit", {"overfit=1"}},
      {"optimizer.kind", {"optimizer.kind=adagrad"}},
      {"optimizer.lr", {"optimizer.lr=0.1"}},
      {"optimizer.weight_decay", {"optimizer.weight_decay=0.5"}},
      {"optimizer.momentum", {"optimizer.momentum=0.5", {sgd}}},
      {"optimizer.beta2", {"optimizer.beta2=0.5"}},
      {"optimizer.eps", {"optimizer.eps=0.1"}},
      {"optimizer.nesterov", {"optimizer.nesterov=true", {"optimizer={kind: sgd, lr: 0.01}"}}},
      {"optimizer.decay_norm_and_bias",
       {"optimizer.decay_norm_and_bias=true", {"optimizer.weight_decay=0.5"}}},
      {"optimizer.options", {"optimizer.options={factor: 2}"}},
      {"clip.norm", {"clip.norm=0.01"}},
      {"clip.value", {"clip.value=0.001"}},
      {"callbacks", {"callbacks=[observer, csv_log]"}},
      {"test", {"test=false"}},
      {"export", {"export=a.tare"}},
      {"export_weights", {"export_weights=fp8", {"export=a.tare"}}},
      {"export_formats", {"export_formats=[safetensors]", {"export=a.tare"}}},
      {"phases.N.name", {"phases.1.name=other"}},
      {"phases.N.data", {"phases.1.data={name: generated_digits, count: 64, size: 12}"}},
      {"phases.N.size", {"phases.1.size=16"}},
      {"phases.N.batch", {"phases.1.batch=16"}},
      {"phases.N.micro_batch", {"phases.1.micro_batch=8"}},
      {"phases.N.recompute", {"phases.1.recompute=all"}},
      {"phases.N.offload", {"phases.1.offload=all"}},
      {"phases.N.load", {"phases.2.load=first", {"phases=[{save: first}, {lr: 1}, {lr: 1e-3}]"}}},
      {"phases.N.reset_head", {"phases.1.reset_head=true"}},
      {"phases.N.freeze_to", {frozen}},
      {"phases.N.epochs", {"phases.1.epochs=2"}},
      {"phases.N.duration.epochs",
       {"phases.1.duration.epochs=2", {"phases.1.duration={epochs: 1}"}}},
      {"phases.N.duration.steps", {"phases.1.duration={steps: 1}"}},
      {"phases.N.duration.samples", {"phases.1.duration={samples: 1}"}},
      {"phases.N.duration.minutes",
       {"phases.1.duration.minutes=1e-9", {"phases.1.duration={epochs: 2}"}}},
      {"phases.N.lr", {"phases.1.lr=0.1"}},
      {"phases.N.lr.from", {"phases.1.lr.from=0.1", {"phases.1.lr={from: 1e-4, to: 1e-2}"}}},
      {"phases.N.lr.to", {"phases.1.lr.to=0.1", {"phases.1.lr={from: 1e-4, to: 1e-2}"}}},
      {"phases.N.lr.find.start", {"phases.1.lr.find.start=1e-3", {search}}},
      {"phases.N.lr.find.end", {"phases.1.lr.find.end=0.1", {search}}},
      {"phases.N.lr.find.steps", {"phases.1.lr.find.steps=9", {search}}},
      {"phases.N.lr.find.stop_early",
       {"phases.1.lr.find.stop_early=true",
        {"phases.1.lr={find: {steps: 60, start: 1e-2, end: 1e6, stop_early: false}}",
         "optimizer=sgd"}}},
      {"phases.N.lr.find.suggestion", {"phases.1.lr.find.suggestion=minimum", {search}}},
      {"phases.N.schedule.kind", {"phases.1.schedule=linear"}},
      {"phases.N.schedule.options",
       {"phases.1.schedule.options={power: 3}", {"phases.1.schedule=polynomial"}}},
      {"phases.N.schedules.momentum.kind", {momentum + ".kind=linear", {steady, momentum + "={}"}}},
      {"phases.N.schedules.momentum.warmup",
       {momentum + ".warmup=0.5", {steady, momentum + "={}"}}},
      {"phases.N.schedules.momentum.final_factor",
       {momentum + ".final_factor=0.5", {steady, momentum + "=linear"}}},
      {"phases.N.schedules.momentum.options",
       {momentum + ".options={power: 3}", {steady, momentum + "=polynomial"}}},
      {"phases.N.schedules.beta2.kind", {beta2 + ".kind=linear", {beta2 + "={}"}}},
      {"phases.N.schedules.beta2.warmup", {beta2 + ".warmup=0.5", {beta2 + "={}"}}},
      {"phases.N.schedules.beta2.final_factor", {beta2 + ".final_factor=0.5", {beta2 + "=linear"}}},
      {"phases.N.schedules.beta2.options",
       {beta2 + ".options={power: 3}", {beta2 + "=polynomial"}}},
      {"phases.N.schedules.weight_decay.kind", {decay + ".kind=linear", {decays, decay + "={}"}}},
      {"phases.N.schedules.weight_decay.warmup", {decay + ".warmup=0.5", {decays, decay + "={}"}}},
      {"phases.N.schedules.weight_decay.final_factor",
       {decay + ".final_factor=0.5", {decays, decay + "=linear"}}},
      {"phases.N.schedules.weight_decay.options",
       {decay + ".options={power: 3}", {decays, decay + "=polynomial"}}},
      {"phases.N.schedule.warmup", {"phases.1.schedule.warmup=0.5", {"phases.1.schedule=cosine"}}},
      {"phases.N.schedule.final_factor",
       {"phases.1.schedule.final_factor=0.5", {"phases.1.schedule=cosine"}}},
      {"phases.N.schedule.one_cycle.div", {one_cycle + ".div=2"}},
      {"phases.N.schedule.one_cycle.pct_start", {one_cycle + ".pct_start=0.9"}},
      {"phases.N.schedule.one_cycle.final_div", {one_cycle + ".final_div=2"}},
      {"phases.N.schedule.one_cycle.momentum_start", {one_cycle + ".momentum_start=0.5"}},
      {"phases.N.schedule.one_cycle.momentum_lowest", {one_cycle + ".momentum_lowest=0.5"}},
      {"phases.N.schedule.one_cycle.momentum_start@rmsprop",
       {one_cycle + ".momentum_start=0.5", {rmsprop}}},
      {"phases.N.schedule.one_cycle.momentum_lowest@rmsprop",
       {one_cycle + ".momentum_lowest=0.5", {rmsprop}}},
      {"phases.N.best", {"phases.1.best=train_loss", {"phases.1.epochs=2"}}},
      {"phases.N.callbacks", {"phases.1.callbacks=[csv_log]"}},
      {"phases.N.clear_opt", {"phases.1.clear_opt=false"}},
      {"phases.N.save", {"phases.1.save=last"}},
  };
}

/// The rows of the options of what a recipe names, "callbacks.csv_log.file".
KeyRows EveryKey::option_rows() const {
  const auto callback = [](const std::string& entry, const std::string& without,
                           const std::string& with) {
    const std::string start = "callbacks=[observer, {" + entry + ": {";
    return KeyRow{start + with + "}}]",
                  {start + without + "}}]", "phases=[{name: one, epochs: 7, lr: 0.05}]"}};
  };
  const auto transform = [](const std::string& entry, const std::string& without,
                            const std::string& with) {
    const std::string start = "data.transforms=[{" + entry + ": {";
    return KeyRow{start + with + "}}]", {start + without + "}}]"}};
  };
  const auto of_colours = [&](const std::string& entry, const std::string& option) {
    const std::string start = "data.transforms=[{" + entry + ": {";
    return KeyRow{start + option + "}}]",
                  {"data={name: cifar, folder: " + own_.path().string() + "/cifar, size: 12}",
                   start + "}}]"}};
  };
  const auto metric = [](const std::string& entry, const std::string& option) {
    return KeyRow{"metrics=[{" + entry + ": {" + option + "}}]", {"metrics=[" + entry + "]"}};
  };
  const auto threshold = [](const std::string& entry) {
    const std::string start = "metrics=[{" + entry + ": {threshold: ";
    return KeyRow{start + "0.2}}]",
                  {"data={name: shares}", "model={name: mlp, classes: 3, hidden: [4]}",
                   "loss=bce_with_logits", start + "0.5}}]"}};
  };
  const auto muon = [](const std::string& option) {
    return KeyRow{"optimizer.options={" + option + "}", {"optimizer={kind: muon, lr: 0.01}"}};
  };
  const auto eight_bits = [](const std::string& option) {
    return KeyRow{"optimizer.options={" + option + "}", {"optimizer={kind: adamw8bit, lr: 0.01}"}};
  };
  const auto loss = [](const std::string& entry, const std::string& option,
                       const std::vector<std::string>& with = {}) {
    std::vector<std::string> both = with;
    both.push_back("loss=" + entry);
    return KeyRow{"loss={" + entry + ": {" + option + "}}", both};
  };
  const auto pad = [&](const std::string& option) {
    return KeyRow{
        "data.collate={pad: {" + option + "}}",
        {"data={name: text_folder, folder: " + own_.path().string() + "/texts, collate: {pad: {}}}",
         "model={name: whole_text, classes: 3}"}};
  };
  const auto sample_text = [&](const std::string& option) {
    return KeyRow{"callbacks=[{sample_text: {" + option + "}}]",
                  {"data={name: text, file: " + own_.path().string() + "/book.txt, context: 12}",
                   "model={name: gpt, layers: 1, heads: 1, width: 8}", "callbacks=[sample_text]"}};
  };
  const std::vector<std::string> of_shares{
      "data={name: shares}", "model={name: mlp, classes: 3, hidden: [4]}", "metrics=[]"};
  const std::vector<std::string> of_patches{
      "model={name: vit, width: 8, layers: 1, heads: 2, options: {patch: 4}}"};
  const auto program = [&](const std::string& file) {
    return "{file: " + (folder_ / "other" / file).string() + ", trust: true}";
  };
  const std::vector<std::string> of_a_program{
      "model={name: torchscript, options: " + program("net.pt") + "}"};
  return {
      {"callbacks.csv_log.file", callback("csv_log", "", "file: other.csv")},
      {"callbacks.steps_log.file", callback("steps_log", "", "file: other.csv")},
      {"callbacks.early_stopping.monitor", callback("early_stopping", "", "monitor: train_loss")},
      {"callbacks.early_stopping.lower_is_better",
       callback("early_stopping", "monitor: train_loss",
                "monitor: train_loss, lower_is_better: false")},
      {"callbacks.early_stopping.min_delta",
       callback("early_stopping", "monitor: train_loss", "monitor: train_loss, min_delta: 100")},
      {"callbacks.early_stopping.patience",
       callback("early_stopping", "min_delta: 100", "min_delta: 100, patience: 1")},
      {"callbacks.save_best.monitor", callback("save_best", "", "monitor: accuracy")},
      {"callbacks.save_best.lower_is_better",
       callback("save_best", "monitor: train_loss", "monitor: train_loss, lower_is_better: false")},
      {"callbacks.save_best.min_delta",
       callback("save_best", "monitor: train_loss", "monitor: train_loss, min_delta: 100")},
      {"callbacks.save_best.checkpoint", callback("save_best", "", "checkpoint: other")},
      {"callbacks.save_best.restore",
       callback("save_best", "monitor: train_loss, lower_is_better: false",
                "monitor: train_loss, lower_is_better: false, restore: false")},
      {"callbacks.sample_text.prompt", sample_text("prompt: a")},
      {"callbacks.sample_text.every", sample_text("every: 2")},
      {"callbacks.sample_text.length", sample_text("length: 5")},
      {"callbacks.sample_text.temperature", sample_text("temperature: 0")},
      {"callbacks.sample_text.top_k", sample_text("top_k: 1")},
      {"callbacks.sample_text.seed", sample_text("seed: 3")},
      {"callbacks.ema.decay", callback("ema", "", "decay: 0.5")},
      {"callbacks.ema.every", callback("ema", "", "every: 3")},
      {"callbacks.ema.warmup", callback("ema", "", "warmup: 9")},
      {"callbacks.ema.restore", callback("ema", "", "restore: false")},
      {"callbacks.swa.start", callback("swa", "", "start: 0.1")},
      {"callbacks.swa.restore", callback("swa", "", "restore: false")},
      {"callbacks.tensorboard.folder", callback("tensorboard", "", "folder: other")},
      {"callbacks.tensorboard.every", callback("tensorboard", "", "every: 2")},
      {"callbacks.tensorboard.gradients", callback("tensorboard", "", "gradients: true")},
      {"callbacks.tensorboard.histograms", callback("tensorboard", "", "histograms: true")},
      {"callbacks.tensorboard.images", callback("tensorboard", "", "images: 2")},
      {"callbacks.jsonl_log.file", callback("jsonl_log", "", "file: other.jsonl")},
      {"callbacks.jsonl_log.every", callback("jsonl_log", "", "every: 2")},
      {"callbacks.reduce_on_plateau.monitor",
       callback("reduce_on_plateau", "patience: 0", "patience: 0, monitor: train_loss")},
      {"callbacks.reduce_on_plateau.lower_is_better",
       callback("reduce_on_plateau", "patience: 0, monitor: train_loss",
                "patience: 0, monitor: train_loss, lower_is_better: false")},
      {"callbacks.reduce_on_plateau.min_delta",
       callback("reduce_on_plateau", "patience: 0", "patience: 0, min_delta: 100")},
      {"callbacks.reduce_on_plateau.factor",
       callback("reduce_on_plateau", "min_delta: 100", "min_delta: 100, factor: 0.5")},
      {"callbacks.reduce_on_plateau.patience",
       callback("reduce_on_plateau", "min_delta: 100", "min_delta: 100, patience: 1")},
      {"callbacks.reduce_on_plateau.min_lr",
       callback("reduce_on_plateau", "min_delta: 100", "min_delta: 100, min_lr: 0.01")},
      {"callbacks.mixup.alpha", callback("mixup", "", "alpha: 5")},
      {"callbacks.mixup.probability", callback("mixup", "", "probability: 0.5")},
      {"callbacks.cutmix.alpha", callback("cutmix", "", "alpha: 0.1")},
      {"callbacks.cutmix.probability", callback("cutmix", "", "probability: 0.5")},
      {"callbacks.throughput.flops", callback("throughput", "", "flops: true")},
      {"callbacks.throughput.peak_tflops",
       callback("throughput", "flops: true", "flops: true, peak_tflops: 1")},
      {"callbacks.stop_file.file", callback("stop_file", "", "file: /proc/version")},
      {"callbacks.freeze_batch_norm.frozen_only",
       callback("freeze_batch_norm", "", "frozen_only: true")},
      {"callbacks.timed_save.minutes", callback("timed_save", "", "minutes: 1.0e-9")},
      {"callbacks.keep_checkpoints.last", callback("keep_checkpoints", "", "last: 1")},
      {"callbacks.keep_checkpoints.best",
       callback("keep_checkpoints", "last: 1", "last: 1, best: 1")},
      {"callbacks.keep_checkpoints.monitor",
       callback("keep_checkpoints", "last: 1, best: 1", "last: 1, best: 1, monitor: accuracy")},
      {"callbacks.keep_checkpoints.lower_is_better",
       callback("keep_checkpoints", "last: 0, best: 1",
                "last: 0, best: 1, lower_is_better: false")},
      {"callbacks.keep_checkpoints.name", callback("keep_checkpoints", "", "name: other")},
      {"transforms.affine.degrees", transform("affine", "", "degrees: 90")},
      {"transforms.affine.zoom", transform("affine", "", "zoom: 0.5")},
      {"transforms.flip.probability", transform("flip", "", "probability: 1")},
      {"transforms.centre_crop.height",
       transform("centre_crop", "height: 8, width: 8", "height: 9, width: 8")},
      {"transforms.centre_crop.width",
       transform("centre_crop", "height: 8, width: 8", "height: 8, width: 9")},
      {"transforms.centre_crop.short_side",
       transform("centre_crop", "height: 8, width: 8", "height: 8, width: 8, short_side: 10")},
      {"transforms.colour.brightness", transform("colour", "", "brightness: 0.5")},
      {"transforms.colour.contrast", transform("colour", "", "contrast: 0.5")},
      {"transforms.colour.saturation", of_colours("colour", "saturation: 0.5")},
      {"transforms.colour.hue", of_colours("colour", "hue: 0.1")},
      {"transforms.crop.height", transform("crop", "height: 8, width: 8", "height: 9, width: 8")},
      {"transforms.crop.width", transform("crop", "height: 8, width: 8", "height: 8, width: 9")},
      {"transforms.crop.padding",
       transform("crop", "height: 8, width: 8", "height: 8, width: 8, padding: 2")},
      {"transforms.crop.fill", transform("crop", "height: 8, width: 8, padding: 2",
                                         "height: 8, width: 8, padding: 2, fill: edge")},
      {"transforms.erasing.probability", transform("erasing", "", "probability: 1")},
      {"transforms.erasing.scale", transform("erasing", "", "scale: [0.5, 0.5]")},
      {"transforms.erasing.ratio", transform("erasing", "", "ratio: [1, 1]")},
      {"transforms.erasing.fill", transform("erasing", "", "fill: noise")},
      {"transforms.erasing.value", transform("erasing", "", "value: 0.5")},
      {"transforms.grey.probability", of_colours("grey", "probability: 1")},
      {"transforms.rand_augment.operations", transform("rand_augment", "", "operations: 1")},
      {"transforms.rand_augment.magnitude", transform("rand_augment", "", "magnitude: 20")},
      {"transforms.rand_augment.levels", transform("rand_augment", "", "levels: 11")},
      {"transforms.random_resized_crop.height",
       transform("random_resized_crop", "height: 8, width: 8", "height: 9, width: 8")},
      {"transforms.random_resized_crop.width",
       transform("random_resized_crop", "height: 8, width: 8", "height: 8, width: 9")},
      {"transforms.random_resized_crop.scale",
       transform("random_resized_crop", "height: 8, width: 8",
                 "height: 8, width: 8, scale: [0.5, 1]")},
      {"transforms.random_resized_crop.ratio",
       transform("random_resized_crop", "height: 8, width: 8",
                 "height: 8, width: 8, ratio: [1, 1]")},
      {"transforms.random_resized_crop.short_side",
       transform("random_resized_crop", "height: 8, width: 8",
                 "height: 8, width: 8, short_side: 12")},
      {"transforms.normalise.mean",
       transform("normalise", "mean: [0], std: [1]", "mean: [0.5], std: [1]")},
      {"transforms.normalise.std",
       transform("normalise", "mean: [0], std: [1]", "mean: [0], std: [0.5]")},
      {"transforms.resize.height",
       transform("resize", "height: 10, width: 10", "height: 11, width: 10")},
      {"transforms.resize.width",
       transform("resize", "height: 10, width: 10", "height: 10, width: 11")},
      {"transforms.resize.round",
       transform("resize", "height: 10, width: 10", "height: 10, width: 10, round: true")},
      {"transforms.resize.antialias",
       transform("resize", "height: 10, width: 10", "height: 10, width: 10, antialias: false")},
      {"transforms.resize.fit",
       transform("resize", "height: 10, width: 8", "height: 10, width: 8, fit: crop")},
      {"transforms.shift.pixels", transform("shift", "", "pixels: 1")},
      {"transforms.shift.padding", transform("shift", "", "padding: edge")},
      {"metrics.accuracy.threshold", threshold("accuracy")},
      {"metrics.accuracy.as", metric("accuracy", "as: mine")},
      {"metrics.top_k.k", metric("top_k", "k: 2")},
      {"metrics.top_k.as", metric("top_k", "as: mine")},
      {"metrics.precision.average", metric("precision", "average: micro")},
      {"metrics.precision.threshold", threshold("precision")},
      {"metrics.precision.as", metric("precision", "as: mine")},
      {"metrics.recall.average", metric("recall", "average: micro")},
      {"metrics.recall.threshold", threshold("recall")},
      {"metrics.recall.as", metric("recall", "as: mine")},
      {"metrics.f1.average", metric("f1", "average: weighted")},
      {"metrics.f1.threshold", threshold("f1")},
      {"metrics.f1.as", metric("f1", "as: mine")},
      {"metrics.iou.ignore_index", metric("iou", "ignore_index: 3")},
      {"metrics.iou.threshold", threshold("iou")},
      {"metrics.iou.as", metric("iou", "as: mine")},
      {"metrics.dice.ignore_index", metric("dice", "ignore_index: 3")},
      {"metrics.dice.threshold", threshold("dice")},
      {"metrics.dice.as", metric("dice", "as: mine")},
      {"metrics.perplexity.ignore_index", metric("perplexity", "ignore_index: 3")},
      {"metrics.perplexity.as", metric("perplexity", "as: mine")},
      {"losses.cross_entropy.label_smoothing", loss("cross_entropy", "label_smoothing: 0.1")},
      {"losses.cross_entropy.class_weights",
       loss("cross_entropy", "class_weights: [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]")},
      {"losses.bce_with_logits.positive_weight",
       loss("bce_with_logits", "positive_weight: 2", of_shares)},
      {"losses.smooth_l1.beta", loss("smooth_l1", "beta: 0.1", of_shares)},
      {"models.tabular.categories",
       {"model.options={categories: [7]}",
        {"data={name: shares}", "model={name: tabular, classes: 3, hidden: [4]}", "metrics=[]"}}},
      {"models.tabular.output_deviation",
       {"model.options={output_deviation: 3}",
        {"data={name: shares}", "model={name: tabular, classes: 3, hidden: [4]}", "loss=mse",
         "metrics=[]"}}},
      {"models.tabular.output_mean",
       {"model.options={output_mean: 3}",
        {"data={name: shares}", "model={name: tabular, classes: 3, hidden: [4]}", "loss=mse",
         "metrics=[]"}}},
      {"models.torchscript.file", {"model.options=" + program("other.pt"), of_a_program}},
      {"models.torchscript.trust", {"model.options.trust=false", of_a_program}},
      {"models.torchscript.content", {"model.options.content=0123456789abcdef", of_a_program}},
      {"models.unet.bilinear",
       {"model.options={bilinear: true}",
        {"data={name: masks}", "batch=5", "model={name: unet, classes: 2, width: 4}",
         "metrics=[]"}}},
      {"models.vit.mlp", {"model.options={patch: 4, mlp: 20}", of_patches}},
      {"models.vit.patch", {"model.options={patch: 6}", of_patches}},
      {"optimizers.adamw8bit.min_elements", eight_bits("min_elements: 0")},
      {"optimizers.muon.nesterov_momentum", muon("nesterov_momentum: false")},
      {"optimizers.muon.ns_steps", muon("ns_steps: 3")},
      {"optimizers.muon.adjust_lr", muon("adjust_lr: original")},
      {"optimizers.muon.float32", muon("float32: true")},
      {"optimizers.muon.convolutions",
       {"optimizer.options={convolutions: true}",
        {"model={name: convnet, width: 4}", "optimizer={kind: muon, lr: 0.01}"}}},
      {"optimizers.muon.adamw", muon("adamw: [fc]")},
      {"optimizers.muon.adamw_lr", muon("adamw_lr: 0.5")},
      {"optimizers.muon.adamw_momentum", muon("adamw_momentum: 0.5")},
      {"collates.pad.value", pad("value: 7")},
      {"collates.pad.with", pad("with: mask")},
      {"collates.pad.multiple", pad("multiple: 16")},
  };
}

TEST_F(EveryKey, HasARow) {
  std::set<std::string> keys, with_row;
  for (const RecipeKey& key : recipe_keys())
    if (!key.path.starts_with("phases.N.data.") && key.type != "a mapping" && key.path != "phases")
      keys.insert(key.path);
  keys.insert("phases.N.data");
  for (const auto& [row, more] : rows()) with_row.insert(key_of(row));
  for (const auto& [row, test] : not_observed()) with_row.insert(key_of(row));
  for (const auto& key : with_row) EXPECT_EQ(keys.erase(key), 1U) << key << " is not a key";
  EXPECT_THAT(keys, ::testing::IsEmpty()) << "keys whose effect nobody looks at";
}

// A key that has an effect on one data set may have none on another.
TEST_F(EveryKey, HasARowForEachDataSetThatTakesIt) {
  const auto table = rows();
  for (const auto& set : datasets::names())
    for (const auto& field : datasets::registry().make(set).fields) {
      const std::string row = "data." + field + '@' + set;
      EXPECT_TRUE(table.contains(row) || not_observed().contains(row)) << row;
    }
}

TEST_F(EveryKey, HasARowForEachOptionOfWhatARecipeNames) {
  std::set<std::string> options, with_row;
  options.merge(options_of("callbacks", callbacks::registry().infos()));
  options.merge(options_of("transforms", transforms::registry().infos()));
  options.merge(options_of("metrics", metrics::registry().infos()));
  options.merge(options_of("losses", losses::registry().infos()));
  options.merge(options_of("collates", collates::registry().infos()));
  options.merge(options_of("models", models::registry().infos()));
  options.merge(options_of("optimizers", optimizers::registry().infos()));
  for (const auto& [row, more] : option_rows()) with_row.insert(row);
  EXPECT_EQ(with_row, options);
}

TEST_F(EveryKey, HasAnEffectOrIsRefused) {
  const KeyRows options = option_rows();
  KeyRows all = rows();
  all.insert(options.begin(), options.end());
  expect_effects(
      all, [&](const auto& settings) { return observed(settings); },
      [&](const std::string& key) {
        return !options.contains(key) || key == "models.torchscript.trust" ||
               key == "models.torchscript.content";
      });
}

}  // namespace
}  // namespace tare::testing
