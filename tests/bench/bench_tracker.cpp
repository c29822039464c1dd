// Wall time of the memory tracker on a fit of three small models: Tare's allocator, with its counts
// and tags, against LibTorch's own in its place; then what an event log and call stacks add.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_tracker [rounds]
#include <c10/core/CPUAllocator.h>

#include "bench/paired.h"
#include "bench/subjects.h"

namespace {

using namespace tare;

/// About a tenth of a second.
int64_t steps_of(const bench::Subject& subject) { return subject.model == "mlp" ? 1000 : 60; }

/// LibTorch's own allocator of the host in the place of Tare's.
class Untracked {
 public:
  Untracked() { c10::SetCPUAllocator(c10::GetDefaultCPUAllocator()); }
  ~Untracked() { c10::SetCPUAllocator(tracked_); }
  Untracked(const Untracked&) = delete;
  Untracked& operator=(const Untracked&) = delete;

 private:
  c10::Allocator* tracked_ = c10::GetAllocator(c10::kCPU);
};

struct Nothing {};

void compare(const bench::Subject& subject, int rounds) {
  const auto set = subject.data(steps_of(subject));
  const auto within = [&]<class Scope>() {
    return [&] {
      [[maybe_unused]] const Scope scope{};
      return bench::seconds([&] { subject.fit(set); });
    };
  };
  const auto tracked = within.operator()<Nothing>();
  tracked();
  const auto print = [&](const char* what, const auto& first, const auto& second) {
    bench::print((subject.model + what).c_str(), bench::paired(rounds, first, second));
  };
  print(", counted, against itself (control)", tracked, tracked);
  print(", counted, against not", within.operator()<Untracked>(), tracked);
  print(", with event log, against without", tracked, within.operator()<memory::EventLog>());
  print(", with call stacks, against without", tracked, within.operator()<memory::CallSites>());
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 31;
  init();
  std::puts("a fit; median of ratios, [quartiles]");
  for (const auto& subject : bench::small_subjects()) compare(subject, rounds);
}
