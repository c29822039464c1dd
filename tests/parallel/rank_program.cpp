// One rank of a job, for the tests: does what its argument names and prints the result as JSON.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "tare/base/content_hash.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/data/dataset.h"
#include "tare/learner/learner.h"
#include "tare/memory/backend.h"
#include "tare/model/registry.h"
#include "tare/parallel/data_parallel.h"
#include "tare/parallel/group.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/init.h"

namespace tare {
namespace {

using nlohmann::json;
using parallel::Group;

std::shared_ptr<Group> join(const json& options) {
  const char* answer = std::getenv("TEST_ANSWER_SECONDS");
  const char* meeting = std::getenv("TEST_MEETING_SECONDS");
  return std::make_shared<Group>(
      parallel::this_world(),
      parallel::GroupOptions{.meeting_seconds = meeting ? std::atof(meeting) : 30,
                             .answer_seconds = answer ? std::atof(answer) : 30,
                             .backend = options.value("backend", "auto")});
}

/// Returns the device of this rank; "own card": that of its number.
std::string device_of(const json& options) {
  const std::string device = options.value("device", "cpu");
  return device == "own card" ? "cuda:" + std::to_string(parallel::this_world().rank) : device;
}

json exchange(Group& group) {
  const auto rank = static_cast<double>(group.rank());
  at::Tensor value = at::full({3}, rank + 1, at::kFloat);
  group.sum({value});
  at::Tensor given = at::full({2, 2}, rank, at::kLong);
  group.broadcast({given}, group.size() - 1);
  json all{{"sum", value[0].item<float>()}, {"given", given[1][1].item<int64_t>()}};
  for (const std::string& text : group.texts(std::string(static_cast<size_t>(rank) * 3, 'x')))
    all["texts"].push_back(text.size());
  auto pending = group.start({rank, -rank});
  for (const auto& numbers : pending.wait()) all["numbers"].push_back(numbers);
  std::vector<at::Tensor> own{at::Tensor()};
  if (group.rank() > 0) own.push_back(at::full({group.rank(), 2}, rank, at::kDouble));
  for (const auto& tensors : group.tensors(own)) {
    double sum = 0;
    for (const at::Tensor& one : tensors)
      if (one.defined()) sum += one.sum().item<double>();
    all["tensors"].push_back({tensors.size(), sum});
  }
  group.meet();
  return all;
}

int64_t setting(const json& options, const char* name, int64_t otherwise) {
  return options.value(name, otherwise);
}

/// Counts the changes of the size of micro-batches.
class ChangeCount final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "change_count"; }
  Action on_micro_batch(FitContext&) override {
    ++count;
    return Action::proceed;
  }
  int64_t count = 0;
};

/// Returns a hash of each tensor of a checkpoint, by name.
json hashes_of(const std::filesystem::path& path) {
  const checkpoint::Loaded loaded = checkpoint::load(path);
  json all;
  const auto add = [&](const char* part, const std::vector<NamedTensor>& tensors) {
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor whole = tensor.contiguous();
      const auto* bytes = static_cast<const std::byte*>(whole.const_data_ptr());
      all[part][name] = content_hash(std::span(bytes, whole.nbytes()));
    }
  };
  add("model", loaded.model);
  add("optimizer", loaded.optimizer);
  return all;
}

