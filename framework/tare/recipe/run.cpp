// Runs the phases of a recipe, and reports each.
#include "tare/recipe/run.h"

#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/folder_lock.h"
#include "tare/base/io.h"
#include "tare/callback/autosave.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/csv_log.h"
#include "tare/callback/leak_watch.h"
#include "tare/callback/memory_peak.h"
#include "tare/callback/monitor.h"
#include "tare/callback/progress.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/config/node.h"
#include "tare/experiment/experiment.h"
#include "tare/interchange/export_file.h"
#include "tare/learner/learner.h"
#include "tare/learner/learner_devices.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom_report.h"
#include "tare/metric/loss.h"
#include "tare/parallel/group.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/classification.h"
#include "tare/recipe/failure_log.h"
#include "tare/recipe/file_names.h"
#include "tare/recipe/learner_options.h"
#include "tare/recipe/live_log.h"
#include "tare/recipe/machine.h"
#include "tare/recipe/memory_monitor.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/position.h"
#include "tare/recipe/rank_check.h"
#include "tare/recipe/recipe_data.h"
#include "tare/recipe/refused_value.h"
#include "tare/recipe/resolve.h"
#include "tare/recipe/resume.h"
#include "tare/recipe/run_callbacks.h"
#include "tare/recipe/run_folder.h"
#include "tare/recipe/run_plan.h"
#include "tare/recipe/run_printer.h"
#include "tare/recipe/sample_view.h"
#include "tare/recipe/weights_bundle.h"
#include "tare/recipe/worst_rows.h"
#include "tare/train/interrupt.h"
#include "tare/train/padding.h"

namespace tare {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool writes(const CallbackFacts& facts) {
  return !facts.files.empty() || !facts.prefixes.empty() || facts.saves_steps;
}

/// Returns the callback as it is in a dry run, whose two steps say nothing of an average.
CallbackPtr in_dry_run(CallbackPtr callback) {
  const bool averages = dynamic_cast<const AveragedWeights*>(callback.get()) != nullptr;
  return averages ? callback->planned() : std::move(callback);
}

int64_t tracked(const std::vector<c10::Device>& devices) {
  int64_t bytes = 0;
  for (const c10::Device device : devices) bytes += memory::backend(device).usage().allocated_bytes;
  return bytes;
}

/// Returns the devices of a run, each once.
std::vector<c10::Device> devices_of(const RecipeOptions& recipe) {
  std::vector<c10::Device> devices;
  for (const c10::Device device : parse_devices(recipe.learner))
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  return devices;
}

std::string text_of(const std::vector<c10::Device>& devices) {
  std::string text;
  for (const c10::Device device : devices) text += (text.empty() ? "" : ", ") + device.str();
  return text;
}

/// Notes which callback ended a fit before its last step.
class StopNote final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "stop_note"; }
  Action before_fit(FitContext&) override {
    stopped_by_.clear();
    return Action::proceed;
  }
  Action after_fit(FitContext& context) override {
    // The name of a callback in a recipe, without the file that tells it from others of its kind.
    if (context.ends_early() && !context.interrupted)
      stopped_by_ = context.stopped_by.substr(0, context.stopped_by.find(':'));
    return Action::proceed;
  }
  /// Returns its name; empty: none did.
  [[nodiscard]] const std::string& stopped_by() const { return stopped_by_; }

 private:
  std::string stopped_by_;
};

class Runner {
 public:
  /// Takes `data`, which may be open and is closed at the end.
  Runner(ResolvedRecipe resolved, RecipeData& data, const RunOptions& options)
      : recipe_(std::move(resolved.recipe)),
        origin_(std::move(resolved.origin)),
        facts_(std::move(resolved.facts)),
        of_phases_(std::move(resolved.phases)),
        data_(data),
        options_(options),
        print_(recipe_, options),
        devices_(devices_of(recipe_)),
        folder_(recipe_.folder / recipe_.name),
        autosave_(std::make_shared<Autosave>(recipe_.save_every)) {
    if (!options.allocation_recording.empty()) {
      if (devices_.size() > 1)
        throw ConfigError("recipe.run",
                          "a record of allocations is of one device, and the run is "
                          "on " +
                              text_of(devices_) + "; omit --record-memory, or the stages");
      data_.close();  // so that the trace has the blocks of the data too
      trace_.emplace(options.allocation_recording, devices_.front());
    }
    if (options.out) holders_.emplace(options.memory_monitor, *options.out);
    report_.name = recipe_.name;
    report_.device = text_of(devices_);
    report_.machine = this_machine(devices_.front());
    report_.data = std::move(resolved.description);
    report_.generated = resolved.generated;
  }

