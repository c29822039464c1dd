// Measures what ranks exchange: the time of a sum over bytes and ranks, on the loopback of this
// machine and between network namespaces with 100 Mbit/s and 20 ms there and back. Fits latency and
// bandwidth of plan::Link to it, and compares the time of a training step with the model of
// plan::scale(). Each time is measured twice in turn: their ratio is the band in which nothing can
// be concluded.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_ranks [most ranks, by default 4]; as root for namespaces
#include <tare/tare.h>
#include <torch/torch.h>

#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/paired.h"
#include "support/program.h"
#include "support/slow_network.h"
#include "tare/parallel/group.h"
#include "tare/recipe/plan.h"

namespace {

using namespace tare;
using nlohmann::json;

constexpr int64_t kBatch = 256, kSteps = 33, kWarmUp = 9;

/// Holds a time that was measured twice, in turn.
struct Twice {
  double first_s = 0, second_s = 0;  // medians
  [[nodiscard]] double seconds() const { return (first_s + second_s) / 2; }
  [[nodiscard]] double control() const { return second_s / first_s; }
};

Twice medians(const std::vector<double>& times) {
  std::vector<double> sides[2];
  for (size_t i = 0; i < times.size(); ++i) sides[i % 2].push_back(times[i]);
  return {bench::quantile(sides[0], 0.5), bench::quantile(sides[1], 0.5)};
}

// The functions below are the work of a rank.

json reduce(parallel::Group& group, const json& sizes) {
  json all = json::array();
  for (const json& size : sizes) {
    const at::Tensor values = at::zeros({size.get<int64_t>() / 4}, at::kFloat);
    const auto once = [&] { return bench::seconds([&] { group.sum({values}); }); };
    (void)once();
    constexpr double kSecondsOfASize = 1, kLeast = 8, kMost = 400;
    const double rounds = std::clamp(kSecondsOfASize / once(), kLeast, kMost);
    std::vector<double> times;
    for (auto left = static_cast<int64_t>(group.exchange({rounds}).front().front()); left > 0;
         --left)
      times.push_back(once());
    const Twice twice = medians(times);
    all.push_back({twice.first_s, twice.second_s});
  }
  return all;
}

class StepTimes final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "step_times"; }
  Action after_batch(FitContext&) override {
    const auto now = std::chrono::steady_clock::now();
    if (++steps_ > kWarmUp) times.push_back(std::chrono::duration<double>(now - last_).count());
    last_ = now;
    return Action::proceed;
  }
  std::vector<double> times;

 private:
  std::chrono::steady_clock::time_point last_{};
  int64_t steps_ = 0;
};

RecipeOptions recipe_of(int64_t batch, const std::string& shard) {
  RecipeOptions recipe;
  recipe.name = "ranks";
  recipe.batch = batch;
  recipe.data.name = "generated_digits";
  recipe.data.count = batch * kSteps * 5 / 4;  // of which 0.8 train
  recipe.model.name = "mlp";
  recipe.model.options.hidden = {512, 512};
  recipe.learner.device = "cpu";
  recipe.learner.workers = 0;
  recipe.learner.optimizer = {.kind = "sgd", .momentum = 0.9};
  recipe.learner.data_parallel.shard = shard;
  recipe.phases = {{.name = "fit", .epochs = 1, .lr = 0.01, .schedule = {.kind = "constant"}}};
  return recipe;
}

json step(const std::shared_ptr<parallel::Group>& group, const json& options) {
  const RecipeOptions recipe = recipe_of(options["batch"], options["shard"]);
  const auto data = datasets::make(recipe.data);
  const auto times = std::make_shared<StepTimes>();
  LearnerOptions o = recipe.learner;
  o.batch = options["batch"].get<int64_t>();
  o.callbacks = {times};
  o.progress = false;
  o.group = group;
  ModelOptions model = recipe.model.options;
  model.classes = 10;
  model.sample_shape = data.splits.train->sample_shape();
  Learner learner(models::make("mlp", model), {.train = data.splits.train}, std::move(o));
  (void)learner.fit(1, {.lr = 0.01, .schedule = {.kind = "constant"}});
  const Twice twice = medians(times->times);
  return json::array({twice.first_s, twice.second_s});
}

