// `tare run` and `tare plan`: runs a recipe, or plans its memory.
#include <csignal>
#include <iostream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/cli/handlers.h"
#include "tare/cli/output.h"
#include "tare/cli/ranks.h"
#include "tare/cli/shipped.h"
#include "tare/learner/learner_devices.h"
#include "tare/memory/backend.h"
#include "tare/memory/context.h"
#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/process_limit.h"
#include "tare/plan/link.h"
#include "tare/plan/scale_plan.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/rank_check.h"
#include "tare/recipe/run.h"
#include "tare/runtime/absent_device.h"
#include "tare/runtime/init.h"
#include "tare/trace/measurements.h"
#include "tare/train/interrupt.h"

namespace tare::cli {
namespace {

Resume resume_of(const Arguments& arguments) {
  if (!arguments.has("resume")) return Resume::never;
  const std::string value = arguments.get("resume");
  if (value == "auto") return Resume::automatic;
  if (value == "always") return Resume::always;
  throw ConfigError("tare run", "--resume takes always or auto, got '" + printable(value) + "'");
}

report::MemoryMonitorOptions memory_monitor_of(const Arguments& arguments) {
  report::MemoryMonitorOptions options{.enabled = arguments.has("monitor-memory")};
  if (options.enabled)
    config::read_into(config::parse_text(arguments.get("monitor-memory"), "--monitor-memory"),
                      options);
  return options;
}

/// Prepares the process for a command that plans.
void start() {
  init();
  plan::measurements().keep_in(io::cache_home() / "plan");
}

std::optional<int64_t> bytes_of(const Arguments& arguments, const char* option) {
  if (!arguments.has(option)) return {};
  const std::string text = arguments.get(option);
  const auto bytes = parse_bytes(text);
  if (!bytes) {
    throw ConfigError("tare run", std::string("--") + option +
                                      " must be a number of bytes such as 8GiB, got '" +
                                      printable(text) + "'");
  }
  return bytes;
}

void set_budget(const Arguments& arguments, const char* option, c10::Device device) {
  if (const auto bytes = bytes_of(arguments, option)) memory::backend(device).set_budget(bytes);
}

void set_process_limit(const Arguments& arguments) {
  const auto bytes = bytes_of(arguments, "process-limit");
  const bool address_space = arguments.has("limit-address-space");
  if (address_space && !bytes)
    throw ConfigError("tare run", "--limit-address-space goes with --process-limit BYTES");
  if (bytes) memory::set_process_memory_limit(bytes, {.address_space = address_space});
}

void refuse_contradictions(const Arguments& arguments) {
  if (arguments.has("overwrite") && resume_of(arguments) == Resume::always)
    throw ConfigError(
        "tare run",
        "--overwrite and --resume contradict each other: one starts the run anew, the "
        "other continues it; give one of them, or --resume=auto, which continues a run "
        "where there is one to continue");
  if (!arguments.has("quiet")) return;
  for (const char* other : {"verbose", "monitor-memory"})
    if (arguments.has(other))
      throw ConfigError("tare run", std::string("--quiet and --") + other +
                                        " contradict each other; give one of them");
}

/// Throws, before any work, for a --json that cannot be written or would replace another file.
void check_json(const Arguments& arguments, const std::filesystem::path& recipe) {
  if (!arguments.has("json")) return;
  io::check_writable(arguments.get("json"));
  check_output_file(arguments.get("json"), FileKind::json, "--json", recipe);
}

/// Checks the folder of --record-memory, which is made only at the end of the run.
void check_recording_folder(const Arguments& arguments) {
  const std::filesystem::path folder = arguments.get("record-memory");
  if (!folder.empty() && std::filesystem::exists(folder) && !std::filesystem::is_directory(folder))
    throw ConfigError("tare run", "--record-memory must name a folder, and '" +
                                      printable(folder.string()) + "' is a file");
}

/// Throws for a budget above what the card has, which would limit nothing.
void check_device_budget(const Arguments& arguments, c10::Device device, const std::string& call) {
  const auto bytes = bytes_of(arguments, "device-budget");
  if (!bytes) return;
  const memory::DeviceBackend& card = memory::backend(device);
  const int64_t total = card.memory_info().total_bytes;
  if (*bytes <= total) return;
  throw ConfigError(call, "--device-budget must be at most " + format_bytes(total) +
                              ", the memory of " + device.str() + " '" + printable(card.name()) +
                              "', got " + format_bytes(*bytes) + "; give less, or omit it");
}

/// Limits what tensors may take. `call`: the command, for messages.
void set_budgets(const Arguments& arguments, const RecipeOptions& recipe, const std::string& call) {
  const std::vector<c10::Device> devices = open_devices(recipe.learner);
  const c10::Device device = devices.front();
  if (device.is_cpu() && arguments.has("device-budget")) {
    const std::string why = runtime::why_host();
    throw ConfigError(call, "--device-budget is for a GPU, and this run uses the host" +
                                (why.empty() ? "" : ", because " + why) + "; give --host-budget");
  }
  if (!device.is_cpu() && arguments.has("host-budget"))
    log::warning("--host-budget limits the tensors of the host, and the run is on " + device.str() +
                 ": --device-budget limits those");
  for (const c10::Device one : devices) check_device_budget(arguments, one, call);
  set_budget(arguments, "host-budget", c10::kCPU);
  for (const c10::Device one : devices) set_budget(arguments, "device-budget", one);
}

/// Returns the number of --ranks; unset where it is not given. Throws ConfigError where another
/// program has started this process as a rank.
std::optional<int64_t> ranks_of(const Arguments& arguments) {
  if (!arguments.has("ranks")) return std::nullopt;
  const int64_t count = arguments.number("ranks", 1, 1);
  if (count > plan::kMostRanks)
    throw ConfigError("tare run", "--ranks", "starts processes of this machine",
                      "1 to " + std::to_string(plan::kMostRanks), std::to_string(count));
  if (const parallel::World world = parallel::this_world(); !world.is_alone())
    throw ConfigError("tare run", "this process is a rank already, which " + world.started_by +
                                      " has started: omit --ranks");
  return count;
}

constexpr int64_t kMostAnswerSeconds = 30 * 24 * 3600;  // a month

/// Returns how this process takes part where it is a rank.
parallel::GroupOptions group_options(const Arguments& arguments) {
  parallel::GroupOptions options;
  if (arguments.has("rank-timeout"))
    options.answer_seconds =
        static_cast<double>(arguments.number("rank-timeout", 0, 1, kMostAnswerSeconds));
  if (arguments.has("backend")) options.backend = arguments.get("backend");
  parallel::check_backend("tare run", options.backend);
  return options;
}

/// Returns where a key that sets a batch is to be changed.
std::string change_text(const RecipeOptions& recipe, const std::string& key) {
  return recipe.file.has(key) ? "change " + key + " at " + printable(recipe.file.place(key).str())
                              : "set " + key + ", which the recipe leaves to the size of the data";
}

/// Prints for each phase that does not fit what does by the plan, which knows what whole steps
/// need; returns whether there is one.
bool advise_by_plan(const RecipeOptions& recipe) {
  bool advised = false;
  for (const MemoryPlan& phase : plan_recipe(recipe, {.advice = false}).phases) {
    if (!phase.known() || phase.runs() || phase.largest_batch == 0) continue;
    std::cerr << "by the plan, phase '" << printable(phase.name) << "' fits with a batch of "
              << format_count(phase.largest_batch) << " at most";
    if (phase.largest_micro_batch > 0)
      std::cerr << ", and this batch in micro-batches of "
                << format_count(phase.largest_micro_batch) << " at most";
    std::cerr << '\n';
    advised = true;
  }
  return advised;
}

/// Whether the device is asked for segments that hold many blocks, and not for each block.
bool asks_for_segments(c10::Device device) {
  const auto planner = memory::backend(device).traits().planner;
  return planner && planner->caches;
}

/// Prints what held the memory, and which line of the recipe sets the batch. An error with other
/// advice than the report's says what to do, and no smaller batch would help.
void explain_out_of_memory(const RecipeOptions& recipe, const c10::OutOfMemoryError& error) {
  const auto last = memory::last_out_of_memory();
  if (!last) return;
  memory::OutOfMemoryReport report = *last;
  const auto* ours = dynamic_cast<const OutOfMemory*>(&error);
  const bool smaller_helps = !ours || ours->advice() == report.advice();
  // The size of a segment says nothing about the batch.
  if (!smaller_helps || asks_for_segments(report.device)) report.fitting_batch.reset();
  std::cerr << report.str();
  const std::string& key = report.workload.setting;
  const std::string change = key.empty() ? "" : change_text(recipe, key) + '\n';
  if (report.fitting_batch) std::cerr << change;
  try {
    const bool advised = advise_by_plan(recipe);
    if (advised && smaller_helps && !report.fitting_batch) std::cerr << change;
  } catch (const std::exception& why) {
    log::debug("no plan after out of memory: " + printable(why.what()));
  }
}

/// Keeps what the process holds on a card beside its tensors, for the placement of a sweep's runs.
void note_context_of(c10::Device device) {
  if (device.is_cpu()) return;
  const memory::DeviceBackend& card = memory::backend(device);
  const memory::Usage usage = card.usage();
  if (usage.process_bytes > 0)
    memory::note_context(card.name(), usage.process_bytes - usage.reserved_bytes);
}

/// Returns what the options say about the devices of a plan for several ranks.
plan::ScaleOptions scale_of(const Arguments& arguments, int64_t ranks) {
  for (const char* option : {"link", "local-link", "per-machine", "rate", "batch-time"})
    if (ranks == 1 && arguments.has(option))
      throw ConfigError("tare plan", std::string("--") + option +
                                         " describes one of several devices: give --ranks N too, "
                                         "above 1, or omit it");
  if (arguments.has("rate") && arguments.has("batch-time"))
    throw ConfigError("tare plan",
                      "--rate and --batch-time both say how fast a device is: give one of them");
  plan::ScaleOptions options;
  if (arguments.has("link"))
    options.cluster.between = plan::parse_link(arguments.get("link"), "--link");
  if (arguments.has("local-link"))
    options.cluster.inside = plan::parse_link(arguments.get("local-link"), "--local-link");
  options.cluster.per_machine =
      arguments.number("per-machine", options.cluster.per_machine, 1, plan::kMostRanks);
  if (arguments.has("rate")) options.rate = plan::parse_rate(arguments.get("rate"), "--rate");
  if (arguments.has("batch-time"))
    options.batch_s = plan::parse_seconds(arguments.get("batch-time"), "--batch-time");
  return options;
}

}  // namespace

int run_command(const Arguments& arguments) {
  continue_without_output();
  RecipeOptions recipe;
  std::shared_ptr<parallel::Group> group;
  try {
    const auto& words = arguments.positional();
    refuse_contradictions(arguments);
    const std::filesystem::path path = recipe_path(words.front());
    recipe = read_recipe(path, {words.begin() + 1, words.end()});
    check_json(arguments, path);
    check_recording_folder(arguments);
    const parallel::GroupOptions ranks_options = group_options(arguments);
    if (const auto ranks = ranks_of(arguments)) {
      check_ranks(recipe, *ranks);
      return run_ranks(*ranks);
    }
    start();
    if (parallel::this_world().is_alone())
      for (const char* option : {"rank-timeout", "backend"})
        if (arguments.has(option))
          log::warning("--" + std::string(option) + " has no effect on one process");
    group = join_ranks(recipe, arguments.has("dry-run") ? "--dry-run" : "", ranks_options);
  } catch (...) {
    let_first_rank_speak();
    throw;
  }
  const bool is_first = !group || group->is_first();
  std::cout << std::unitbuf;  // a log shows each line at once, in order with the warnings
  try {
    set_budgets(arguments, recipe, "tare run");
    set_process_limit(arguments);
  } catch (...) {
    if (group) group->fail(std::current_exception());
    throw;
  }
  // Until the process ends: a signal after the last step must not turn success into failure.
  static const InterruptScope& interrupts =
      *new InterruptScope(/*term_repeats=*/parallel::this_world().started_by == "srun");
  const RunOptions options{.out = arguments.has("quiet") || !is_first ? nullptr : &std::cout,
                           .verbose = arguments.has("verbose"),
                           .resume = resume_of(arguments),
                           .overwrite = arguments.has("overwrite"),
                           .dry_run = arguments.has("dry-run"),
                           .allocation_recording = arguments.get("record-memory"),
                           .memory_monitor = memory_monitor_of(arguments),
                           .call_sites = arguments.has("call-sites"),
                           .group = group,
                           .plan = !arguments.has("no-plan")};
  RunReport report;
  try {
    report = run_recipe(recipe, options);
  } catch (const c10::OutOfMemoryError& error) {
    explain_out_of_memory(recipe, error);
    throw;
  } catch (const parallel::RankError& error) {  // no input was bad
    log::error(error.what());
    return kFailed;
  }
  for (const c10::Device device : parse_devices(recipe.learner)) note_context_of(device);
  if (arguments.has("json") && is_first)
    io::write_atomically(arguments.get("json"), to_json(report) + '\n');
  if (report.unsaved)
    log::error("the last checkpoint could not be written: see the warnings above");
  if (report.best_lost)
    log::error("the weights of the best epoch could not be written: see the warnings above");
  if (report.reason == StopReason::interrupted) {
    if (report.unsaved)
      log::warning("stopped by a signal after the step in flight");
    else
      log::info(std::string("stopped by a signal after the step in flight, with a checkpoint; ") +
                (options.resume == Resume::automatic ? "the same command" : "--resume") +
                " continues from there");
    // Where another rank got the signal, this process knows that there was one.
    return 128 + (interrupts.signal() != 0 ? interrupts.signal() : SIGTERM);
  }
  return report.unsaved || report.best_lost ? kIo : kSuccess;
}

int plan_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const std::filesystem::path path = recipe_path(words.front());
  const RecipeOptions recipe = read_recipe(path, {words.begin() + 1, words.end()});
  check_json(arguments, path);
  const int64_t ranks = arguments.number("ranks", 1, 1, plan::kMostRanks);
  const plan::ScaleOptions scale = scale_of(arguments, ranks);
  check_ranks(recipe, ranks);
  start();
  if (arguments.has("host-budget") || arguments.has("device-budget")) {
    if (arguments.has("device"))
      throw ConfigError("tare plan",
                        "--device and a budget exclude each other: a budget limits the "
                        "device of the recipe, which is here");
    set_budgets(arguments, recipe, "tare plan");
  }
  const RecipePlan plan = plan_recipe(recipe, {.device = arguments.get("device"),
                                               .schedule = arguments.has("schedule"),
                                               .ranks = ranks,
                                               .scale = scale});
  print(std::cout, plan);
  if (arguments.has("json")) io::write_atomically(arguments.get("json"), to_json(plan) + '\n');
  return plan.runs() ? kSuccess : kOutOfMemory;
}

}  // namespace tare::cli