  RunReport run(Clock::time_point start, const memory::TrackerWatch& tracker) {
    const int64_t ranks = options_.group ? options_.group->size() : 1;
    check_ranks(recipe_, ranks);  // before the folder is made
    check_equal_data();
    if (options_.plan) plan_.make(recipe_, facts_, data_, ranks);
    if (!plan_.stages().empty()) {
      recipe_.learner.stages = plan_.stages();
      devices_ = devices_of(recipe_);
      report_.device = text_of(devices_);
    }
    const int64_t before = tracked(devices_) - data_bytes();
    at::manual_seed(recipe_.learner.seed);
    // Before the folder: what is refused here leaves nothing behind.
    Model model =
        make_model(recipe_, facts_, of_phases_, options_.group ? options_.group->size() : 1);
    if (options_.group) at::manual_seed(recipe_.learner.seed + rank());  // dropout differs
    check_formats(recipe_, of_phases_.back(), *model.spec());
    const auto lock = open_folder();
    if (!options_.dry_run && is_first())
      for (const std::string& format : recipe_.export_formats)
        interchange::check_replaceable(folder_ / export_name(recipe_, format), format);
    try {
      run_in_folder(std::move(model), before, start, tracker);
    } catch (...) {
      if (!options_.dry_run && is_first()) failure_->write(folder_, std::current_exception());
      throw;
    }
    return std::move(report_);
  }

 private:
  void run_in_folder(Model model, int64_t before, Clock::time_point start,
                     const memory::TrackerWatch& tracker) {
    started_ = start;
    run_learner(std::move(model));
    data_.close();
    report_.residual_bytes = tracked(devices_) - before;
    measure_run();
    const memory::TrackerCost cost = report_.tracker_cost = tracker.cost();
    report_.tracker = {.allocations = static_cast<int64_t>(cost.records),
                       .ns_each = cost.ns_each,
                       .share = cost.share()};
    report_.unsaved = autosave_->failed();
    close_folder();
    print_.end(report_);
    if (keeps_no_weights()) print_.no_weights(folder_);
    if (trace_) print_.line(trace_->finish());
  }

  /// Throws ConfigError where the ranks have read different data.
  void check_equal_data() const {
    if (!options_.group) return;
    auto own = nlohmann::json::array();
    for (const Origin::Data& data : origin_.data)
      own.push_back({data.identity.samples, data.identity.digest, data.identity.content});
    options_.group->require_equal(
        own.dump(),
        "has read other data than rank 0: give all ranks the same files, in folders of the same "
        "name where their paths are relative");
  }

  [[nodiscard]] uint64_t rank() const {
    return options_.group ? static_cast<uint64_t>(options_.group->rank()) : 0;
  }
  /// Whether this process writes the folder: it is alone, or the first rank.
  [[nodiscard]] bool is_first() const { return rank() == 0; }

  /// Opens the folder of the first rank, where it has opened it.
  void join_folder() {
    const std::vector<std::string> all = options_.group->texts("");
    const auto found = nlohmann::json::parse(all.front());
    folder_ = report_.folder = found.at("folder").get<std::string>();
    if (const auto from = found.at("from").get<std::string>(); !from.empty())
      from_ = newest_checkpoint(folder_, {from});
  }

