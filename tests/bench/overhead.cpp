// What the Learner adds to a step, counted in instructions: an MLP 64-128-10, batch 32, SGD with
// momentum on the fused kernel, against a hand-written loop with the same kernel and loader. Counts
// repeat to 1e-8, on busy machines too. Then what the event log and call stacks add to a step of
// three models.
//
// Run under callgrind (tests/bench/overhead_test.cpp does, and holds the ratios); each mode's
// counts are dumped under its name. Every mode runs kWarm + kFew and kWarm + kMany steps; the
// difference is kMany - kFew steps without start and end.
#include <valgrind/callgrind.h>

#include "bench/hand_loop.h"
#include "bench/subjects.h"

namespace {

using namespace tare;

using bench::kBatch;

constexpr int64_t kFew = 20, kMany = 120;
constexpr int64_t kFewOfModel = 2, kManyOfModel = 6;

DatasetPtr data(int64_t steps) {
  torch::manual_seed(2);
  return bench::rows(steps * kBatch);
}

void by_hand(const DatasetPtr& set) {
  torch::manual_seed(1);
  if (!(bench::HandLoop(set).run() > 0)) std::abort();
}

void by_learner(const DatasetPtr& set, const std::vector<CallbackPtr>& callbacks,
                const std::string& schedule) {
  torch::manual_seed(1);
  Learner learner(bench::small_mlp(), {.train = set}, bench::same_training());
  learner.fit(1, {.lr = 0.05, .schedule = {.kind = schedule}, .callbacks = callbacks});
}

/// Sees every event and does nothing.
class Empty final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "empty"; }
};

template <class Run>
void count(const std::string& name, const DatasetPtr& few, const DatasetPtr& many, Run run) {
  run(few);  // warm
  const auto measure = [&](const DatasetPtr& set, const std::string& label) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    run(set);
    CALLGRIND_DUMP_STATS_AT(label.c_str());
    CALLGRIND_STOP_INSTRUMENTATION;
  };
  measure(few, name + "-few");
  measure(many, name + "-many");
}

template <class Run>
void count(const std::string& name, Run run) {
  count(name, data(kFew), data(kMany), run);
}

void count_recording(const bench::Subject& subject) {
  const auto few = subject.data(kFewOfModel), many = subject.data(kManyOfModel);
  const auto count_mode = [&](const char* mode, auto fit) {
    count(subject.model + '-' + mode, few, many, fit);
  };
  count_mode("bare", [&](const DatasetPtr& set) { subject.fit(set); });
  count_mode("log", [&](const DatasetPtr& set) {
    const memory::EventLog log;
    subject.fit(set);
  });
  count_mode("stacks", [&](const DatasetPtr& set) {
    const memory::CallSites stacks;
    subject.fit(set);
  });
}

}  // namespace

int main() {
  at::set_num_threads(1);
  count("hand", by_hand);
  count("bare", [](const DatasetPtr& set) { by_learner(set, {}, "constant"); });
  count("full", [](const DatasetPtr& set) {
    by_learner(set, {std::make_shared<Recorder>()}, "one_cycle");
  });
  count("empty", [](const DatasetPtr& set) {
    std::vector<CallbackPtr> ten;
    for (int i = 0; i < 10; ++i) ten.push_back(std::make_shared<Empty>());
    by_learner(set, ten, "constant");
  });
  count("again", by_hand);  // the same as the first: the control
  for (const auto& subject : bench::small_subjects()) count_recording(subject);
}
