// Runs a program once for each combination, and trains in each of its runs.
#include "tare/furcate/fork.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <system_error>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/parts.h"
#include "tare/base/signals.h"
#include "tare/callback/autosave.h"
#include "tare/config/scalar.h"
#include "tare/experiment/experiment.h"
#include "tare/furcate/fork_runner.h"
#include "tare/learner/summary.h"
#include "tare/memory/backend.h"
#include "tare/recipe/memory_monitor.h"
#include "tare/recipe/resume.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/init.h"
#include "tare/train/interrupt.h"
#include "tare/train/train_state.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using config::Node;
using std::chrono::system_clock;

/// Returns the words with which this process was started.
std::vector<std::string> command_line() {
  const std::string text = io::read_text("/proc/self/cmdline");
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size(); at += words.back().size() + 1)
    words.emplace_back(text.c_str() + at);
  return words;
}

bool asks_for_help(const std::vector<std::string>& words) {
  return std::ranges::any_of(
      words, [](const std::string& word) { return word == "--help" || word == "-h"; });
}

std::string help_text(const std::string& program, const fs::path& config) {
  const std::string name = printable(program, 1000), file = printable(config.string(), 1000);
  return name + " runs each combination of the lists in " + file +
         " that has not run yet.\n\n"
         "usage: " +
         name +
         " [--config FILE]\n\n"
         "  --config FILE   a configuration in place of " +
         file +
         "\n"
         "  --name, --id    a single run, which the program starts itself\n"
         "  -h, --help      prints this text\n\n"
         "tare sweep status, report, stop and rebuild take the configuration too.\n";
}

/// Files only, sorted.
std::vector<fs::path> files_with(const std::vector<fs::path>& files, const std::string& prefix) {
  std::vector<fs::path> some;
  for (const auto& file : files)
    if (file.filename().string().starts_with(prefix)) some.push_back(file);
  return some;
}

/// Returns the values by epoch, or none if no epoch has one.
std::vector<double> measured(std::vector<double> values) {
  const bool none = std::ranges::all_of(values, [](double value) { return std::isnan(value); });
  return none ? std::vector<double>() : values;
}

ForkHistory history_of(const FitResult& fit) {
  ForkHistory history(1);
  history[0].name = "loss";
  for (size_t i = 0; i < fit.epochs.size(); ++i) {
    const EpochRow& row = fit.epochs[i];
    history[0].train.push_back(row.train_loss);
    history[0].valid.push_back(row.valid_loss);
    for (const auto& metric : row.metrics) {
      auto found = std::ranges::find(history, metric.name, &sweep::MetricHistory::name);
      if (found == history.end())
        found = history.insert(history.end(), {.name = metric.name, .train = {}, .valid = {}});
      found->valid.resize(i, std::nan(""));  // epochs before its first
      found->valid.push_back(metric.value);
    }
  }
  for (auto& metric : history) {
    metric.valid.resize(fit.epochs.size(), std::nan(""));
    metric.valid = measured(std::move(metric.valid));
  }
  return history;
}

const sweep::MetricHistory& named(const ForkHistory& history, const std::string& metric) {
  const auto found = std::ranges::find(history, metric, &sweep::MetricHistory::name);
  if (found == history.end())
    throw ConfigError("fork.run", "the history has no metric '" + printable(metric) + "'");
  return *found;
}

/// Saves a checkpoint after every epoch, the older of two giving way.
class SaveEpochs final : public Callback {
 public:
  void write(auto& learner) {
    saves_.write([&](const std::string& checkpoint) { learner.save(checkpoint); });
  }
  [[nodiscard]] std::string name() const override { return saves_.name(); }
  Action after_epoch(FitContext& context) override {
    write(context.learner);
    return Action::proceed;
  }
  [[nodiscard]] std::string state() const override { return saves_.state(); }
  void load_state(const std::string& json) override { saves_.load_state(json); }

 private:
  Autosave saves_{0};
};

}  // namespace

Fork::Fork(fs::path config) : file_(std::move(config)) {}
Fork::~Fork() = default;

int Fork::run() {
  ignore_file_limit_signal();
  ignore_closed_output_signal();
  try {
    const auto words = command_line();
    if (asks_for_help(words)) {
      std::cout << help_text(words.front(), file_);
      return kSuccess;
    }
    const ForkArguments given = fork_arguments(words);
    const fs::path file = given.config.empty() ? file_ : given.config;
    if (!given.is_run()) return run_all(file);
    name_ = given.name;
    id_ = given.id;
    return run_one(file);
  } catch (...) {
    return report_error(std::current_exception());
  }
}

int Fork::run_all(const fs::path& file) {
  init({.threads = 1});
  const auto sweep = furcate::read_program_sweep(file);
  data_name = sweep.name;
  meta = config::read<furcate::Meta>(*sweep.origin.configuration.find("meta"));
  return run_cells(file, [this] { return get_available_gpu_indices(); });
}