  [[nodiscard]] std::unique_ptr<io::FolderLock> open_folder() {
    if (options_.dry_run) return {};
    if (!is_first()) {
      join_folder();
      return {};
    }
    RunFolder folder = open_run_folder(recipe_, options_.resume, options_.overwrite, origin_);
    folder_ = report_.folder = folder.path;
    from_ = std::move(folder.from);
    print_.folder(folder_);
    print_.unfinished(folder.unfinished);
    // The run's own copy of its configuration, with every default and override in it.
    write_recipe(recipe_, folder_);
    if (options_.group)
      (void)options_.group->texts(
          nlohmann::json{{"folder", folder_.string()}, {"from", from_ ? from_->name : ""}}.dump());
    return std::move(folder.lock);
  }

  void measure_run() {
    report_.process_bytes = 0;
    for (const c10::Device device : devices_)
      report_.process_bytes += memory::backend(device).usage().process_bytes;
    report_.seconds = seconds_since(started_) + earlier_seconds_;
  }

  void write_report() const {
    io::write_atomically(folder_ / "report.json", to_json(report_) + '\n');
  }

  void close_folder() const {
    if (options_.dry_run || !is_first()) return;
    write_report();
    if (report_.reason != StopReason::finished) return;
    for (size_t i = 0; i < recipe_.phases.size(); ++i)
      if (!recipe_.phases[i].best.empty())
        io::remove_directory_atomically(folder_ / best_checkpoint(i));
    remove_autosaves(folder_);  // the last: as long as they are there, --resume does the rest
  }

  /// Whether the run is over and its folder has neither a bundle nor a checkpoint of this run.
  [[nodiscard]] bool keeps_no_weights() const {
    if (options_.dry_run || !is_first() || report_.reason != StopReason::finished ||
        report_.exported)
      return false;
    const std::vector<std::string> automatic = automatic_checkpoints();
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (std::ranges::find(automatic, entry.path().filename().string()) == automatic.end() &&
          checkpoint::exists(entry.path()))
        return false;
    return true;
  }

  void run_learner(Model model) {
    LearnerOptions options = learner_options(recipe_, 0, of_phases_.front());
    options.folder = folder_;
    options.group = options_.group;
    options.callbacks = chosen_callbacks({});
    if (!options_.dry_run) {
      options.callbacks.insert(options.callbacks.begin(), position_);
      options.callbacks.push_back(autosave_);  // behind those whose states it saves
    }
    Learner learner(std::move(model), {}, std::move(options));
    print_.start(learner, report_.data, facts_.sample);
    if (from_) continue_run(learner);
    for (size_t i = position_->done().size(); i < recipe_.phases.size(); ++i) {
      run_phase(learner, i);
      if (report_.reason == StopReason::interrupted) return;
    }
    if (options_.dry_run) return;
    failure_->begin("");
    test_and_export(learner);
    learner.destroy();
  }

  // A checkpoint saved inside a fit is loaded by its phase, after the phase is set up as before.
  void continue_run(Learner& learner) {
    restore(from_->callbacks, {position_});
    report_.resumed_from = from_->name;
    report_.resumes = position_->resumes();
    report_.phases = position_->done();
    for (const PhaseReport& phase : report_.phases) earlier_seconds_ += phase.seconds;
    under_way_ = from_->unfinished;
    if (!under_way_) learner.load(from_->name);
    print_.continued(folder_, from_->name, position_->done().size(), under_way_);
  }

