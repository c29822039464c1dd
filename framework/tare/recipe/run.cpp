#include "tare/recipe/run.h"

#include <ATen/Context.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <sstream>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/folder_lock.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/terminal.h"
#include "tare/callback/autosave.h"
#include "tare/callback/csv_log.h"
#include "tare/callback/leak_watch.h"
#include "tare/callback/memory_peak.h"
#include "tare/callback/monitor.h"
#include "tare/callback/progress.h"
#include "tare/config/node.h"
#include "tare/data/datasets.h"
#include "tare/experiment/experiment.h"
#include "tare/learner/interrupt.h"
#include "tare/learner/learner.h"
#include "tare/learner/recompute.h"
#include "tare/learner/summary.h"
#include "tare/memory/backend.h"
#include "tare/memory/device.h"
#include "tare/memory/oom_report.h"
#include "tare/recipe/mem_trace_log.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/position.h"
#include "tare/recipe/resolve.h"
#include "tare/recipe/resume.h"
#include "tare/recipe/run_callbacks.h"
#include "tare/recipe/run_folder.h"
#include "tare/recipe/run_text.h"
#include "tare/recipe/worst_pictures.h"

namespace tare {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t tracked(c10::Device device) { return memory::backend(device).usage().allocated_bytes; }

class Runner {
 public:
  Runner(ResolvedRecipe resolved, const RunOptions& options)
      : recipe_(std::move(resolved.recipe)),
        origin_(std::move(resolved.origin)),
        options_(options),
        device_(memory::parse_device(recipe_.device)),
        folder_(recipe_.folder / recipe_.name),
        autosave_(std::make_shared<Autosave>(recipe_.save_every)) {
    if (!options.memory_trace.empty()) trace_.emplace(options.memory_trace, device_);
    if (options.out) holders_.emplace(options.mem_trace, *options.out);
    report_.name = recipe_.name;
    report_.device = device_.str();
    report_.machine = this_machine(device_);
    report_.data = std::move(resolved.description);
    report_.generated = resolved.generated;
  }

  RunReport run(Clock::time_point start, const memory::TrackerWatch& tracker) {
    if (options_.plan) plan();
    const int64_t before = tracked(device_);
    at::manual_seed(recipe_.seed);
    Model model = make_model();  // before the folder: what is refused here leaves nothing behind
    check_model(recipe_, model);
    if (!no_plan_.empty()) log::warning("no plan of this run: " + no_plan_);
    const auto lock = open_folder();
    run_learner(std::move(model));
    report_.residual_bytes = tracked(device_) - before;
    report_.process_bytes = memory::backend(device_).usage().process_bytes;
    report_.seconds = seconds_since(start);
    report_.tracker = tracker.cost();
    report_.unsaved = autosave_->failed();
    close_folder();
    print_end();
    end_trace();
    return std::move(report_);
  }

 private:
  // A run without a plan is still a run. What is wrong with the recipe, the run itself says.
  void plan() {
    try {
      planned_ = plan_recipe(recipe_, {.advice = false, .download = true});
    } catch (const Error& error) {
      no_plan_ = error.what();
      return;
    }
    for (const auto& phase : planned_.phases)
      if (!phase.known()) log::info("no plan of phase '" + phase.name + "': " + phase.reason);
    require_fit(recipe_, planned_);
  }

  [[nodiscard]] std::unique_ptr<io::FolderLock> open_folder() {
    if (options_.dry_run) return {};
    RunFolder folder = open_run_folder(recipe_, options_.resume, options_.overwrite, origin_);
    folder_ = report_.folder = folder.path;
    from_ = std::move(folder.from);
    if (options_.out && folder_ != recipe_.folder / recipe_.name)
      *options_.out << "the folder of this run is " << folder_.string()
                    << ": an earlier run stays in " << (recipe_.folder / recipe_.name).string()
                    << '\n';
    // The run's own copy of its configuration, with every default and override in it.
    io::write_atomically(folder_ / "recipe.yaml", config::to_yaml(config::to_node(recipe_)));
    return std::move(folder.lock);
  }