int Fork::run_one(const fs::path& file) {
  config_ = furcate::whole_configuration(config::parse_file(file));
  static_cast<ForkConfig&>(*this) = read_fork_config(config_);
  log_dir = file.parent_path();
  set_visible_gpus();
  init();
  at::manual_seed(static_cast<uint64_t>(seed));
  sweep::RunRecord record = train();
  if (signal_ != 0) return 128 + signal_;
  save(record);
  if (!saved_in_.empty()) remove_autosaves(saved_in_);
  return kSuccess;
}

sweep::RunRecord Fork::train() {
  sweep::RunRecord record{.config = config_, .start = system_clock::now()};
  MemoryMonitor holders(meta.mem_trace, std::cout);
  const c10::Device device = runtime::open_device(gpu_id < 0 ? "cpu" : "auto");
  Experiment experiment(
      name_, {.devices = {c10::kCPU, device}, .out = verbose >= 1 ? &std::cout : nullptr});
  auto& learner = experiment.emplace<std::unique_ptr<Learner>>("learner", compile());
  const FitResult fit = fit_and_evaluate(*learner, record);
  record.history = history_of(fit);
  holders.snapshot("Before the Learner is destroyed");
  const ExperimentReport memory = experiment.finish();  // destroys the Learner
  record.peak_bytes = memory.on(device).peak_bytes;
  if (verbose >= 1) std::cout << memory << std::flush;
  return record;
}

std::unique_ptr<Learner> Fork::compile() {
  Splits data = get_datasets(get_filepaths());
  if (cache)
    for (DatasetPtr* split : {&data.train, &data.valid, &data.test})
      if (*split) *split = tare::cache(*split);
  Model model = get_model();
  const auto metrics = get_metrics();
  const auto optimizer = get_optimizer();
  const auto loss = get_loss();
  callbacks_ = get_callbacks();
  data.train = processed(data.train, &Fork::train_preprocess);
  data.valid = processed(data.valid, &Fork::valid_preprocess);
  data.test = processed(data.test, &Fork::test_preprocess);
  auto learner = model_compile(std::move(model), optimizer, loss, metrics, std::move(data));
  if (!learner) throw StateError("fork.run", "model_compile() has given no Learner");
  if (verbose >= 1) model_summary(learner->model());
  return learner;
}

FitResult Fork::fit_and_evaluate(Learner& learner, sweep::RunRecord& record) {
  FitResult fit = model_fit(learner, epochs, std::exchange(callbacks_, {}));
  if (signal_ != 0) return fit;
  if (fit.reason == StopReason::interrupted)
    throw StateError("fork.run", "the fit was interrupted", "run the program again");
  record.end = system_clock::now();
  if (learner.data().test) {
    const Evaluation test = model_evaluate(learner);
    record.results = figures_of(SplitFigures{.loss = test.loss, .metrics = test.metrics});
  }
  model_save(learner);
  return fit;
}

void Fork::save(sweep::RunRecord& record) {
  for (size_t i = 1; i <= record.history.size(); ++i) {  // the loss, which is first, comes last
    const std::string metric = record.history[i % record.history.size()].name;
    save_metric(record.more, record.history, metric);
    plot_metric(record.history, metric);
  }
  save_history(record.history);
  io::write_atomically(log_dir / "run_data.json", sweep::run_data_json(record));
}

DatasetPtr Fork::processed(const DatasetPtr& data, Process process) const {
  if (!data) return data;
  const auto function = [this, process](Batch batch) { return (this->*process)(std::move(batch)); };
  const std::vector<int64_t> first{0};
  const Batch given = data->get({first, static_cast<uint64_t>(seed), false});
  const at::Tensor before = given.input().clone();
  const Batch one = function(given);
  if (one.size() != 1)
    throw ShapeError("fork.preprocess", "the one sample that it got", std::to_string(one.size()));
  auto as = preprocess_transforms();
  const at::Tensor &input = one.input(), &from = given.input();
  if (!as && input.is_same(from) && at::equal(from, before)) as = Transforms();
  return map(data, function, input.sizes().slice(1).vec(), as);
}

int64_t Fork::loader_threads() const {
  if (!has("num_parallel_calls")) return prefetch < 0 ? at::get_num_threads() : prefetch;
  return threads_of("num_parallel_calls");
}

int64_t Fork::threads_of(const std::string& key) const {
  if (!has(key) || value_of(key).text == "auto") return at::get_num_threads();
  const auto threads = get<int64_t>(key);
  return threads < 0 ? at::get_num_threads() : threads;
}

DatasetPtr Fork::gen_tfrecord_dataset(
    const std::vector<fs::path>& filepaths,
    const std::function<Batch(const TfExample&)>& processor) const {
  return tfrecord_dataset(filepaths, processor,
                          {.parallel_reads = threads_of("num_parallel_reads")});
}

const Node& Fork::value_of(const std::string& key) const {
  if (const Node* value = config_.find(key)) return *value;
  std::vector<std::string> names;
  for (const auto& entry : config_.entries) names.push_back(entry.key);
  throw ConfigError(config_.source, printable(key),
                    "is not a key of the configuration" + did_you_mean(key, names), listed(names),
                    {});
}

