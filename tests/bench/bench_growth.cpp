// How times grow with what is trained: parameter tensors, layers, samples, epochs, trials. Prints,
// as Markdown, a plot of each operation over the size and the exponent between the two largest
// sizes: 1 is linear, below 1 there is a constant part.
//
//   bench_growth [SUBJECT [LARGEST]]     tensors, layers, samples, epochs or trials; default: all
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/paired.h"
#include "support/temp_dir.h"
#include "sweep/support.h"
#include "tare/base/text_plot.h"
#include "tare/callback/csv_log.h"
#include "tare/data/dataset.h"
#include "tare/data/loader.h"
#include "tare/learner/learner.h"
#include "tare/model/registry.h"
#include "tare/optim/optimizer.h"
#include "tare/report/run_report.h"
#include "tare/report/sweep_report.h"
#include "tare/runtime/init.h"
#include "tare/search/grid.h"
#include "tare/sweep/store.h"
#include "tare/sweep/sweep_page.h"

namespace {

using namespace tare;
using bench::seconds;

/// Maps an operation to its seconds at one size.
using Times = std::map<std::string, double>;

struct Subject {
  std::string name, unit;  ///< "tensors", "parameter tensors"
  int64_t largest = 0;
  std::function<Times(int64_t)> measure;
};

/// Adds as many small parameters to its input.
struct ManyTensorsImpl : torch::nn::Module {
  explicit ManyTensorsImpl(int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      register_parameter("p" + std::to_string(i), torch::zeros({16}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor sum = x;
    for (const torch::Tensor& one : parameters()) sum = sum + one;
    return sum;
  }
};
TORCH_MODULE(ManyTensors);

LearnerOptions quiet(const std::filesystem::path& folder) {
  LearnerOptions o;
  o.device = "cpu";
  o.batch = 8;
  o.workers = 0;
  o.progress = false;
  o.folder = folder;
  return o;
}

Times tensors(int64_t count) {
  const testing::TempDir folder;
  const auto data = tensor_dataset(torch::rand({16, 16}), torch::randint(16, {16}));
  Learner learner(Model(ManyTensors(count)), {.train = data, .valid = {}, .test = {}},
                  quiet(folder.path()));
  learner.fit(1);  // which makes the optimizer's state
  Times times;
  times["two steps of a fit"] = seconds([&] { learner.fit(1); });
  for (const NamedTensor& one : learner.model().state())
    one.tensor.mutable_grad() = torch::ones_like(one.tensor);
  times["step of the optimizer"] = seconds([&] { learner.optimizer().step(); });
  times["ledger"] = seconds([&] { (void)learner.ledger(); });
  times["save"] = seconds([&] { learner.save("one"); });
  times["load"] = seconds([&] { (void)learner.load("one"); });
  times["purge"] = seconds([&] { (void)learner.purge(); });
  return times;
}

Times layers(int64_t count) {
  const auto data = tensor_dataset(torch::rand({16, 16}), torch::randint(4, {16}));
  ModelOptions model{.classes = 4, .sample_shape = {16}};
  model.hidden.assign(static_cast<size_t>(count), 16);
  Learner learner(models::make("mlp", model), {.train = data, .valid = {}, .test = {}}, quiet("."));
  return {{"plan", seconds([&] { (void)learner.plan(); })}};
}

Times samples(int64_t count) {
  const auto data = tensor_dataset(torch::rand({count, 16}), torch::randint(4, {count}));
  Times times;
  Loader loader(data, {.batch = 64, .shuffle = true});
  times["epoch of the loader"] = seconds([&] {
    loader.start(0);
    for (Batch batch; loader.next(batch);) {
    }
  });
  for (const char* metric : {"accuracy", "f1", "auroc"}) {
    LearnerOptions o = quiet(".");
    o.batch = 64;
    o.metrics = {metric};
    Learner learner(models::make("mlp", {.classes = 4, .sample_shape = {16}, .hidden = {8}}),
                    {.train = data, .valid = data, .test = {}}, std::move(o));
    times[std::string("validation with ") + metric] = seconds([&] { (void)learner.validate(); });
  }
  return times;
}

Times epochs(int64_t count) {
  const testing::TempDir folder;
  const auto data = tensor_dataset(torch::rand({8, 4}), torch::randint(2, {8}));
  LearnerOptions o = quiet(folder.path());
  o.metrics = {"accuracy"};
  o.callbacks = {std::make_shared<CsvLog>()};
  Learner learner(models::make("mlp", {.classes = 2, .sample_shape = {4}, .hidden = {4}}),
                  {.train = data, .valid = data, .test = {}}, std::move(o));
  Times times;
  times["fit with its table of epochs"] = seconds([&] { learner.fit(count); });
  times["save"] = seconds([&] { learner.save("one"); });
  times["load"] = seconds([&] { (void)learner.load("one"); });
  times["page of the run"] = seconds([&] { (void)report::html_report(folder.path()); });
  return times;
}

Times trials(int64_t count) {
  const testing::SweepFiles files;
  io::make_directories(files.log_dir());
  const auto options =
      files.read("metric: {name: acc, goal: maximize}\nparameters: {a: {min: 1, max: " +
                 std::to_string(count) + "}}\n");
  const std::filesystem::path path = files.log_dir() / "s.sqlite";
  Times times;
  sweep::Store store(path, options);
  times["adding"] = seconds([&] {
    const auto cells = search::grid(options);
    std::vector<std::string> identities;
    for (size_t i = 0; i < cells.size(); ++i) identities.push_back(std::to_string(i));
    store.wait_for(cells, identities);
  });
  const std::vector<sweep::Trial> all = store.trials();
  times["starts and ends"] = seconds([&] {
    for (const sweep::Trial& trial : all) {
      store.start(trial, {}, 0);
      store.finish(trial, {.state = search::TrialState::complete,
                           .values = {static_cast<double>(trial.number)}});
    }
  });
  times["reading"] = seconds([&] { (void)store.history(); });
  times["page of the sweep"] = seconds([&] {
    (void)report::sweep_page(sweep::summary_of(options, sweep::read_store(path, options.name)));
  });
  return times;
}

void print(const Subject& subject, int64_t largest) {
  std::vector<double> sizes;
  std::map<std::string, std::vector<double>> lines;
  for (int64_t size = std::min<int64_t>(10, largest); size <= largest; size *= 10) {
    Times best = subject.measure(size);
    for (int again = 0; again < (size < 10'000 ? 2 : 0); ++again)
      for (const auto& [name, time] : subject.measure(size))
        best[name] = std::min(best[name], time);
    sizes.push_back(static_cast<double>(size));
    for (const auto& [name, time] : best) lines[name].push_back(time);
  }
  std::printf("### %s\n\n```text\n", subject.unit.c_str());
  TextPlot plot{.title = "seconds by " + subject.unit, .log_x = true, .log_y = true, .rows = 14};
  char mark = 'a';
  for (const auto& [name, times] : lines) plot.curves.push_back({sizes, times, mark++});
  std::printf("%s```\n\n|  | operation | at %.0f | exponent |\n|---|---|---|---|\n",
              text_plot(plot).c_str(), sizes.back());
  mark = 'a';
  for (const auto& [name, times] : lines) {
    const size_t last = times.size() - 1;
    const double exponent = last == 0 ? std::nan("") : std::log10(times[last] / times[last - 1]);
    std::printf("| %c | %s | %s s | %.2f |\n", mark++, name.c_str(),
                short_number(times[last]).c_str(), exponent);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  init({.threads = 1, .cuda = CudaMode::off});
  const std::vector<Subject> subjects{{"tensors", "parameter tensors", 10'000, tensors},
                                      {"layers", "layers", 1'000, layers},
                                      {"samples", "samples", 1'000'000, samples},
                                      {"epochs", "epochs", 100'000, epochs},
                                      {"trials", "trials", 100'000, trials}};
  for (const Subject& subject : subjects)
    if (argc < 2 || subject.name == argv[1])
      print(subject, argc > 2 ? std::atoll(argv[2]) : subject.largest);
}