/// Trains on numbers, alike on one rank and on several, and returns figures of it.
json fit(std::shared_ptr<Group> group, const json& options) {
  const int64_t samples = setting(options, "samples", 100), batch = setting(options, "batch", 24);
  at::manual_seed(5);
  const bool pictures = options.value("pictures", false);
  const at::Tensor inputs = pictures ? at::randn({samples, 1, 8, 8}) : at::randn({samples, 6}),
                   targets = at::randint(3, {samples});
  at::Tensor labels = targets;
  if (options.value("ignored", false))
    labels = targets.masked_fill(inputs.select(1, 0) > 0.3, -100);
  const auto data = tensor_dataset(inputs, labels);
  const auto valid = tensor_dataset(inputs.slice(0, 0, 37), targets.slice(0, 0, 37));
  at::manual_seed(
      static_cast<uint64_t>(7 + (group ? group->rank() : 0)));  // rank 0 gives the weights
  const std::string name = pictures ? "convnet" : "mlp";
  ModelOptions model{
      .classes = 3, .sample_shape = {6}, .hidden = {8, setting(options, "hidden", 5)}};
  if (pictures) model = {.classes = 3, .sample_shape = {1, 8, 8}, .width = 4};
  const auto make_model = [&] {
    if (!options.value("blocks", false)) return models::make(name, model);
    return models::make(ModelSpec{.name = "vit",
                                  .options = "{classes: 3, sample_shape: [1, 8, 8], width: 12, "
                                             "layers: 3, heads: 2, options: {patch: 4}}"});
  };
  const auto changes = std::make_shared<ChangeCount>();
  LearnerOptions o{.metrics = {"accuracy", "auroc", "f1"},
                   .device = device_of(options),
                   .batch = batch,
                   .optimizer = {.kind = options.value("optimizer", "sgd"),
                                 .lr = options.value("lr", 0.05),
                                 .momentum = 0.9},
                   .workers = setting(options, "workers", 0),
                   .callbacks = {changes},
                   .progress = false,
                   .group = group};
  o.data_parallel = {.bucket_mib = options.value("bucket_mib", 25.0),
                     .find_unused = options.value("find_unused", false),
                     .static_graph = options.value("static_graph", false),
                     .sync_batch_norm = options.value("sync_batch_norm", false),
                     .shard = options.value("shard", "none"),
                     .compression = options.value("compression", "none")};
  if (options.contains("micro_batch")) o.micro_batch = options["micro_batch"].get<int64_t>();
  if (options.contains("clip")) o.clip.norm = options["clip"].get<double>();
  if (options.value("recompute", false)) o.recompute = {"all"};
  o.folder = options.value("folder", "runs");
  auto& host = memory::backend(c10::Device(c10::kCPU));
  const int64_t at_start = host.usage().allocated_bytes;
  Learner learner(make_model(), {.train = data, .valid = valid, .test = {}}, std::move(o));
  const int64_t epochs = setting(options, "epochs", 3);
  if (options.contains("load")) (void)learner.load(options["load"].get<std::string>());
  if (epochs == 0) {
    learner.save(options["save"].get<std::string>());
    if (group) group->meet();
    return hashes_of(std::filesystem::path(options.value("folder", "runs")) /
                     options["save"].get<std::string>());
  }
  if (options.value("freeze", false)) learner.freeze();
  auto& backend = memory::backend(learner.device());
  const int64_t now = backend.usage().allocated_bytes;
  if (group && options.contains("budget") && group->rank() == 1)
    backend.set_budget(now + options["budget"].get<int64_t>());
  std::optional<memory::PeakScope> peak(learner.device());
  FitResult result = learner.fit(epochs);
  const int64_t peak_bytes = peak->peak_above_start_bytes();
  peak.reset();
  backend.set_budget({});
  if (options.value("freeze", false)) {
    (void)learner.purge();
    learner.unfreeze();
    result = learner.fit(epochs);
  }
  json all{{"changes", changes->count}, {"peak", peak_bytes}};
  for (const EpochRow& row : result.epochs) {
    json one{row.train_loss, row.valid_loss, row.samples};
    for (const MetricValue& metric : row.metrics) one.push_back(metric.value);
    all["rows"].push_back(one);
  }
  double norm = 0;
  for (const NamedTensor& one : learner.model().state())
    norm += one.tensor.detach().to(at::kDouble).square().sum().item<double>();
  all["norm"] = norm;
  all["validated"] = learner.validate().loss;
  if (options.contains("save")) learner.save(options["save"].get<std::string>());
  all["state_bytes"] = learner.ledger().bytes(learner.device())[Category::optimizer];
  all["held"] = learner.purge().tracked_after;
  (void)learner.destroy();
  all["left"] = host.usage().allocated_bytes - at_start;
  return all;
}