  void run_phase(Learner& learner, size_t index) {
    const PhaseOptions& phase = recipe_.phases[index];
    const memory::OutOfMemoryWatch watch({.setting = samples_path(recipe_, index)});
    PhaseReport result{.name = name_of(recipe_, index)};
    result.planned_peak_bytes = plan_.peak_bytes(index);
    if (const MemoryPlan* plan = plan_.of(index)) result.not_planned = plan->not_counted;
    const auto start = Clock::now();
    position_->begin(index);
    failure_->begin(name_of(recipe_, index));
    print_.phase_begin(index);
    const OpenData& data = checked_data(index);
    Experiment stage(result.name, learner,
                     {.out = options_.verbose ? options_.out : nullptr,
                      // The data are those of the recipe, and the next phase may read them.
                      .purge = {.clear_opt = phase.clear_opt, .clear_cache = false},
                      .call_sites = options_.call_sites});
    const FitResult fit = fit_phase(stage, learner, index, data);
    if (options_.dry_run) {
      const auto groups = std::ssize(learner.model().layer_groups());
      const SchedulePreview preview = preview_schedule(recipe_, index, data.facts, groups);
      print_.schedule(preview);
      result.schedule = preview.table;
    }
    result.epochs = fit.epochs;
    result.validations = fit.validations;
    result.samples_per_s = fit.samples_per_s();
    result.micro_batch = micro_batch_->take();
    result.overflows = fit.overflows;
    result.restored_epoch = fit.restored_epoch;
    result.restored_step = fit.restored_step;
    if (!options_.dry_run) result.stopped_by = stop_note_->stopped_by();
    if (fit.lr_find && !fit.lr_find->interrupted) result.lr_find = figures_of(*fit.lr_find);
    if (fit.reason == StopReason::interrupted) {
      report_.reason = fit.reason;
      autosave(learner);
    } else if (!options_.dry_run) {
      if (!phase.best.empty()) print_.best(phase.best, fit, best_->is_lost());
      report_.best_lost |= !phase.best.empty() && best_->is_lost();
      if (!phase.save.empty()) learner.save(phase.save);
    }
    if (holders_) holders_->snapshot("Before the purge of " + result.name);
    measure_phase(stage, data, result);
    if (!needed_after(index)) data_.close();
    // A resumed phase has epochs that a process before has trained.
    double of_epochs = 0;
    for (const EpochRow& row : fit.epochs) of_epochs += row.seconds;
    const double earlier = std::max(0.0, of_epochs - fit.seconds);
    earlier_seconds_ += earlier;
    result.seconds = seconds_since(start) + earlier;
    print_.phase(result);
    report_.phases.push_back(result);
    if (report_.reason == StopReason::interrupted) return;
    position_->add(std::move(result));
    autosave(learner);
    if (!is_interrupted()) return;  // between two phases
    report_.reason = StopReason::interrupted;
    clear_interrupt();
  }

  /// Whether a signal has come to any rank.
  [[nodiscard]] bool is_interrupted() const {
    const bool own = interrupt_requested();
    if (!options_.group) return own;
    const auto all = options_.group->exchange({own ? 1.0 : 0.0});
    return std::ranges::any_of(all, [](const auto& of_rank) { return of_rank.front() != 0; });
  }

  // Before the phase's Experiment, so that the phase leaves nothing where the next one has the same
  // data.
  [[nodiscard]] const OpenData& checked_data(size_t index) {
    const OpenData& data = open_data(recipe_, index, data_);
    check_data(recipe_, index, data);
    return data;
  }

  [[nodiscard]] bool needed_after(size_t index) const {
    if (report_.reason == StopReason::interrupted) return false;
    if (index + 1 < recipe_.phases.size()) return is_open(recipe_, index + 1, data_);
    return !options_.dry_run && evaluates_or_exports();
  }

  [[nodiscard]] bool is_on_host() const { return devices_.front().is_cpu(); }
  [[nodiscard]] int64_t data_bytes() const { return is_on_host() ? data_.bytes() : 0; }

  // Sets up the phase's weights, frozen layers and data, then trains or resumes it.
  FitResult fit_phase(Experiment& stage, Learner& learner, size_t index, const OpenData& data) {
    const PhaseOptions& phase = recipe_.phases[index];
    const bool under_way = std::exchange(under_way_, false);
    if (!under_way) prepare_weights(learner, phase);
    print_.frozen(learner.freeze_to(phase.freeze_to));
    print_.data(data.named.description);
    LearnerOptions options = learner_options(recipe_, index, data.facts);
    if (const auto padding = padding_of(data.named.splits.train, options))
      print_.line(padding->str());
    if (is_auto(options.recompute)) {
      options.recompute = plan_.recompute(index, std::move(options.recompute));
      if (!is_auto(options.recompute)) print_.recompute(options.recompute);
    }
    stage.emplace<DataScope>("data", learner, fit_setup(options, data.named.splits));
    return under_way ? resume(learner, index) : train(learner, index);
  }

  void autosave(Learner& learner) {
    if (options_.dry_run) return;
    autosave_->write([&](const std::string& name) { learner.save(name); });
  }

