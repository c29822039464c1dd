// Measures the cost of a sweep beside its runs: the start of a large grid, runs that do next to
// nothing against such runs under xargs, the start of a process by the fork server against
// executing the program, and how well short runs fill two cores.
//
// Run: build/bin/bench_sweep [runs] [rounds]
#include <sstream>

#include "bench/paired.h"
#include "sweep/support.h"
#include "tare/base/bytes.h"
#include "tare/launch/fork_server.h"
#include "tare/runtime/init.h"
#include "tare/sweep/coordinator.h"
#include "tare/sweep/store_read.h"

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
  const sweep::SweepHost host{.command = {}, .predict = {}, .interrupted = [] { return true; }};
  return bench::seconds([&] { (void)sweep::run_sweep(options, host); });
}

double sweep_s(int runs) {
  const SweepFiles files;
  const auto options = grid_of(files, runs);
  const sweep::SweepHost host{
      .command = [&](const auto& settings, const auto&,
                     int64_t budget) { return shell_run(options, settings, budget, kTrivial); },
      .predict = {},
      .interrupted = {}};
  const auto start = std::chrono::steady_clock::now();
  const auto report = sweep::run_sweep(options, host);
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

std::filesystem::path the_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tare";
}

/// Of a process that has LibTorch loaded and does nothing, from its start to its end.
double process_s(const TempDir& folder, std::vector<std::string> command,
                 const std::function<launch::Child(const launch::ChildStart&)>& start) {
  const launch::ChildStart how{
      .command = std::move(command), .out = folder / "out", .err = folder / "err"};
  return bench::seconds([&] { (void)start(how).wait(); });
}

/// Times of a sweep of short trainings, two at a time: its own over half of its runs' sum.
double packing(int runs) {
  const TempDir folder;
  io::write_atomically(folder / "recipe.yaml",
                       "name: r\nbatch: 32\nworkers: 0\ndevice: cpu\nsave_every: 0\n"
                       "data: {name: generated_digits, count: 1000, size: 12}\n"
                       "model: {name: resnet9, width: 4}\nphases: [{name: all, epochs: 2}]\n");
  io::write_atomically(folder / "sweep.yaml",
                       "name: s\nrecipe: recipe.yaml\nlog_dir: " + (folder / "logs").string() +
                           "\nparameters: {seed: {min: 1, max: " + std::to_string(runs) +
                           "}}\nresources: {jobs: 2}\n");
  const std::string command = the_program().string() + " sweep run " +
                              (folder / "sweep.yaml").string() + " > " + (folder / "out").string();
  const double wall_s = bench::seconds([&] {
    if (std::system(command.c_str()) != 0) std::printf("the sweep failed\n");
  });
  double sum_s = 0;
  for (const auto& trial : sweep::read_store(folder / "logs" / "s.sqlite", "s").trials)
    sum_s += trial.seconds;
  std::printf("  %d runs of %s each in %s\n", runs, format_seconds(sum_s / runs).c_str(),
              format_seconds(wall_s).c_str());
  return wall_s / (sum_s / 2);
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  const TempDir folder;
  launch::ForkServer server([] { init({.threads = 1, .cuda = CudaMode::off}); },
                            [](const auto&) { return 0; });
  const auto execute = [&] {
    return process_s(folder, {the_program().string(), "--version"},
                     [](const auto& how) { return launch::Child(how); });
  };
  const auto fork = [&] {
    return process_s(folder, {"nothing"}, [&](const auto& how) { return server.start(how); });
  };
  std::printf("a process that is executed: %s, by the fork server: %s\n",
              format_seconds(execute()).c_str(), format_seconds(fork()).c_str());
  std::fflush(stdout);
  bench::print("executing a process against itself (control)",
               bench::paired(10 * rounds, execute, execute));
  bench::print("fork server against executing", bench::paired(10 * rounds, execute, fork));
  std::fflush(stdout);
  std::printf("64 short runs on two cores: %.3f of a perfect packing\n", packing(64));
  std::fflush(stdout);
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