  void close_folder() const {
    if (options_.dry_run) return;
    io::write_atomically(folder_ / "report.json", to_json(report_) + '\n');
    if (report_.reason != StopReason::finished) return;
    remove_autosaves(folder_);
    for (size_t i = 0; i < recipe_.phases.size(); ++i)
      if (!recipe_.phases[i].best.empty())
        io::remove_directory_atomically(folder_ / best_checkpoint(i));
  }

  // A sample shape that the recipe does not give is that of its data.
  [[nodiscard]] Model make_model() {
    return models::make(recipe_.model.name,
                        model_options(recipe_, datasets::make(recipe_.data).splits));
  }

  void run_learner(Model model) {
    LearnerOptions options;
    options.loss = recipe_.loss;
    for (const auto& metric : recipe_.metrics) options.metrics.emplace_back(metric);
    options.device = recipe_.device;
    options.batch = recipe_.batch.value();
    options.precision = recipe_.precision;
    options.step_in_backward = recipe_.step_in_backward;
    options.frozen_weights = recipe_.frozen_weights;
    options.kernels = recipe_.kernels;
    options.optimizer = recipe_.optimizer;
    options.seed = recipe_.seed;
    options.drop_last = recipe_.drop_last;
    options.stop_on_nan = false;  // callbacks() has one that names the phase
    options.workers = recipe_.workers;
    options.folder = folder_;
    options.progress = false;
    if (!options_.dry_run) options.callbacks = {position_, autosave_};
    Learner learner(std::move(model), {}, std::move(options));
    if (options_.out) print_start(learner);
    if (from_) go_on(learner);
    for (size_t i = position_->done().size(); i < recipe_.phases.size(); ++i) {
      run_phase(learner, i);
      if (report_.reason == StopReason::interrupted) return;
    }
    if (options_.dry_run) return;
    test_and_export(learner);
    learner.destroy();
  }

  // A checkpoint saved inside a fit is loaded by its phase, after the phase is set up as before.
  void go_on(Learner& learner) {
    restore(from_->callbacks, {position_});
    report_.resumed_from = from_->name;
    report_.phases = position_->done();
    under_way_ = from_->unfinished;
    if (!under_way_) learner.load(from_->name);
    if (options_.out) {
      *options_.out << "goes on from " << from_->name << ": " << position_->done().size() << " of "
                    << recipe_.phases.size() << " phases are done"
                    << (under_way_ ? ", the next one is under way\n\n" : "\n\n");
    }
  }

  void run_phase(Learner& learner, size_t index) {
    const PhaseOptions& phase = recipe_.phases[index];
    const memory::OutOfMemoryWatch watch({.setting = samples_path(recipe_, index)});
    PhaseReport result{.name = name_of(recipe_, index)};
    if (index < planned_.phases.size() && planned_.phases[index].known())
      result.planned_peak_bytes = peak_of(planned_.phases[index]);
    const auto start = Clock::now();
    print_phase(index);
    Experiment stage(result.name, learner,
                     {.out = options_.verbose ? options_.out : nullptr,
                      .purge = {.clear_opt = phase.clear_opt},
                      .call_sites = options_.call_sites});
    const FitResult fit = fit_phase(stage, learner, index);
    result.epochs = fit.epochs;
    result.samples_per_s = fit.samples_per_s();
    result.micro_batch = micro_batch_->take();
    result.overflows = fit.overflows;
    if (fit.reason == StopReason::interrupted) {
      report_.reason = fit.reason;
      autosave(learner);
    } else if (!options_.dry_run) {
      if (!phase.best.empty() && options_.out)
        *options_.out << "the weights are those of the epoch with the best " << phase.best << '\n';
      if (!phase.save.empty()) learner.save(phase.save);
    }
    if (holders_) holders_->snapshot("Before the purge of " + result.name);
    weigh(stage, result);
    result.seconds = seconds_since(start);
    print(result);
    report_.phases.push_back(result);
    if (report_.reason == StopReason::interrupted) return;
    position_->add(std::move(result));
    autosave(learner);
    if (!interrupt_requested()) return;  // between two phases
    report_.reason = StopReason::interrupted;
    clear_interrupt();
  }