int run_rank(const std::string& what, const json& options) {
  init({.threads = 1, .cuda = CudaMode::off});
  const parallel::World world = parallel::this_world();
  std::shared_ptr<parallel::Group> group;
  if (!world.is_alone()) group = std::make_shared<parallel::Group>(world);
  const json result = what == "reduce" ? reduce(*group, options) : step(group, options);
  if (world.rank == 0) std::puts(result.dump().c_str());
  return 0;
}

// The functions below start ranks and read what they have measured.

struct Way {
  std::string name{};
  bool over_network = false;
};

json result_of(const Way& way, int64_t size, const std::string& what, const json& options) {
  std::optional<parallel::StoreServer> store;
  std::optional<testing::SlowNetwork> network;
  if (way.over_network)
    network.emplace(size);
  else
    store.emplace();
  std::deque<testing::Program> ranks;
  for (int64_t rank = 0; rank < size; ++rank) {
    std::vector<std::string> words;
    if (network) words = network->command_in(rank);
    words.emplace_back("/usr/bin/env");
    if (network)
      for (const std::string& one : network->variables(rank)) words.push_back(one);
    else if (size > 1)
      for (const std::string& one :
           {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
            std::string("MASTER_ADDR=127.0.0.1"), "MASTER_PORT=" + std::to_string(store->port()),
            std::string("TORCHELASTIC_USE_AGENT_STORE=True")})
        words.push_back(one);
    words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    words.insert(words.end(), {"rank", what, options.dump()});
    const std::string program = words.front();
    words.erase(words.begin());
    ranks.emplace_back(program, words);
  }
  json result;
  for (testing::Program& one : ranks) {
    const testing::ProgramResult end = one.wait();
    if (end.status != 0) throw std::runtime_error("a rank has failed: " + end.err);
    if (result.is_null()) result = json::parse(end.out);
  }
  return result;
}

struct Measured {
  int64_t ranks = 0;
  double bytes = 0;
  Twice time{};
};

/// Fits t = 2 (N - 1) latency + 2 (N - 1) / N bytes / bandwidth with the least squares of relative
/// errors.
plan::Link fit(const std::vector<Measured>& all) {
  double xx = 0, xy = 0, yy = 0, x = 0, y = 0;
  for (const Measured& one : all) {
    const auto n = static_cast<double>(one.ranks);
    const double t = one.time.seconds();
    const double a = 2 * (n - 1) / t, b = 2 * (n - 1) / n * one.bytes / t;
    xx += a * a;
    xy += a * b;
    yy += b * b;
    x += a;
    y += b;
  }
  const double determinant = xx * yy - xy * xy;
  const double latency = (x * yy - y * xy) / determinant, inverse = (y * xx - x * xy) / determinant;
  return {.bytes_per_s = 1 / inverse, .latency_s = std::max(0.0, latency)};
}

/// Measures sums on up to `most` ranks, and returns the link that fits those of up to `fitted`.
plan::Link measure_sums(const Way& way, const std::vector<int64_t>& sizes, int64_t most,
                        int64_t fitted) {
  std::vector<Measured> all;
  for (int64_t ranks = 2; ranks <= most; ++ranks) {
    const json times = result_of(way, ranks, "reduce", sizes);
    for (size_t i = 0; i < sizes.size(); ++i)
      all.push_back({ranks, static_cast<double>(sizes[i]), {times[i][0], times[i][1]}});
  }
  std::vector<Measured> some = all;
  std::erase_if(some, [&](const Measured& one) { return one.ranks > fitted; });
  const plan::Link link = fit(some);
  std::printf("\n%s: fitted to up to %lld ranks: %.3g MB/s, %.3g ms\n", way.name.c_str(),
              static_cast<long long>(std::min(most, fitted)), link.bytes_per_s / 1e6,
              1e3 * link.latency_s);
  std::printf("ranks      bytes  measured, ms  model, ms  measured / model  control\n");
  for (const Measured& one : all) {
    const double model = plan::all_reduce_s(one.ranks, one.bytes, link);
    std::printf("%5lld %10.0f %13.4g %10.4g %17.2f %8.2f\n", static_cast<long long>(one.ranks),
                one.bytes, 1e3 * one.time.seconds(), 1e3 * model, one.time.seconds() / model,
                one.time.control());
  }
  return link;
}

