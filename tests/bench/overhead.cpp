// Counts the instructions that the Learner adds to a step: an MLP 64-128-10, batch 32, SGD with
// momentum on the fused kernel, against a hand-written loop with the same kernel and loader. Counts
// repeat to 1e-8, on busy machines too. Then what counting a block costs, and what the event log
// and call stacks add to a step of three models.
//
// Run under callgrind (tests/bench/overhead_test.cpp does, and holds the ratios); each mode's
// counts are dumped under its name. Every mode runs kWarm + kFew and kWarm + kMany steps; the
// difference is kMany - kFew steps without start and end.
#include <c10/core/CPUAllocator.h>
#include <valgrind/callgrind.h>

#include <cstdio>

#include "bench/hand_loop.h"
#include "bench/subjects.h"
#include "tare/memory/host_allocator.h"

namespace {

using namespace tare;

using bench::kBatch;

constexpr int64_t kFew = 20, kMany = 120;
constexpr int64_t kFewOfModel = 1, kManyOfModel = 3;

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

/// A block from an allocator and its free, so many times.
void count_blocks(const std::string& name, c10::Allocator& allocator) {
  const auto run = [&](int64_t blocks) {
    for (int64_t i = 0; i < blocks; ++i) const auto block = allocator.allocate(256);
  };
  run(kFew);  // warm
  for (const bool more : {false, true}) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    run(more ? kMany : kFew);
    CALLGRIND_DUMP_STATS_AT((name + (more ? "-many" : "-few")).c_str());
    CALLGRIND_STOP_INSTRUMENTATION;
  }
}

/// "blocks mlp 41": those of one step.
void print_blocks(const bench::Subject& subject, const DatasetPtr& few, const DatasetPtr& many) {
  const auto births = [&](const DatasetPtr& set) {
    const auto before = memory::host_allocator::counters().births;
    subject.fit(set);
    return memory::host_allocator::counters().births - before;
  };
  const auto of_few = births(few), of_many = births(many);
  std::printf("blocks %s %g\n", subject.model.c_str(),
              static_cast<double>(of_many - of_few) / (kManyOfModel - kFewOfModel));
}

void count_recording(const bench::Subject& subject) {
  const auto few = subject.data(kFewOfModel), many = subject.data(kManyOfModel);
  print_blocks(subject, few, many);
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
  count_blocks("counted", *c10::GetCPUAllocator());
  count_blocks("uncounted", *c10::GetDefaultCPUAllocator());  // LibTorch's own
  for (const auto& subject : bench::small_subjects()) count_recording(subject);
}