  FitResult train(Learner& learner, size_t index) {
    const PhaseOptions& phase = recipe_.phases[index];
    FitOptions fit{.lr = rate_of(recipe_, phase),
                   .schedule = phase.schedule,
                   .schedules = phase.schedules,
                   .callbacks = callbacks(index)};
    const MemoryPlan* plan = plan_.of(index);
    if (const std::string reason = plan_.why_unknown(index); !reason.empty())
      print_.line("the memory cannot be predicted: " + reason);
    if (plan && plan->in_micro_batches) {  // where batches that do not fit whole start
      print_.micro_batches(*plan);
      fit.first_micro_batch = plan->largest_micro_batch;
      fit.first_validation_micro_batch = plan->largest_validation_micro_batch;
    }
    if (options_.dry_run) return learner.fit(1, std::move(fit));
    return learner.fit(duration_of(phase), std::move(fit));
  }

  FitResult resume(Learner& learner, size_t index) {
    learner.load(from_->name);
    return learner.resume(callbacks(index));
  }

  void prepare_weights(Learner& learner, const PhaseOptions& phase) const {
    if (!phase.load.empty() && !options_.dry_run) learner.load(phase.load, {.with_opt = false});
    if (phase.reset_head) models::reset_head(learner.model());
  }

  [[nodiscard]] std::vector<CallbackPtr> callbacks(size_t index) {
    const std::string phase = name_of(recipe_, index), best = recipe_.phases[index].best;
    const std::string where = recipe_.phases[index].name.empty() ? phase : "phase " + phase;
    std::vector<CallbackPtr> all;
    if (recipe_.learner.stop_on_nan)
      all.push_back(std::make_shared<StopOnNan>(StopOnNanOptions{.fail = true, .where = where}));
    all.push_back(micro_batch_);
    all.push_back(stop_note_);
    all.push_back(failure_);
    const auto chosen = chosen_callbacks(index);
    all.insert(all.end(), chosen.begin(), chosen.end());
    all.push_back(std::make_shared<FoundRate>(
        options_.dry_run || !is_first() ? "" : phase + ".lr_find.csv",
        [this](const LrFindResult& found) { print_.found_rate(found); }));
    if (options_.dry_run) all.push_back(std::make_shared<TwoSteps>());
    if (!options_.dry_run) {
      if (!best.empty()) {
        best_ = std::make_shared<SaveBest>(
            SaveBestOptions{.monitor = {.figure = best}, .checkpoint = best_checkpoint(index)});
        all.push_back(best_);
      }
      all.push_back(std::make_shared<LiveLog>(folder_, phase));
      all.push_back(std::make_shared<CsvLog>(phase + ".csv"));  // behind it, see after_epoch there
      all.push_back(std::make_shared<StepsLog>(phase + ".steps.csv"));
    }
    if (options_.call_sites) all.push_back(std::make_shared<LeakWatch>());
    if (trace_) all.push_back(std::make_shared<NoteCategories>(*trace_));
    if (options_.out) all.push_back(std::make_shared<Progress>(*options_.out));
    if (options_.out && options_.verbose) all.push_back(peak_);
    return all;
  }

  /// Returns the callbacks that the recipe names; in a dry run only those that write nothing.
  [[nodiscard]] std::vector<CallbackPtr> chosen_callbacks(std::optional<size_t> phase) const {
    std::vector<CallbackPtr> all;
    for (auto& chosen : make_callbacks(recipe_, phase))
      if (!options_.dry_run)
        all.push_back(std::move(chosen.callback));
      else if (!writes(chosen.callback->facts()))
        all.push_back(in_dry_run(std::move(chosen.callback)));
    return all;
  }