  // Sets up the phase's weights, frozen layers and data, then trains or resumes it.
  FitResult fit_phase(Experiment& stage, Learner& learner, size_t index) {
    const PhaseOptions& phase = recipe_.phases[index];
    const bool under_way = std::exchange(under_way_, false);
    if (!under_way) prepare_weights(learner, phase);
    freeze(learner, phase);
    auto data = datasets::make(data_of(recipe_, phase));
    check_data(recipe_, index, data.splits);
    const int64_t batch = batch_of(recipe_, phase, data.splits);
    if (options_.out && std::exchange(described_, data.description) != data.description)
      *options_.out << fitted(data.description, *options_.out) << '\n';
    learner.set_micro_batch(micro_batch_of(recipe_, phase));
    set_recompute(learner, index);
    learner.set_offload(offload_of(recipe_, phase));
    stage.emplace<DataScope>("data", learner, std::move(data.splits), batch);
    return under_way ? resume(learner, index) : train(learner, index);
  }

  void set_recompute(Learner& learner, size_t index) const {
    const bool planned = index < planned_.phases.size() && planned_.phases[index].known();
    const auto blocks = recompute_of(recipe_, recipe_.phases[index]);
    const bool chosen = planned && is_auto(blocks);
    learner.set_recompute(chosen ? planned_.phases[index].recompute : blocks);
  }

  void autosave(Learner& learner) {
    if (options_.dry_run) return;
    autosave_->write([&](const std::string& name) { learner.save(name); });
  }

  FitResult train(Learner& learner, size_t index) {
    const PhaseOptions& phase = recipe_.phases[index];
    return learner.fit(options_.dry_run ? 1 : phase.epochs,
                       {.lr = rate_of(recipe_, phase),
                        .schedule = phase.schedule,
                        .callbacks = callbacks(index),
                        .first_micro_batch = planned_micro_batch(index),
                        .first_validation_micro_batch = planned_validation_micro_batch(index)});
  }

  // Where a batch that does not fit whole starts; 0: whole.
  [[nodiscard]] int64_t planned_micro_batch(size_t index) const {
    if (index >= planned_.phases.size() || !planned_.phases[index].in_micro_batches) return 0;
    const MemoryPlan& plan = planned_.phases[index];
    if (options_.out)
      *options_.out << "a batch of " << format_count(plan.batch) << " does not fit into "
                    << format_bytes(plan.capacity_bytes) << ": in micro-batches of "
                    << format_count(plan.largest_micro_batch) << ", by the plan\n";
    return plan.largest_micro_batch;
  }

  // Where the validations of such a phase start; 0: whole.
  [[nodiscard]] int64_t planned_validation_micro_batch(size_t index) const {
    if (index >= planned_.phases.size()) return 0;
    return planned_.phases[index].largest_validation_micro_batch;
  }

  FitResult resume(Learner& learner, size_t index) {
    learner.load(from_->name);
    return learner.resume(callbacks(index));
  }

  void prepare_weights(Learner& learner, const PhaseOptions& phase) const {
    if (!phase.load.empty() && !options_.dry_run) learner.load(phase.load, {.with_opt = false});
    if (phase.reset_head) models::reset_head(learner.model());
  }

  void freeze(Learner& learner, const PhaseOptions& phase) const {
    const FreezeReport frozen = learner.freeze_to(phase.freeze_to);
    if (options_.out) *options_.out << frozen.str() << '\n';
  }