/// Returns the bytes of tensors and those of the process on each card.
json bytes_of_cards() {
  json all = json::array();
  for (const c10::Device device : memory::devices()) {
    if (device.is_cpu()) continue;
    const memory::Usage usage = memory::backend(device).usage();
    all.push_back({usage.allocated_bytes, usage.reserved_bytes, usage.process_bytes});
  }
  return all;
}

/// Trains on a card, and returns what was on the cards before, during and after it.
json on_card(const json& options) {
  auto& card = memory::backend(runtime::open_device(device_of(options)));
  card.warm();
  (void)card.reclaim();
  json all{{"before", bytes_of_cards()}};
  {
    const std::shared_ptr<Group> group = options.value("alone", false) ? nullptr : join(options);
    all["fit"] = fit(group, options);
    (void)card.reclaim();
    all["during"] = bytes_of_cards();
    if (group) all["backend"] = group->backend();
  }
  (void)card.reclaim();
  all["after"] = bytes_of_cards();
  return all;
}

/// Ends a rank in some way in the middle of a fit.
class EndAtStep final : public Callback {
 public:
  EndAtStep(std::string how, int64_t step) : how_(std::move(how)), step_(step) {}
  [[nodiscard]] std::string name() const override { return "end_at_step"; }
  Action after_batch(FitContext& context) override {
    if (context.step != step_) return Action::proceed;
    if (how_ == "kill") (void)std::raise(SIGKILL);
    if (how_ == "hang") std::this_thread::sleep_for(std::chrono::seconds(8));
    if (how_ == "compute") std::this_thread::sleep_for(std::chrono::seconds(2));
    if (how_ == "throw") throw StateError("test", "out of order", "mend it");
    return how_ == "stop" ? Action::stop_fit : Action::proceed;
  }

 private:
  std::string how_;
  int64_t step_;
};

json end(const std::shared_ptr<Group>& group, const json& options) {
  at::manual_seed(5);
  const auto data = tensor_dataset(at::randn({96, 6}), at::randint(3, {96}));
  std::vector<CallbackPtr> callbacks;
  if (group->rank() == options.value("rank", 1))
    callbacks.push_back(std::make_shared<EndAtStep>(options.at("how").get<std::string>(), 5));
  if (group->rank() == options.value("computing_rank", -1))
    callbacks.push_back(std::make_shared<EndAtStep>("compute", 5));
  Learner learner(models::make("mlp", {.classes = 3, .sample_shape = {6}, .hidden = {8}}),
                  {.train = data, .valid = {}, .test = {}},
                  {.device = device_of(options),
                   .batch = 24,
                   .callbacks = callbacks,
                   .progress = false,
                   .group = group,
                   .data_parallel = {.shard = options.value("shard", "none")}});
  const FitResult result = learner.fit(4);
  return {{"steps", result.steps}};
}

/// Returns [count] numbers that follow from integers, as tests/golden/ddp.py makes them.
at::Tensor numbers(int64_t count, int64_t step, int64_t modulus, double divisor) {
  const at::Tensor index = at::arange(count, at::kLong);
  return (index.mul(step).remainder(modulus) - modulus / 2)
      .to(at::kDouble)
      .div(divisor)
      .to(at::kFloat);
}

/// Is the network of tests/golden/ddp.py.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv1 =
        register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)));
    bn = register_module("bn", torch::nn::BatchNorm2d(4));
    conv2 =
        register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 6, 3).stride(2)));
    fc = register_module("fc", torch::nn::Linear(6 * 3 * 3, 5));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return fc(torch::relu(conv2(torch::relu(bn(conv1(x))))).flatten(1));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Net);

