// A program of tare::Fork's for fork_test.cpp: says which of its methods is called, and trains on a
// few points. Its configuration is config.json of the working directory.
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "tare/base/io.h"
#include "tare/data/splits.h"
#include "tare/furcate/fork.h"
#include "tare/model/registry.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

/// Counts the samples that are read, and says in which order those of the training are.
class Watched final : public Dataset {
 public:
  Watched(DatasetPtr base, std::atomic<int64_t>& read) : base_(std::move(base)), read_(read) {}
  [[nodiscard]] int64_t size() const override { return base_->size(); }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return base_->sample_shape(); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    read_ += static_cast<int64_t>(request.indices.size());
    std::string line = "order";
    for (const int64_t index : request.indices) line += ' ' + std::to_string(index);
    if (request.training) std::cout << line + '\n';
    return base_->get(request);
  }

 private:
  DatasetPtr base_;
  std::atomic<int64_t>& read_;
};

/// Waits in the middle of the epoch behind so many, once, until it is interrupted or killed.
class Pause final : public Callback {
 public:
  Pause(int64_t after, std::filesystem::path file) : after_(after), file_(std::move(file)) {}
  [[nodiscard]] std::string name() const override { return "pause"; }
  Action after_batch(FitContext& context) override {
    if (context.epoch < after_ || std::filesystem::exists(file_)) return Action::proceed;
    io::write_atomically(file_, "");
    while (!interrupt_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Action::proceed;
  }

 private:
  int64_t after_;
  std::filesystem::path file_;
};

class Points : public Fork {
 public:
  using Fork::Fork;

 protected:
  std::vector<int64_t> get_available_gpu_indices() override {
    std::cout << "call get_available_gpu_indices\n";
    if (std::getenv("TARE_TEST_GPUS")) return {0, 5};
    return {};
  }
  void set_visible_gpus() override {
    std::cout << "call set_visible_gpus\n";
    Fork::set_visible_gpus();
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    std::cout << "visible " << (visible ? visible : "all") << '\n';
  }
  ForkFiles get_filepaths() override {
    std::cout << "call get_filepaths\n";
    return Fork::get_filepaths();
  }
  Splits get_datasets(const ForkFiles& files) override {
    std::cout << "call get_datasets\nfiles " << files.train.size() << ' ' << files.valid.size()
              << ' ' << files.test.size() << '\n';
    std::cout << std::flush;
    if (has("keep")) kept_ = at::ones({get<int64_t>("keep")}, at::kByte);
    if (has("wait_for"))  // a file that says that the run may go on
      while (!std::filesystem::exists(get<std::string>("wait_for")))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (has("records")) {
      const auto data =
          gen_tfrecord_dataset({get<std::string>("records")}, [&](const TfExample& example) {
            return Batch{example.tensor("image", {1, 2, 2}),
                         at::scalar_tensor(example.integer("label"), at::kLong)};
          });
      std::cout << "records " << data->size() << ' ' << data->targets().sum().item<int64_t>()
                << '\n';
    }
    if (has("ask")) std::cout << get<double>(get<std::string>("ask")) << '\n';
    const auto data = tensor_dataset(at::randn({64, 1, 4, 4}), at::randint(3, {64}, at::kLong));
    return split(std::make_shared<Watched>(data, read_),
                 {.train = 32, .valid = get<double>("valid", 16), .test = 16});
  }
  Model get_model() override {
    std::cout << "call get_model\n";
    return models::make("mlp", {.classes = 3, .sample_shape = {1, 4, 4}});
  }
  void model_summary(const Model& model) override {
    std::cout << "call model_summary\n";
    Fork::model_summary(model);
  }
  std::vector<Metric> get_metrics() override {
    std::cout << "call get_metrics\n";
    return {"accuracy"};
  }
  ForkOptimizer get_optimizer() override {
    std::cout << "call get_optimizer\n";
    return Fork::get_optimizer();
  }
  Loss get_loss() override {
    std::cout << "call get_loss\n";
    return Fork::get_loss();
  }
  std::unique_ptr<Learner> model_compile(Model model, const ForkOptimizer& optimizer,
                                         const Loss& loss, const std::vector<Metric>& metrics,
                                         Splits data) override {
    std::cout << "call model_compile\nshape " << data.train->sample_shape().size() << '\n';
    return Fork::model_compile(std::move(model), optimizer, loss, metrics, std::move(data));
  }
  std::vector<CallbackPtr> get_callbacks() override {
    std::cout << "call get_callbacks\n";
    if (has("pause_after"))
      return {std::make_shared<Pause>(get<int64_t>("pause_after"), log_dir / "paused")};
    return Fork::get_callbacks();
  }
  FitResult model_fit(Learner& learner, int64_t epoch_count,
                      const std::vector<CallbackPtr>& callbacks) override {
    std::cout << "call model_fit\n";
    return Fork::model_fit(learner, epoch_count, callbacks);
  }
  void model_save(Learner& learner) override {
    std::cout << "call model_save\n";
    Fork::model_save(learner);
  }
  Evaluation model_evaluate(Learner& learner) override {
    std::cout << "call model_evaluate\n";
    return Fork::model_evaluate(learner);
  }
  void save_metric(std::vector<MetricValue>& results, const ForkHistory& history,
                   const std::string& metric) override {
    std::cout << "call save_metric " << metric << '\n';
    Fork::save_metric(results, history, metric);
    results.push_back({"mine_" + metric, 7});
  }
  void plot_metric(const ForkHistory& history, const std::string& metric) override {
    std::cout << "call plot_metric " << metric << '\n';
    Fork::plot_metric(history, metric);
  }
  void save_history(const ForkHistory& history) override {
    std::cout << "call save_history\nread " << read_ << "\nprocessed " << processed_ << '\n';
    Fork::save_history(history);
  }
  [[nodiscard]] Batch preprocess(Batch batch) const override {
    processed_ += batch.size();
    batch.set_input(at::mul(batch.input(), get<double>("factor", 1)));
    return batch;
  }
  [[nodiscard]] std::optional<Transforms> preprocess_transforms() const override {
    if (has("unknown")) return std::nullopt;
    return Transforms{Normalise{.mean = {0}, .std = {1 / get<double>("factor", 1)}}};
  }

 private:
  std::atomic<int64_t> read_ = 0;
  mutable std::atomic<int64_t> processed_ = 0;
  at::Tensor kept_;
};

}  // namespace
}  // namespace tare::testing

int main() { return tare::testing::Points("config.json").run(); }
