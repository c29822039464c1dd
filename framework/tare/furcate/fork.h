// Fork: furcate's class in C++. A program of the user's that runs itself once for each combination
// of its configuration's lists.
//
//   class App : public tare::Fork {
//     using Fork::Fork;
//     tare::Splits get_datasets(const tare::ForkFiles& files) override;
//     tare::Model get_model() override;
//   };
//   int main() { return App("config.json").run(); }
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tare/config/field.h"
#include "tare/data/tfrecord.h"
#include "tare/furcate/fork_config.h"
#include "tare/learner/learner.h"
#include "tare/sweep/run_record.h"

namespace tare {

/// Lists the files of data_dir that begin with each prefix, sorted.
struct ForkFiles {
  std::vector<std::filesystem::path> train{}, valid{}, test{};  ///< of each split, sorted
};

/// Holds options of a fused optimizer, or torch_optimizer<torch::optim::RMSprop>().
using ForkOptimizer = std::variant<OptimizerOptions, OptimizerFactory>;

/// Loss and metrics by epoch: "loss" first, with its values over the training and the validation
/// split; metrics are of the validation alone.
using ForkHistory = std::vector<sweep::MetricHistory>;

/// Is the base of a program whose main() calls run(). Started by the user it is the *runner*: it
/// reads the configuration (see furcate/configuration.h), and starts the program again for each
/// cell that has not run yet, as processes `PROGRAM --config FILE --name NAME --id ID`. Each of
/// these is a *run*, which calls the virtual methods in the order in which they stand here.
/// docs/sweeps.md describes the folders and files.
///
/// A run is an Experiment: whatever the methods allocate is measured, and what they leave behind is
/// in its report. The members of ForkConfig have their values in a run; in the runner only
/// data_name and meta have. Do not make tensors before run(), see init(). Neither copied nor moved.
class Fork : protected ForkConfig {
 public:
  /// Takes the file of the configuration: furcate's JSON, or YAML; `--config FILE` on the command
  /// line takes the place of `config`. Nothing is read before run().
  explicit Fork(std::filesystem::path config);
  virtual ~Fork();
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;

  /// Runs the runner, or one run. Returns main's exit code: 0 done, 1 a run failed, 2 bad input, 3
  /// out of memory, 4 I/O, 128 and the signal that stopped the runner. Errors are logged, not
  /// thrown. From then on the program ignores SIGXFSZ and SIGPIPE, see base/signals.h.
  [[nodiscard]] int run();

 protected:
  /// Whether the configuration has the key, with a value that is not null.
  [[nodiscard]] bool has(const std::string& key) const;
  /// Returns the value of any key of the configuration. Throws ConfigError for an unknown key,
  /// naming the nearest, and for a value that is no T.
  template <class T>
  [[nodiscard]] T get(const std::string& key) const;
  /// Returns the key's value, or `otherwise` where has() is false.
  template <class T>
  [[nodiscard]] T get(const std::string& key, T otherwise) const {
    return has(key) ? get<T>(key) : std::move(otherwise);
  }
  /// Returns the whole configuration, in furcate's order.
  [[nodiscard]] const config::Node& configuration() const { return config_; }
  [[nodiscard]] const std::string& run_name() const { return name_; }  ///< that of its folder
  [[nodiscard]] int64_t run_id() const { return id_; }                 ///< is never used twice

  /// Returns a data set of TFRecord files, for get_datasets(): `processor` makes a sample of each
  /// tf.train.Example, in num_parallel_reads threads, -1, "auto" or unset: one for each core of the
  /// run. Throws what tfrecord_dataset() throws.
  [[nodiscard]] DatasetPtr gen_tfrecord_dataset(
      const std::vector<std::filesystem::path>& filepaths,
      const std::function<Batch(const TfExample&)>& processor) const;

  // ---- the methods, by call order