class LossNote final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "loss_note"; }
  Action after_batch(FitContext& context) override {
    losses.push_back(context.loss_value());
    return Action::proceed;
  }
  std::vector<double> losses;
};

/// Trains as tests/golden/ddp.py does.
json ddp(const std::shared_ptr<Group>& group, const json& options) {
  constexpr int64_t kEpoch = 10, kBatch = 24;
  Net net;
  int64_t place = 0;
  for (at::Tensor& one : net->parameters()) {
    const c10::AutoGradMode no_grad(false);
    if (one.dim() > 1)
      one.copy_(numbers(one.numel(), 37 + place, 199, 600).view_as(one));
    else if (!one.is_same(net->bn->weight))
      one.copy_(numbers(one.numel(), 11 + place, 23, 100).view_as(one));
    ++place;
  }
  if (options["frozen"].get<bool>())
    for (at::Tensor& one : net->conv1->parameters()) one.requires_grad_(false);
  const auto data =
      tensor_dataset(numbers(kEpoch * kBatch * 64, 7919, 1009, 300).view({-1, 1, 8, 8}),
                     at::arange(kEpoch * kBatch, at::kLong).mul(13).remainder(29).remainder(5));
  const auto note = std::make_shared<LossNote>();
  const int64_t own = kBatch / group->size();
  Learner learner(Model(net), {.train = data, .valid = {}, .test = {}},
                  {.device = "cpu",
                   .batch = kBatch,
                   .micro_batch = own / options["parts"].get<int64_t>(),
                   .optimizer = {.kind = "sgd", .lr = 0.05, .weight_decay = 0, .momentum = 0.9},
                   .workers = 0,
                   .shuffle = false,
                   .callbacks = {note},
                   .progress = false,
                   .group = group});
  (void)learner.fit(10);
  json all{{"losses", note->losses}};
  for (const NamedTensor& one : learner.model().state())
    if (one.tensor.is_floating_point())
      all["norms"].push_back(one.tensor.detach().to(at::kDouble).square().sum().item<double>());
  return all;
}

/// Returns the times of steps whose gradients are averaged in several buckets.
json times(Group& group) {
  torch::nn::Sequential net;
  for (int i = 0; i < 8; ++i) net->push_back(torch::nn::Linear(384, 384));
  std::vector<NamedTensor> parameters;
  for (const auto& one : net->named_parameters()) parameters.push_back({one.key(), one.value()});
  parallel::DataParallel averaging(group, parameters, {.bucket_mib = 1});
  for (int step = 0; step < 12; ++step) {
    averaging.begin_step();
    const at::Tensor loss = net->forward(at::ones({256, 384})).square().mean();
    averaging.average_next(loss);
    loss.backward();
    for (at::Tensor& one : net->parameters()) one.mutable_grad().reset();
  }
  const auto found = averaging.times();
  return {{"steps", found.steps},          {"forward", found.forward_ns},
          {"backward", found.backward_ns}, {"communication", found.communication_ns},
          {"overlap", found.overlap_ns},   {"text", found.str()}};
}

int run(const std::string& what, const json& options) {
  try {
    const bool has_card = options.contains("device") || what == "cards";
    init({.threads = 1, .cuda = has_card ? CudaMode::on : CudaMode::off});
    json result;
    if (what == "cards") result = memory::devices().size() - 1;
    if (what == "card") result = on_card(options);
    const std::shared_ptr<Group> group =
        !result.is_null() || options.value("alone", false) ? nullptr : join(options);
    if (what == "exchange") result = exchange(*group);
    if (what == "fit") result = fit(group, options);
    if (what == "ddp") result = ddp(group, options);
    if (what == "times") result = times(*group);
    if (what == "end") result = end(group, options);
    std::puts(result.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tare

int main(int argc, char** argv) {
  return tare::run(argc > 1 ? argv[1] : "", nlohmann::json::parse(argc > 2 ? argv[2] : "{}"));
}
