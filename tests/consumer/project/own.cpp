// The program `tare` with an entry more in each registry, for recipes and sweeps that name it.
#include <tare/cli/program.h>
#include <tare/launch/executors.h>
#include <tare/launch/local_executor.h>
#include <tare/search/pruners.h>
#include <tare/search/random_sampler.h>
#include <tare/search/samplers.h>
#include <tare/tare.h>
#include <tare/transform/transform.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <iostream>

/// Pictures [1, 4, 4] that are dark, or have a bright row.
tare::datasets::Found rows(const tare::DataOptions& options, bool) {
  const int64_t count = options.count > 0 ? options.count : 64;
  const auto images = torch::zeros({count, 1, 4, 4}, torch::kByte);
  for (int64_t i = 1; i < count; i += 2) images[i][0][i / 2 % 4].fill_(255);
  return {.description = std::to_string(count) + " pictures",
          .data = tare::tensor_dataset(images, torch::arange(count) % 2, {"dark", "bright"})};
}

/// Makes dark pixels bright, and bright pixels dark.
class Negative final : public tare::ImageTransform {
 public:
  at::Tensor apply(at::Tensor images, std::span<const uint64_t>) const override {
    return images.neg_().add_(1);
  }
};

/// The last byte of each text.
tare::Batch last_bytes(const std::vector<tare::Batch>& samples) {
  std::vector<at::Tensor> bytes, labels;
  for (const auto& sample : samples) {
    bytes.push_back(sample.input().slice(0, -1));
    if (sample.target().defined()) labels.push_back(sample.target());
  }
  return tare::Batch(at::stack(bytes), labels.empty() ? at::Tensor() : at::stack(labels));
}

struct LineImpl : torch::nn::Module {
  LineImpl(int64_t features, int64_t classes)
      : line(register_module("line", torch::nn::Linear(features, classes))) {}
  torch::Tensor forward(const torch::Tensor& x) { return line(x.flatten(1).to(torch::kFloat)); }
  torch::nn::Linear line;
};
TORCH_MODULE(Line);

at::Tensor halved(const at::Tensor& output, const at::Tensor& target) {
  return torch::nn::functional::cross_entropy(output, target).div(2);
}

at::Tensor share_of_bright(const at::Tensor& output, const at::Tensor&) {
  return output.argmax(1).to(torch::kFloat).mean();
}

/// Stops a fit after so many epochs.
struct StopAfterOptions {
  int64_t epochs = 1;
};
void visit_fields(auto& visit, StopAfterOptions& o) { visit("epochs", o.epochs); }
class StopAfter final : public tare::Callback {
 public:
  explicit StopAfter(const StopAfterOptions& options) : epochs_(options.epochs) {}
  std::string name() const override { return "stop_after"; }
  tare::Action after_epoch(tare::FitContext& context) override {
    return context.epoch + 1 >= epochs_ ? tare::Action::stop_fit : tare::Action::proceed;
  }

 private:
  int64_t epochs_;
};

/// Ends each run at its first report.
class EndAtOnce final : public tare::search::Pruner {
 public:
  tare::search::PruneResult decide(const tare::search::Study& study,
                                   const std::vector<tare::search::SeenTrial>&,
                                   const tare::search::SeenTrial& trial) const override {
    return {.decision = tare::search::PruneDecision::prune,
            .rungs = trial.rungs,
            .resolved = study.resolved};
  }
};

/// Starts processes of this machine, and prints their names.
class Announcing final : public tare::launch::LocalExecutor {
 public:
  std::unique_ptr<tare::launch::Process> start(const tare::launch::ChildStart& how) override {
    std::cout << "starts " << how.name << std::endl;
    return LocalExecutor::start(how);
  }
};

void add_to_recipes() {
  tare::datasets::registry().add("rows", "pictures of rows", [] {
    return tare::datasets::Kind{{}, rows};
  });
  tare::transforms::registry().add("negative", "dark is bright",
                                   [] { return tare::Added{std::make_shared<Negative>()}; });
  tare::collates::registry().add("last_bytes", "the last byte of each text",
                                 [] { return tare::Collate(last_bytes); });
  tare::models::add("row_line", "classifies pictures of rows by one linear layer",
                    [](int64_t classes) { return Line(16, classes); });
  tare::models::add("byte_line", [](int64_t classes) { return Line(1, classes); });
  tare::losses::registry().add("halved", "half of the cross-entropy",
                               [] { return tare::Loss(halved, "softmax"); });
  tare::metrics::registry().add("bright", "share that is predicted as bright",
                                [] { return tare::Metric("bright", share_of_bright); });
  tare::optimizers::registry().add("plain", "gradient descent of LibTorch", [] {
    return tare::OptimizerKind{.make = [](const tare::OptimizerOptions& o,
                                          std::vector<tare::ParameterGroup> groups, bool) {
      return tare::torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(o.lr))(
          std::move(groups));
    }};
  });
  tare::schedules::registry().add("square", "falls with the square of the progress", [] {
    return tare::ScheduleCurve([](double p, double end) { return 1 + (end - 1) * p * p; });
  });
  tare::callbacks::registry().add<StopAfterOptions>(
      "stop_after", "stop a fit after some epochs",
      [](const StopAfterOptions& o) { return std::make_shared<StopAfter>(o); });
}

void add_to_sweeps() {
  using namespace tare::search;
  samplers::registry().add("evenly", "draw each value on its own", [] {
    return Sampler{[](const Seen& seen) -> Draw {
      return [&space = seen.space](CounterRng& rng) { return draw_at_random(space, rng); };
    }};
  });
  pruners::registry().add("at_once", "end each run at its first report",
                          [] { return std::make_shared<EndAtOnce>(); });
  tare::launch::executors::registry().add("announcing", "processes of this machine", [] {
    return tare::launch::ExecutorType{.make = [](const tare::launch::ExecutorContext&) {
      return std::make_unique<Announcing>();
    }};
  });
}

int main(int argc, char** argv) {
  add_to_recipes();
  add_to_sweeps();
  return tare::run_program(argc, argv);
}