  [[nodiscard]] std::vector<CallbackPtr> callbacks(size_t index) {
    const std::string phase = name_of(recipe_, index), best = recipe_.phases[index].best;
    std::vector<CallbackPtr> all{
        std::make_shared<StopOnNan>(StopOnNanOptions{.fail = true, .where = "phase " + phase})};
    all.push_back(micro_batch_);
    if (options_.dry_run) all.push_back(std::make_shared<TwoSteps>());
    if (!options_.dry_run) {
      if (!best.empty()) {
        all.push_back(std::make_shared<SaveBest>(SaveBestOptions{
            .monitor = {.figure = best}, .checkpoint = best_checkpoint(index), .restore = false}));
        all.push_back(std::make_shared<RestoreBest>(best_checkpoint(index)));
      }
      all.push_back(std::make_shared<CsvLog>(phase + ".csv"));
      all.push_back(std::make_shared<StepsLog>(phase + ".steps.csv"));
    }
    if (options_.call_sites) all.push_back(std::make_shared<LeakWatch>());
    if (trace_) all.push_back(std::make_shared<NoteCategories>(*trace_));
    if (options_.out) all.push_back(std::make_shared<Progress>(*options_.out));
    if (options_.out && options_.verbose) all.push_back(peak_);
    return all;
  }

  void weigh(Experiment& stage, PhaseReport& result) const {
    const ExperimentReport weighed = stage.finish();
    const DeviceReport on_device = weighed.on(device_);
    result.consumed_bytes = on_device.consumed.allocated_bytes;
    result.peak_bytes = on_device.peak_bytes;
    result.reclaimed_bytes = on_device.reclaimed.allocated_bytes;
    result.residual_bytes = on_device.residual_bytes();
    result.fragmented_bytes = on_device.fragmented_bytes;
    result.allocator_retries = on_device.retries;
    for (const auto& leak : weighed.leaks) {
      result.leaks.push_back({.phase = leak.phase,
                              .site = leak.site == memory::CallSite{} ? "" : leak.site.str(),
                              .blocks = leak.count,
                              .bytes = leak.bytes,
                              .youngest_steps = leak.youngest_steps,
                              .oldest_steps = leak.oldest_steps});
    }
    if (!options_.out || !options_.verbose) return;
    std::ostringstream text;
    text << weighed;
    if (peak_->snapshot()) text << "  " << peak_->str() << '\n';
    *options_.out << fitted_lines(text.str(), *options_.out);
  }

  void print_start(Learner& learner) {
    const std::string start = fitted(recipe_.name + ": " + report_.data, *options_.out);
    *options_.out << bold(recipe_.name) << start.substr(recipe_.name.size()) << '\n';
    if (options_.verbose) {
      const size_t width = width_for(*options_.out);
      *options_.out << '\n'
                    << (width == kAnyWidth ? learner.summary() : summary(learner.model(), width))
                    << '\n';
    } else {
      *options_.out << fitted(summary_line(learner.model()), *options_.out) << "\n\n";
    }
    described_ = report_.data;
  }

  [[nodiscard]] std::string bold(const std::string& text) const {
    return tinted(text, Tint::bold, takes_colour(*options_.out));
  }

  void print(const PhaseReport& phase) const {
    if (!options_.out) return;
    std::ostream& out = *options_.out;
    out << fitted(phase_line(phase), out) << '\n';
    // The experiment's report has listed them.
    const std::string leaks = options_.verbose ? "" : leaks_line(phase);
    if (!leaks.empty()) out << tinted(leaks, Tint::red, takes_colour(out)) << '\n';
    out << '\n';
  }

  void print_phase(size_t index) const {
    if (!options_.out) return;
    *options_.out << bold(name_of(recipe_, index)) << ", phase " << index + 1 << " of "
                  << recipe_.phases.size()
                  << (options_.verbose && width_for(*options_.out) != kAnyWidth ? "\n" : ": ");
  }

  static int64_t peak_of(const MemoryPlan& plan) {
    return plan.in_micro_batches ? plan.micro_batch_peak_bytes : plan.peak_bytes;
  }