  void measure_phase(Experiment& stage, const OpenData& data, PhaseReport& result) const {
    const ExperimentReport measured = stage.finish();
    result.data_bytes = result.peak_bytes = data_bytes();
    for (const c10::Device device : devices_) {
      const DeviceReport on_device = measured.on(device);
      result.consumed_bytes += on_device.consumed.allocated_bytes;
      result.peak_bytes += on_device.peak_bytes;
      result.reclaimed_bytes += on_device.reclaimed.allocated_bytes;
      result.residual_bytes += on_device.residual_bytes();
      result.fragmented_bytes += on_device.fragmented_bytes;
      result.allocator_retries += on_device.retries;
      if (devices_.size() > 1)
        result.devices.push_back({.device = device.str(),
                                  .peak_bytes = on_device.peak_bytes,
                                  .reclaimed_bytes = on_device.reclaimed.allocated_bytes,
                                  .residual_bytes = on_device.residual_bytes()});
    }
    if (is_on_host()) result.peak_bytes = std::max(result.peak_bytes, data.peak_bytes);
    add_ranks(result);
    for (const auto& leak : measured.leaks) {
      result.leaks.push_back({.phase = leak.phase,
                              .site = leak.site == memory::CallSite{} ? "" : leak.site.str(),
                              .blocks = leak.count,
                              .bytes = leak.bytes,
                              .youngest_steps = leak.youngest_steps,
                              .oldest_steps = leak.oldest_steps});
    }
    print_.memory(measured, *peak_, result.data_bytes);
  }

  /// Adds the figures of all ranks, where there are several.
  void add_ranks(PhaseReport& result) const {
    if (!options_.group) return;
    const auto all = options_.group->exchange({static_cast<double>(result.peak_bytes),
                                               static_cast<double>(result.reclaimed_bytes),
                                               static_cast<double>(result.residual_bytes)});
    for (size_t i = 0; i < all.size(); ++i)
      result.ranks.push_back({.rank = static_cast<int64_t>(i),
                              .peak_bytes = static_cast<int64_t>(all[i][0]),
                              .reclaimed_bytes = static_cast<int64_t>(all[i][1]),
                              .residual_bytes = static_cast<int64_t>(all[i][2])});
  }

  [[nodiscard]] bool evaluates_or_exports() const {
    return recipe_.test || !export_name(recipe_).empty();
  }

  // Both use the data of the last phase, which also gives the bundle its transforms and labels.
  void test_and_export(Learner& learner) {
    if (!evaluates_or_exports()) return;
    const PhaseOptions& last = recipe_.phases.back();
    const OpenData& data = open_data(recipe_, recipe_.phases.size() - 1, data_);
    // A resumed run that has trained already comes here with the settings of the first phase.
    const DataScope scope(learner, {.data = data.named.splits,
                                    .batch = batch_of(recipe_, last, data.facts),
                                    .micro_batch = MicroBatch{micro_batch_of(recipe_, last)}});
    if (recipe_.test) test(learner);
    export_bundle(learner);
  }

  // Figures of the validation split, on which a recipe is tuned, never go by the name of a test.
  void test(Learner& learner) {
    const bool has_test = learner.data().test != nullptr;
    if (!has_test && !learner.data().valid) return;
    const Split split = has_test ? Split::test : Split::valid;
    auto& result = has_test ? report_.test : report_.valid;
    const Evaluation figures = evaluate(learner, split);
    result = {.loss = figures.loss, .metrics = figures.metrics};
    print_.evaluation(*result, has_test, report_.generated);
  }

  /// Returns which texts the samples of the last phase are.
  [[nodiscard]] Tokens tokens_of_samples() const {
    const std::string& name = data_of(recipe_, recipe_.phases.back()).name;
    if (name == "text") return Tokens::vocabulary;
    const bool of_bytes = name == "text_folder" || name == "text_list" || name == "generated_texts";
    return of_bytes ? Tokens::bytes : Tokens::none;
  }