  /// Called in the runner: returns the indices of the CUDA devices that runs may use, by default
  /// all. Each has one run at a time, more where meta.max_threads is above their number. A device
  /// whose free memory NVIDIA's library does not report is skipped.
  virtual std::vector<int64_t> get_available_gpu_indices();
  /// Called before init(). The runner has set CUDA_VISIBLE_DEVICES to the run's card already; a run
  /// that was started by hand gets its gpu_id, unless the variable is set.
  virtual void set_visible_gpus();
  /// Throws IoError if data_dir cannot be read.
  virtual ForkFiles get_filepaths();
  /// Returns the data sets. With `cache` true they are then kept in memory, see tare::cache().
  virtual Splits get_datasets(const ForkFiles& files) = 0;
  /// Makes the model of a run.
  virtual Model get_model() = 0;
  virtual std::vector<Metric> get_metrics();  ///< returns none beside the loss by default
  /// Returns the optimizer, by default `optimizer_name` in lower case, else adamw, with
  /// learning_rate.
  virtual ForkOptimizer get_optimizer();
  virtual Loss get_loss();                           ///< returns cross_entropy by default
  virtual std::vector<CallbackPtr> get_callbacks();  ///< returns none by default
  /// Makes the Learner, by default one with batch_size, seed, the loader threads of
  /// num_parallel_calls or else prefetch, the run's folder, and the epochs table at verbose 2; on
  /// the CPU if gpu_id is -1. A shuffle_buffer_size of 0 or 1 keeps the order of the training
  /// split.
  virtual std::unique_ptr<Learner> model_compile(Model model, const ForkOptimizer& optimizer,
                                                 const Loss& loss,
                                                 const std::vector<Metric>& metrics, Splits data);
  /// Called at verbose >= 1 with the Learner's model; by default prints summary(model).
  virtual void model_summary(const Model& model);
  /// Trains, by default by fit(epoch_count), which saves a checkpoint in log_dir after each epoch.
  /// A run that was stopped or killed continues from the last one, and ends with the weights of an
  /// undisturbed one. A method of your own that does not call this one starts again from the
  /// beginning.
  virtual FitResult model_fit(Learner& learner, int64_t epoch_count,
                              const std::vector<CallbackPtr>& callbacks);
  virtual Evaluation model_evaluate(Learner& learner);  ///< is called only with a test split
  /// Saves the model, by default as a bundle, log_dir/model.pt; where it is unknown what
  /// preprocess() does, with a warning, as a checkpoint, log_dir/model.
  virtual void model_save(Learner& learner);
  /// Called for each metric and last for the loss, as plot_metric(). Adds to meta.data of
  /// run_data.json; by default the values of the last epoch, train_<name> and val_<name>.
  virtual void save_metric(std::vector<MetricValue>& results, const ForkHistory& history,
                           const std::string& metric);
  /// Plots a metric; by default writes log_dir/<metric>.svg and .png, from two epochs on.
  virtual void plot_metric(const ForkHistory& history, const std::string& metric);
  virtual void save_history(const ForkHistory& history);  ///< by default log_dir/history.json

  // ---- applied to the splits that get_datasets() gives, to each batch where the loader makes it:
  // from several threads, each sample on its own, as map() of data/dataset.h says

  /// Changes a batch of any split; by default it returns it as it is.
  [[nodiscard]] virtual Batch preprocess(Batch batch) const { return batch; }
  /// Changes a batch of the training split; by default preprocess().
  [[nodiscard]] virtual Batch train_preprocess(Batch batch) const { return preprocess(batch); }
  /// Changes a batch of the validation split; by default preprocess().
  [[nodiscard]] virtual Batch valid_preprocess(Batch batch) const { return preprocess(batch); }
  /// Changes a batch of the test split; by default preprocess().
  [[nodiscard]] virtual Batch test_preprocess(Batch batch) const { return preprocess(batch); }
  /// Transforms that do to an input what valid_preprocess() does, for the bundle: a program that
  /// predicts has no preprocess(). Unset, as by default: unknown, unless the methods give inputs
  /// back as they are.
  [[nodiscard]] virtual std::optional<Transforms> preprocess_transforms() const {
    return std::nullopt;
  }

 private:
  using Process = Batch (Fork::*)(Batch) const;

  int run_all(const std::filesystem::path& file);
  int run_one(const std::filesystem::path& file);
  sweep::RunRecord train();
  std::unique_ptr<Learner> compile();
  FitResult fit_and_evaluate(Learner& learner, sweep::RunRecord& record);
  void save(sweep::RunRecord& record);
  [[nodiscard]] DatasetPtr processed(const DatasetPtr& data, Process process) const;
  [[nodiscard]] int64_t loader_threads() const;
  [[nodiscard]] int64_t threads_of(const std::string& key) const;
  [[nodiscard]] const config::Node& value_of(const std::string& key) const;

  std::filesystem::path file_;
  config::Node config_;
  std::vector<CallbackPtr> callbacks_;
  std::string name_;
  int64_t id_ = -1;
  int signal_ = 0;                  // that has interrupted the fit
  std::filesystem::path saved_in_;  // the folder of the checkpoints of model_fit()
};

template <class T>
T Fork::get(const std::string& key) const {
  const config::Node& value = value_of(key);
  try {
    return config::read<T>(value);
  } catch (const ConfigError& error) {
    throw error.within(key, value.source);
  }
}

}  // namespace tare