  // Both use the data of the last phase, which also gives the bundle its transforms and labels.
  void test_and_export(Learner& learner) {
    if (!recipe_.test && export_name(recipe_).empty()) return;
    const PhaseOptions& last = recipe_.phases.back();
    auto data = datasets::make(data_of(recipe_, last));
    const int64_t batch = batch_of(recipe_, last, data.splits);
    const DataScope scope(learner, std::move(data.splits), batch);
    if (recipe_.test) test(learner);
    export_bundle(learner);
  }

  // Figures of the validation split, on which a recipe is tuned, never go by the name of a test.
  void test(Learner& learner) {
    const bool has_test = learner.data().test != nullptr;
    if (!has_test && !learner.data().valid) return;
    const Split split = has_test ? Split::test : Split::valid;
    auto& result = has_test ? report_.test : report_.valid;
    result = learner.validate(split);
    classify(learner, split);
    if (!options_.out) return;
    std::ostringstream line;
    line << (has_test ? "test" : "valid (there is no test split)")
         << (report_.generated ? ", on generated digits" : "") << ": loss " << result->loss;
    for (const auto& m : result->metrics) line << ", " << m.name << ' ' << m.value;
    *options_.out << fitted(line.str(), *options_.out) << '\n';
  }

  // A second pass over the split, because an evaluation keeps no outputs.
  void classify(Learner& learner, Split split) {
    const DatasetPtr data = split == Split::test ? learner.data().test : learner.data().valid;
    const auto labels = data->labels();
    if (labels.size() < 2 || labels.size() > kMostClasses) return;
    report_.classification = classification_of(learner.get_preds(split, {.losses = true}), labels);
    if (report_.classification) add_pictures(*report_.classification, *data);
  }

  void export_bundle(Learner& learner) {
    if (export_name(recipe_).empty()) return;
    report_.export_path = folder_ / export_name(recipe_);
    learner.export_to(report_.export_path, {.weights = recipe_.export_weights});
    report_.export_bytes = static_cast<int64_t>(std::filesystem::file_size(report_.export_path));
    if (options_.out) {
      *options_.out << "exported " << report_.export_path.string() << ", "
                    << format_bytes(report_.export_bytes) << '\n';
    }
  }

  void print_end() const {
    if (!options_.out) return;
    *options_.out << fitted_lines("after destroy: " + format_bytes(report_.residual_bytes) +
                                      " tracked above the start; the process holds " +
                                      format_bytes(report_.process_bytes) + "; " +
                                      format_seconds(report_.seconds) +
                                      " in all\ntracker: " + report_.tracker.str("allocations") +
                                      (options_.call_sites ? ", call stacks not counted" : ""),
                                  *options_.out);
  }

  void end_trace() {
    if (!trace_) return;
    const std::string line = trace_->finish();
    if (options_.out) *options_.out << line << '\n';
  }

  RecipeOptions recipe_;
  Origin origin_;
  RecipePlan planned_;
  std::string no_plan_;  // why there is none
  const RunOptions& options_;
  c10::Device device_;
  std::filesystem::path folder_;
  std::shared_ptr<Position> position_ = std::make_shared<Position>(origin_);
  std::shared_ptr<Autosave> autosave_;
  std::shared_ptr<MemoryPeak> peak_ = std::make_shared<MemoryPeak>();
  std::shared_ptr<SmallestMicroBatch> micro_batch_ = std::make_shared<SmallestMicroBatch>();
  std::optional<CheckpointInfo> from_;
  bool under_way_ = false;  // the next phase goes on inside its fit
  std::optional<MemoryTrace> trace_;
  std::optional<MemTraceLog> holders_;
  std::string described_;  // the data that were printed last
  RunReport report_;
};

}  // namespace

RunReport run_recipe(const RecipeOptions& recipe, const RunOptions& options) {
  const auto start = Clock::now();
  check_recipe(recipe);
  check_files(recipe);
  const memory::TrackerWatch tracker(memory::parse_device(recipe.device));
  return Runner(resolve_recipe(recipe), options).run(start, tracker);
}

}  // namespace tare