Twice measured_step(const Way& way, int64_t ranks, int64_t batch, const std::string& shard) {
  const json times = result_of(way, ranks, "step", {{"batch", batch}, {"shard", shard}});
  return {times[0], times[1]};
}

/// Returns the step's time by the model, from the time of one device for a batch.
double predicted_step(const Way& way, const plan::Link& link, int64_t ranks, double batch_s,
                      plan::Strategy strategy) {
  plan::ScaleOptions scale{.batch_s = batch_s};
  scale.cluster = {.per_machine = way.over_network ? 1 : ranks, .inside = link, .between = link};
  const RecipePlan planned =
      plan_recipe(recipe_of(kBatch, "none"), {.advice = false, .ranks = ranks, .scale = scale});
  for (const plan::ScaleRow& row : planned.scales.at(0).rows)
    if (row.strategy == strategy) return row.step_s;
  throw std::runtime_error("the model has no such strategy");
}

void measure_steps(const Way& way, const plan::Link& link, int64_t most) {
  const Way here{.name = "alone"};
  const Twice alone = measured_step(here, 1, kBatch, "none");
  std::printf(
      "\nsteps over %s, mlp of 0.67 million parameters, batch %lld: alone %.3g ms, control %.2f\n",
      way.name.c_str(), static_cast<long long>(kBatch), 1e3 * alone.seconds(), alone.control());
  std::printf(
      "ranks  strategy       measured, ms  model, ms  measured / model  with own part  control\n");
  for (int64_t ranks = 2; ranks <= most; ++ranks) {
    const auto count = static_cast<double>(ranks);
    const Twice part = measured_step(here, 1, kBatch / ranks, "none");
    for (const auto& [shard, strategy] : {std::pair("none", plan::Strategy::data_parallel),
                                          std::pair("optimizer", plan::Strategy::zero1)}) {
      const Twice measured = measured_step(way, ranks, kBatch, shard);
      const double model = predicted_step(way, link, ranks, alone.seconds(), strategy);
      const double with_part = predicted_step(way, link, ranks, count * part.seconds(), strategy);
      std::printf("%5lld  %-13s %13.4g %10.4g %17.2f %14.2f %8.2f\n", static_cast<long long>(ranks),
                  plan::to_string(strategy), 1e3 * measured.seconds(), 1e3 * model,
                  measured.seconds() / model, measured.seconds() / with_part, measured.control());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == "rank") return run_rank(argv[2], json::parse(argv[3]));
  const int64_t most = argc > 1 ? std::atoll(argv[1]) : 4;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  init({.threads = 1, .cuda = CudaMode::off});
  const std::vector<int64_t> small{8, 4096, 65'536, 262'144, 1 << 20, 4 << 20};
  std::vector<int64_t> large = small;
  large.push_back(25 << 20);
  // More ranks than cores wait for each other's turn, which no link describes.
  const auto cores = std::max<int64_t>(2, std::thread::hardware_concurrency());
  const Way loopback{.name = "loopback"},
      network{.name = "100 Mbit/s and 20 ms", .over_network = true};
  const plan::Link inside = measure_sums(loopback, large, most, cores);
  measure_steps(loopback, inside, most);
  if (const std::string why = testing::SlowNetwork::unavailable(); !why.empty()) {
    std::printf("\nno network namespaces: %s\n", why.c_str());
    return 0;
  }
  const plan::Link between = measure_sums(network, small, most, most);
  measure_steps(network, between, most);
}
