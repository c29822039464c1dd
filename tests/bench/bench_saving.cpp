// Measures what each option that needs less memory saves and costs: peak bytes of three training
// steps, planned and measured, and time against the fit without it; for a card the plan.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_saving [rounds]
#include "bench/paired.h"
#include "bench/subjects.h"
#include "tare/base/bytes.h"
#include "tare/memory/backend.h"

namespace {

using namespace tare;

constexpr int64_t kSteps = 3;

struct Way {
  const char* name;
  std::function<void(LearnerOptions&)> set;
};

struct Measured {
  int64_t peak_bytes = 0;
  std::string planned{};
};

std::unique_ptr<Learner> learner(const bench::Subject& subject, const DatasetPtr& set,
                                 const Way& way) {
  torch::manual_seed(1);
  LearnerOptions options = bench::same_training();
  options.batch = subject.batch;
  options.workers = 0;
  way.set(options);
  return std::make_unique<Learner>(models::make(subject.model, subject.options),
                                   Splits{.train = set}, std::move(options));
}

double fit(Learner& learner) {
  return learner.fit(1, {.lr = 1e-3, .schedule = {.kind = "constant"}}).seconds;
}

Measured measure(const bench::Subject& subject, const DatasetPtr& set, const Way& way) {
  const auto l = learner(subject, set, way);
  const MemoryPlan plan = l->plan({.advice = false});
  Measured measured{.planned =
                        plan.known() ? format_bytes(plan.peak_bytes) : "cannot be predicted"};
  const memory::PeakScope peak(c10::kCPU);
  (void)fit(*l);
  measured.peak_bytes = peak.peak_above_start_bytes();
  return measured;
}

/// Plans for a card, which alone can move activations to the host; a card itself is not needed.
void plan_for_card(const bench::Subject& subject, const DatasetPtr& set) {
  constexpr const char* kCard = "cuda:24GiB";
  const auto peak = [&](const Way& way) {
    return learner(subject, set, way)->plan({.device = kCard, .advice = false}).peak_bytes;
  };
  const int64_t before = peak({"", [](LearnerOptions&) {}});
  std::printf("planned for %s: peak %s\n", kCard, format_bytes(before).c_str());
  const auto all = [](std::vector<std::string> LearnerOptions::*blocks) {
    return [=](LearnerOptions& o) { o.*blocks = {"all"}; };
  };
  for (const Way& way : std::vector<Way>{
           {"recompute: all", all(&LearnerOptions::recompute)},
           {"offload: all", all(&LearnerOptions::offload)},
           {"recompute: all, offload: all", [](auto& o) { o.recompute = o.offload = {"all"}; }}}) {
    const int64_t after = peak(way);
    std::printf("%-30s %10s  saves %3.0f %%\n", way.name, format_bytes(after).c_str(),
                100 - 100 * static_cast<double>(after) / static_cast<double>(before));
  }
}

void compare(const bench::Subject& subject, const std::vector<Way>& ways, int rounds) {
  const auto set = subject.data(kSteps);
  const Way plain{"", [](LearnerOptions&) {}};
  const Measured before = measure(subject, set, plain);
  std::printf("\n%s, batch %lld: peak %s, planned %s\n", subject.model.c_str(),
              static_cast<long long>(subject.batch), format_bytes(before.peak_bytes).c_str(),
              before.planned.c_str());
  for (const Way& way : ways) {
    const Measured after = measure(subject, set, way);
    const auto time = bench::paired(
        rounds, [&] { return fit(*learner(subject, set, plain)); },
        [&] { return fit(*learner(subject, set, way)); });
    std::printf(
        "%-30s %10s  planned %-12s saves %3.0f %%   time %.2f [%.2f, %.2f]\n", way.name,
        format_bytes(after.peak_bytes).c_str(), after.planned.c_str(),
        100 - 100 * static_cast<double>(after.peak_bytes) / static_cast<double>(before.peak_bytes),
        time.median, time.low, time.high);
  }
  plan_for_card(subject, set);
}

std::vector<Way> ways(const bench::Subject& subject) {
  const int64_t batch = subject.batch;
  std::vector<Way> all{
      {"itself (control)", [](auto&) {}},
      {"micro_batch: half", [=](auto& o) { o.micro_batch = batch / 2; }},
      {"micro_batch: a quarter", [=](auto& o) { o.micro_batch = batch / 4; }},
      {"recompute: all", [](auto& o) { o.recompute = {"all"}; }},
      {"step_in_backward: true", [](auto& o) { o.step_in_backward = true; }},
      {"precision: bf16", [](auto& o) { o.precision = "bf16"; }},
      {"precision: fp16", [](auto& o) { o.precision = "fp16"; }},
      {"precision: bf16-true", [](auto& o) { o.precision = "bf16-true"; }},
      {"recompute, step_in_backward, bf16",
       [](auto& o) {
         o.recompute = {"all"};
         o.step_in_backward = true;
         o.precision = "bf16";
       }},
  };
  if (subject.model == "gpt") {
    all.insert(all.begin() + 4, {"recompute: [h.0, h.1]", [](auto& o) {
                                   o.recompute = {"h.0", "h.1"};
                                 }});
    return all;
  }
  all.insert(all.begin() + 4, {"recompute: [layer1]", [](auto& o) { o.recompute = {"layer1"}; }});
  all.push_back({"channels_last", [](auto& o) { o.kernels.channels_last = true; }});
  all.push_back({"channels_last, bf16", [](auto& o) {
                   o.kernels.channels_last = true;
                   o.precision = "bf16";
                 }});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  init();
  const std::vector<bench::Subject> subjects{
      {"resnet18", {.sample_shape = {3, 64, 64}}, 32},
      {"gpt", {.classes = 96, .sample_shape = {128}, .width = 256, .layers = 4, .heads = 4}, 16}};
  for (const auto& subject : subjects) compare(subject, ways(subject), rounds);
}
