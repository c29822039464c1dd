// What a sweep costs beside its runs: the start of a large grid, and runs that do next to nothing
// against the same under xargs.
//
// Run: build/bin/bench_sweep [runs] [rounds]
#include <sstream>

#include "bench/paired.h"
#include "sweep/support.h"
#include "tare/base/bytes.h"
#include "tare/sweep/coordinator.h"

namespace {

using namespace tare;
using namespace tare::testing;

constexpr const char* kTrivial = "finish 1 1";

sweep::SweepOptions grid_of(const SweepFiles& files, int runs) {
  return files.read("metric: {name: acc, goal: maximize}\nparameters: {a: {min: 1, max: " +
                    std::to_string(runs) + "}}\nresources: {jobs: 2, memory: 16MiB}\n");
}

/// Of a grid whose runs are never started.
double start_s(int cells) {
  const SweepFiles files;
  const auto options = grid_of(files, cells);
  const sweep::Surroundings around{
      .command = {}, .predict = {}, .interrupted = [] { return true; }};
  return bench::seconds([&] { (void)sweep::run_sweep(options, around); });
}

double sweep_s(int runs) {
  const SweepFiles files;
  const auto options = grid_of(files, runs);
  const sweep::Surroundings around{
      .command = [&](const auto& settings,
                     int64_t budget) { return shell_run(options, settings, budget, kTrivial); },
      .predict = {},
      .interrupted = {}};
  const auto start = std::chrono::steady_clock::now();
  const auto report = sweep::run_sweep(options, around);
  if (report.complete != runs)
    std::printf("only %lld complete\n", static_cast<long long>(report.complete));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double xargs_s(int runs) {
  const SweepFiles files;
  const auto options = grid_of(files, runs);
  io::make_directories(files.log_dir());
  const auto words = shell_run(options, {"name=N", "a=1"}, 0, kTrivial);
  std::string script = words.back();
  script.replace(script.find("/N'"), 3, "/'$1");
  io::write_atomically(files.log_dir() / "run.sh", script);
  const std::string command = "seq " + std::to_string(runs) + " | xargs -P 2 -n 1 /bin/sh " +
                              (files.log_dir() / "run.sh").string();
  return bench::seconds([&] {
    if (std::system(command.c_str()) != 0) std::printf("xargs failed\n");
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  std::printf("start of a grid of 10,000: %s\n", format_seconds(start_s(10'000)).c_str());
  std::fflush(stdout);
  bench::print("xargs against itself (control)",
               bench::paired(
                   rounds, [&] { return xargs_s(runs); }, [&] { return xargs_s(runs); }));
  std::fflush(stdout);
  bench::print("sweep against xargs -P 2",
               bench::paired(
                   rounds, [&] { return xargs_s(runs); }, [&] { return sweep_s(runs); }));
}