bool Fork::has(const std::string& key) const {
  const Node* value = config_.find(key);
  return value && value->kind != config::Kind::null;
}

std::vector<int64_t> Fork::get_available_gpu_indices() {
  std::vector<int64_t> all;
  for (const c10::Device device : memory::devices())
    if (!device.is_cpu()) all.push_back(device.index());
  return all;
}

void Fork::set_visible_gpus() {
  if (gpu_id >= 0) setenv("CUDA_VISIBLE_DEVICES", std::to_string(gpu_id).c_str(), 0);
}

ForkFiles Fork::get_filepaths() {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(data_dir, error), end; !error && entry != end;
       entry.increment(error))
    if (!entry->is_directory(error)) files.push_back(entry->path());
  if (error) throw IoError("fork.get_filepaths", data_dir.string(), error.value());
  std::ranges::sort(files);
  return {files_with(files, train_prefix), files_with(files, valid_prefix),
          files_with(files, test_prefix)};
}

void Fork::model_summary(const Model& model) { std::cout << summary(model) << '\n'; }

std::vector<Metric> Fork::get_metrics() { return {}; }

ForkOptimizer Fork::get_optimizer() {
  return OptimizerOptions{.kind = lower_case(get<std::string>("optimizer_name", "adamw")),
                          .lr = learning_rate};
}

Loss Fork::get_loss() { return "cross_entropy"; }

namespace {

/// Returns a factory that finds a rate in its groups, which one of torch::optim replaces by its
/// own.
OptimizerFactory with_rate(const OptimizerFactory& factory, double rate) {
  if (!factory) return factory;
  return [factory, rate](std::vector<ParameterGroup> groups) {
    for (ParameterGroup& group : groups) group.lr = rate;
    return factory(std::move(groups));
  };
}

}  // namespace

std::unique_ptr<Learner> Fork::model_compile(Model model, const ForkOptimizer& optimizer,
                                             const Loss& loss, const std::vector<Metric>& metrics,
                                             Splits data) {
  LearnerOptions options;
  options.loss = loss;
  options.metrics = metrics;
  options.device = gpu_id < 0 ? "cpu" : "auto";
  options.batch = batch_size;
  options.seed = static_cast<uint64_t>(seed);
  options.workers = loader_threads();
  options.shuffle = !shuffle_buffer_size || *shuffle_buffer_size > 1;
  options.folder = log_dir;
  options.progress = verbose >= 2;
  if (const auto* factory = std::get_if<OptimizerFactory>(&optimizer))
    options.optimizer_factory = with_rate(*factory, learning_rate);
  else
    options.optimizer = std::get<OptimizerOptions>(optimizer);
  return std::make_unique<Learner>(std::move(model), std::move(data), std::move(options));
}

std::vector<CallbackPtr> Fork::get_callbacks() { return {}; }

FitResult Fork::model_fit(Learner& learner, int64_t epoch_count,
                          const std::vector<CallbackPtr>& callbacks) {
  const InterruptScope interrupts;
  const auto saves = std::make_shared<SaveEpochs>();
  auto all = callbacks;
  all.push_back(saves);
  saved_in_ = learner.folder();
  const auto newest = newest_checkpoint(saved_in_, Autosave::names());
  if (newest) (void)learner.load(newest->name);
  FitResult fit = newest ? learner.resume(all) : learner.fit(epoch_count, {.callbacks = all});
  signal_ = interrupts.signal();
  if (signal_ != 0 && fit.reason == StopReason::interrupted)
    saves->write(learner);
  else
    signal_ = 0;  // it came behind the last step
  return fit;
}

void Fork::model_save(Learner& learner) {
  const Splits& data = learner.data();
  const auto is_described = [](const DatasetPtr& set) { return set && set->described(); };
  if (is_described(data.train) || is_described(data.valid) || is_described(data.test)) {
    learner.export_to(log_dir / "model.pt");
    return;
  }
  log::warning(
      "[fork.model_save] no bundle can say what preprocess() does: the model is saved as the "
      "checkpoint 'model'; with preprocess_transforms() it is a bundle");
  learner.save("model");
}

Evaluation Fork::model_evaluate(Learner& learner) { return learner.validate(Split::test); }

void Fork::save_metric(std::vector<MetricValue>& results, const ForkHistory& history,
                       const std::string& metric) {
  const auto& values = named(history, metric);
  if (!values.train.empty()) results.push_back({"train_" + metric, values.train.back()});
  if (!values.valid.empty()) results.push_back({"val_" + metric, values.valid.back()});
}

void Fork::plot_metric(const ForkHistory& history, const std::string& metric) {
  sweep::write_plot(log_dir, named(history, metric));
}

void Fork::save_history(const ForkHistory& history) {
  sweep::RunRecord record;
  record.history = history;
  io::write_atomically(log_dir / "history.json", sweep::history_json(record));
}

}  // namespace tare