  // One pass over the split gives the figures and the samples with the highest losses.
  Evaluation evaluate(Learner& learner, Split split) {
    const DatasetPtr data = split == Split::test ? learner.data().test : learner.data().valid;
    const auto labels = data->labels();
    const bool has_losses = static_cast<bool>(tare::resolve(recipe_.learner.loss).per_sample);
    const MemoryPlan* plan = plan_.of(recipe_.phases.size() - 1);
    const int64_t first = plan && plan->in_micro_batches ? plan->largest_validation_micro_batch : 0;
    const bool classifies = !labels.empty() && labels.size() <= kMostClasses &&
                            tokens_of_samples() != Tokens::vocabulary;
    if (!classifies && !has_losses) return learner.validate(split, first);
    // Outputs that no page shows, such as those for each pixel, are not kept.
    EvaluatedPredictions both =
        learner.evaluate(split, {.losses = has_losses,
                                 .outputs = classifies || has_numbers_of_rows(*data),
                                 .first_micro_batch = first});
    if (classifies) report_.classification = classification_of(both.predictions, labels);
    if (report_.classification) {
      for (WorstSample& sample : report_.classification->worst) {
        SampleView view = view_of(*data, sample.index, tokens_of_samples());
        sample.name = std::move(view.name);
        sample.picture = std::move(view.picture);
        sample.text = std::move(view.text);
      }
      return both.figures;
    }
    report_.worst_rows = worst_rows_of(both.predictions, *data, tokens_of_samples());
    if (!report_.worst_rows.empty() && is_first())
      io::write_atomically(folder_ / report::kWorstRowsFile, report::csv_of(report_.worst_rows));
    return both.figures;
  }

  void export_bundle(Learner& learner) {
    if (export_name(recipe_).empty()) return;
    const auto path = folder_ / export_name(recipe_);
    const auto targets = data_of(recipe_, recipe_.phases.back()).targets;
    const memory::PeakScope memory(c10::kCPU);
    try {
      learner.export_to(path, {.targets = targets,
                               .weights = recipe_.export_weights,
                               .tolerance = recipe_.export_tolerance});
      for (const std::string& format : recipe_.export_formats)
        learner.export_to(folder_ / export_name(recipe_, format),
                          {.targets = targets,
                           .format = format,
                           .fold_norms = folds_norms(recipe_, format),
                           .opset = opset_of(recipe_, format)});
      if (!is_first()) return;
    } catch (const Error&) {  // the checkpoints stay for another attempt, the figures too
      report_.reason = StopReason::interrupted;
      measure_run();
      write_report();
      throw;
    }
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
    report_.exported = {
        .path = path, .bytes = bytes, .peak_bytes = memory.peak_above_start_bytes()};
    print_.exported(path, bytes);
    for (const std::string& format : recipe_.export_formats) {
      const auto file = folder_ / export_name(recipe_, format);
      print_.exported(file, static_cast<int64_t>(std::filesystem::file_size(file)));
    }
  }

  RecipeOptions recipe_;
  Origin origin_;
  DataFacts facts_;                   // of the recipe's data
  std::vector<DataFacts> of_phases_;  // of each phase's data
  RecipeData& data_;
  RunPlan plan_;
  const RunOptions& options_;
  RunPrinter print_;
  std::vector<c10::Device> devices_;  // each once
  std::filesystem::path folder_;
  Clock::time_point started_{};
  double earlier_seconds_ = 0;  // of processes before a resume: their phases and epochs
  std::shared_ptr<Position> position_ = std::make_shared<Position>(origin_);
  std::shared_ptr<Autosave> autosave_;
  std::shared_ptr<SaveBest> best_;  // of the phase that runs, where it has `best`
  std::shared_ptr<StopNote> stop_note_ = std::make_shared<StopNote>();
  std::shared_ptr<FailureLog> failure_ = std::make_shared<FailureLog>();
  std::shared_ptr<MemoryPeak> peak_ = std::make_shared<MemoryPeak>();
  std::shared_ptr<SmallestMicroBatch> micro_batch_ = std::make_shared<SmallestMicroBatch>();
  std::optional<CheckpointInfo> from_;
  bool under_way_ = false;  // the next phase continues inside its fit
  std::optional<AllocationRecording> trace_;
  std::optional<MemoryMonitor> holders_;
  RunReport report_;
};

}  // namespace

RunReport run_recipe(const RecipeOptions& recipe, const RunOptions& options) {
  const auto start = Clock::now();
  try {
    check_recipe(recipe);
    check_files(recipe);
    const memory::TrackerWatch tracker(open_devices(recipe.learner).front());
    RecipeData data;
    return Runner(resolve_recipe(recipe, data), data, options).run(start, tracker);
  } catch (...) {
    if (options.group) options.group->fail(std::current_exception());
    throw;
  }
}

}  // namespace tare
