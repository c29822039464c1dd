// Runs a fit on the meta device with batches that stand in for real ones.
#include "tare/plan/fit_trace.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/Contiguity.h>
#include <c10/core/MemoryFormat.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numbers>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/base/no_findings.h"
#include "tare/memory/phase.h"
#include "tare/model/held_weights.h"
#include "tare/parallel/rank_share.h"
#include "tare/plan/stage_watch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/estimate.h"
#include "tare/trace/flat_weights.h"
#include "tare/trace/host_trace.h"
#include "tare/trace/recorded_step.h"
#include "tare/trace/trace_stages.h"
#include "tare/train/fit_loop.h"
#include "tare/train/learner_state.h"
#include "tare/train/lr_search.h"
#include "tare/train/recorded_steps.h"
#include "tare/train/rng.h"

namespace tare {
namespace {

using plan::AllocationTrace;

/// A data set with batches of a given shape: real ones, or of meta tensors whose get() allocates
/// what the real one does on the host. What its loader has made ahead is alive meanwhile, and for
/// each thread of the loader what making a batch takes at most. For one epoch in order.
class SyntheticDataset final : public Dataset {
 public:
  /// `batches`: that it gives in all; 0: any number.
  SyntheticDataset(std::shared_ptr<const BatchAllocations> work, SplitShape shape, bool real,
                   int64_t batches)
      : work_(std::move(work)),
        shape_(shape),
        real_(real),
        left_(batches > 0 ? batches : std::numeric_limits<int64_t>::max()) {}

  [[nodiscard]] int64_t size() const override { return shape_.size(); }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override {
    return work_->data()->sample_shape();
  }
  [[nodiscard]] std::vector<std::string> labels() const override { return work_->data()->labels(); }
  [[nodiscard]] Batch first_sample() const override { return work_->sample(); }
  [[nodiscard]] Batch get(const BatchRequest&) const override {
    while (std::cmp_less_equal(ahead_.size(), shape_.ahead) && made_ < shape_.size() && left_ > 0)
      make();
    Batch next = std::move(ahead_.front());
    ahead_.pop_front();
    if (made_ == shape_.size() && ahead_.empty()) made_ = 0;  // another epoch may follow
    if (ahead_.empty()) making_.clear();                      // until then a thread may be at work
    return next;
  }

 private:
  void make() const {
    const int64_t samples = std::min(shape_.whole.samples, shape_.size() - made_);
    if (shape_.makers > 0 && made_ == 0)
      making_ = plan::hold(shape_.makers * plan::peak_above_results(work_->of(samples)),
                           real_ ? c10::kCPU : c10::kMeta);
    ahead_.push_back(real_ ? work_->read(samples) : of_allocations(work_->of(samples)));
    made_ += samples;
    --left_;
  }
  [[nodiscard]] Batch of_allocations(const AllocationTrace& work) const {
    std::vector<c10::DataPtr> held;
    const bool alone = shape_.counted && shape_.makers == 0;  // no thread makes it meanwhile
    const auto tensors = plan::play(alone ? work : results_only(work), held);
    return work_->named(tensors);
  }
  /// Returns the layout with which an input is sent to a card.
  [[nodiscard]] plan::Layout sent(plan::Layout input) const {
    if (shape_.halves && c10::isFloatingType(input.type)) input.type = c10::kBFloat16;
    if (shape_.channels_last && input.sizes.size() == 4 &&
        !c10::_compute_channels_last_contiguous_2d<int64_t>(input.sizes, input.strides))
      input.strides = c10::get_channels_last_strides_2d(input.sizes);
    return input;
  }
  [[nodiscard]] AllocationTrace results_only(const AllocationTrace& work) const {
    AllocationTrace results{.steps = {}, .results = work.results};
    for (size_t i = 0; i < work_->sample().inputs.size(); ++i)
      results.results[i] = sent(results.results[i]);
    for (const auto& step : work.steps) {
      if (step.result < 0) continue;
      results.steps.push_back(step);
      results.steps.back().block = results.steps.size() - 1;
    }
    return results;
  }

  std::shared_ptr<const BatchAllocations> work_;
  SplitShape shape_;
  bool real_;
  mutable std::deque<Batch> ahead_;  // the loader of a plan has one thread
  mutable int64_t made_ = 0;         // samples of the epoch
  mutable int64_t left_;             // batches
  mutable c10::DataPtr making_;
};

/// Notes in the trace what tensors are used for, while they are alive, and marks the attempts at
/// steps of a card.
class LedgerAnnotator final : public Callback {
 public:
  explicit LedgerAnnotator(bool marks_attempts) : marks_attempts_(marks_attempts) {}
  [[nodiscard]] std::string name() const override { return "plan"; }
  void follow(const LearnerState& state) { state_ = &state; }
  Action before_batch(FitContext&) override {
    if (marks_attempts_) plan::mark(plan::kAttemptBegins);
    return note();
  }
  // The backward of the loss is work of the last stage.
  Action after_loss(FitContext& context) override {
    if (state_->before_forward && context.loss.requires_grad())
      context.loss.register_hook([last = state_->stages.size() - 1](const at::Tensor& gradient) {
        plan::mark_stage(last);
        return gradient;
      });
    return note();
  }
  Action after_backward(FitContext&) override { return note(); }
  Action after_batch(FitContext&) override {
    if (marks_attempts_) plan::mark(plan::kAttemptEnds);
    return Action::proceed;
  }

 private:
  bool marks_attempts_;
  Action note() {
    const Ledger ledger = state_->ledger();
    plan::note(ledger);
    if (state_->before_forward) note_stages(*state_, ledger);
    return Action::proceed;
  }
  const LearnerState* state_ = nullptr;
};

/// Allocates what saving a checkpoint allocates on the host: the states of the random generators,
/// what the other ranks have, and a copy of each tensor that has gaps between its elements, one
/// after the other. A save in the background has copies from the beginning of the fit.
void save_state(const LearnerState& state) {
  const auto whole = state.whole_parameters();
  const std::vector<NamedTensor> optimizer = state.saved_optimizer(),
                                 generators = state.saved_rng();
  if (state.loop && state.loop->saves_in_background()) return;
  for (const auto& weight : state.model.state()) (void)weight.tensor.detach().contiguous();
  for (const auto& one : optimizer) (void)one.tensor.detach().contiguous();
}

/// Presents a fit that is done for a plan to the callbacks.
class PlannedView final : public LearnerView {
 public:
  explicit PlannedView(LearnerState& state) : state_(state) {}
  [[nodiscard]] Model& model() override { return state_.model; }
  [[nodiscard]] Optimizer& optimizer() override { return *state_.optimizer; }
  [[nodiscard]] c10::Device device() const override { return state_.device; }
  [[nodiscard]] const std::filesystem::path& folder() const override {
    return state_.options.folder;
  }
  [[nodiscard]] DatasetPtr training_data() const override { return state_.data.train; }
  /// Allocates what a save takes on the host.
  void save(const std::string&) override { save_state(state_); }
  void restore_weights(const std::string&) override { refuse("restore_weights"); }

 private:
  [[noreturn]] static void refuse(const char* call) {
    throw StateError(call, "in a fit that is planned", "call it in a fit of a Learner");
  }
  LearnerState& state_;
};

/// Saves after each batch, each epoch or both.
class SavedState final : public Callback {
 public:
  SavedState(SavingBatches batches, bool has_short_one, bool epochs)
      : batches_(batches), has_short_one_(has_short_one), epochs_(epochs) {}
  [[nodiscard]] std::string name() const override { return "saved_state"; }
  Action after_batch(FitContext& context) override {
    const bool is_short = has_short_one_ && context.step % context.batches == 0;
    if (is_short ? batches_.last : batches_.whole) save(context);
    return Action::proceed;
  }
  Action after_epoch(FitContext& context) override {
    if (epochs_) save(context);
    return Action::proceed;
  }

 private:
  static void save(const FitContext& context) { context.learner.save("planned"); }

  SavingBatches batches_;
  bool has_short_one_, epochs_;
};

/// Keeps what callbacks of the fit keep on a card.
class KeptOnCard final : public Callback {
 public:
  explicit KeptOnCard(const std::vector<CallbackPtr>& planned) {
    for (const auto& callback : planned) bytes_.push_back(callback->facts().bytes_on_card);
  }
  [[nodiscard]] std::string name() const override { return "kept_on_card"; }
  Action before_fit(FitContext&) override {
    for (const int64_t bytes : bytes_) held_.push_back(plan::hold(bytes));
    return Action::proceed;
  }
  Action after_fit(FitContext&) override {
    held_.clear();
    return Action::proceed;
  }

 private:
  std::vector<int64_t> bytes_;
  std::vector<c10::DataPtr> held_;
};

/// Returns whole batches that fill the loader twice, and the last batch of the epoch.
SplitShape split_shape(const PlanRequest& request, const BatchAllocations& work, int64_t batch,
                       int64_t part, bool training) {
  const LearnerOptions& options = request.options;
  const int64_t samples = work.data()->size();
  const int64_t size = std::min(batch, samples);
  const auto own = [&](int64_t count) {  // a rank without samples computes one that does not count
    const int64_t larger = request.rank < count % request.ranks ? 1 : 0;
    return std::min(count, std::max<int64_t>(1, count / request.ranks + larger));
  };
  const bool shards =
      training && request.ranks > 1 && parallel::shards_gradients(options.data_parallel);
  // See FitLoop::try_pipelined(); of a recorded step the outputs of all parts stay.
  const bool all = training && (options.stages.size() > 1 || options.graph);
  const auto shape = [&](int64_t count) {
    BatchShape found = batch_shape(own(count), part, all);
    const int64_t most = batch_shape((count - 1) / request.ranks + 1, part, all).parts;
    if (shards && count > 0) found.repeats = std::max<int64_t>(0, most - found.parts);
    return found;
  };
  // A card has the next batch already; on the host the queue of the loader is full.
  const int64_t queue = request.on_host() ? std::max(LoaderOptions{}.prefetch, options.workers) : 1;
  const int64_t ahead = options.workers > 0 ? queue : 0;
  // Two steps, while a thread of the loader is at work.
  const int64_t before = training && options.graph ? RecordedSteps::kEager : 0;
  int64_t whole = std::min(samples / size, before + ahead + (ahead > 0 ? 3 : 2));
  int64_t rest = training && options.drop_last.value_or(false) ? 0 : samples % size;
  // A fit may end before it has seen all batches, but a search before it may see more.
  if (training && request.batches > 0 && !request.search) {
    whole = std::min(whole, request.batches);
    if (request.batches <= samples / size) rest = 0;
  }
  return {.whole = shape(size),
          .last = shape(rest),
          .count = whole,
          .most_samples = parallel::most_samples_of_a_rank(samples, size, request.ranks),
          .ahead = ahead,
          .makers = request.on_host() ? options.workers : 0,
          .counted = request.on_host(),
          .halves = !request.on_host() && options.precision == "bf16-true",
          .channels_last = !request.on_host() && options.kernels.channels_last};
}

/// Returns the parts of a batch that a trace goes through.
Slicer slicer(const SplitShape& split) {
  return [split](const Batch& batch, int64_t) {
    const BatchShape& shape = batch.size() == split.whole.samples ? split.whole : split.last;
    std::vector<Batch> slices;
    for (int64_t i = 0, start = 0; i < shape.parts; ++i) {
      const int64_t samples = shape.smallest + (i < shape.larger ? 1 : 0);
      slices.push_back(shape.parts == 1 ? batch : batch.narrow(start, samples));
      start += samples;
    }
    slices.insert(slices.end(), static_cast<size_t>(shape.repeats), Batch(slices.back()));
    return slices;
  };
}

/// Whether the fit validates inside an epoch at some time.
bool validates_inside(const PlanRequest& request, int64_t batch) {
  const int64_t every = request.options.valid_every;
  if (every == 0 || !request.valid) return false;
  const SampleOrder order{.batch = batch,
                          .samples = request.train->data()->size(),
                          .drop_last = request.options.drop_last.value_or(false)};
  const int64_t in_epoch = order.batches();
  const int64_t last_epoch = std::numeric_limits<int64_t>::max() / in_epoch;
  const int64_t batches =
      request.batches > 0 ? request.batches : std::min(request.epochs, last_epoch) * in_epoch;
  return every % in_epoch != 0 && every < batches;  // else that of the epoch's end takes its place
}

/// Returns the steps between two validations of a trace: one in an epoch, after a step from which
/// the optimizer has its state and the loader is full.
int64_t valid_every(const FitShape& shape) {
  if (!shape.validates_inside) return 0;
  constexpr int64_t kFull = 3;
  int64_t batches = shape.train.count + (shape.train.last.samples > 0 ? 1 : 0);
  if (shape.batches > 0) batches = std::min(batches, shape.batches);
  return std::clamp<int64_t>(batches - 1, 1, kFull);
}

LearnerOptions options_for(const PlanRequest& request, const FitShape& shape,
                           std::shared_ptr<Callback> callback) {
  LearnerOptions options = request.options;
  options.batch = shape.train.whole.samples;
  options.micro_batch = shape.micro_batch;
  options.workers = 0;  // other threads are not in the scope
  options.callbacks = {std::move(callback)};
  SavingBatches saving = request.saving;
  bool saves_epochs = false;
  for (const CallbackPtr& of_the_fit : request.options.callbacks) {
    const CallbackFacts facts = of_the_fit->facts();
    saves_epochs = saves_epochs || facts.saves_epochs;
    if (facts.saves_steps) saving = {.whole = true, .last = true};
    if (auto planned = of_the_fit->planned()) options.callbacks.push_back(std::move(planned));
  }
  if (request.on_host() && (saving.whole || saving.last || saves_epochs))
    options.callbacks.push_back(
        std::make_shared<SavedState>(saving, shape.train.last.samples > 0, saves_epochs));
  if (!request.on_host())
    options.callbacks.push_back(std::make_shared<KeptOnCard>(request.options.callbacks));
  options.group.reset();
  options.progress = false;
  options.valid_every = valid_every(shape);
  options.stop_on_nan = false;
  options.sampling = LearnerOptions{}.sampling;  // batches of any samples take as much
  options.class_sampling = {};
  options.sample_weights.clear();
  options.group_by_length = false;
  if (is_auto(options.recompute)) options.recompute.clear();  // what it takes without
  if (request.on_host()) options.offload.clear();             // as a Learner on the CPU does
  return options;
}

Splits synthetic_splits(const PlanRequest& request, const FitShape& shape, bool real) {
  Splits data;
  data.train = std::make_shared<SyntheticDataset>(request.train, shape.train, real, shape.batches);
  if (shape.valid)
    data.valid = std::make_shared<SyntheticDataset>(request.valid, *shape.valid, real, 0);
  return data;
}

}  // namespace

BatchAllocations::BatchAllocations(DatasetPtr data, bool training)
    : data_(std::move(data)), training_(training), largest_(largest_samples(*data_)) {
  sample_ = on_meta(read(2).narrow(0, 1));  // what the first one sets up must not count
  two_ = record(2);
  three_ = record(3);
  if (largest_.size() > 2) return;  // two samples do not have the sizes of a batch
  if (!plan::same_steps(two_, three_)) return;
  const AllocationTrace five = record(5), guess = plan::extrapolate(two_, 2, three_, 3, 5);
  affine_ = plan::same_steps(five, guess) &&
            std::ranges::equal(five.steps, guess.steps, {}, &plan::HostStep::bytes,
                               &plan::HostStep::bytes);
}

Batch BatchAllocations::read(int64_t samples) const {
  std::vector<int64_t> indices(static_cast<size_t>(samples));
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = i < largest_.size() ? largest_[i]
                                     : (largest_.front() + static_cast<int64_t>(i)) % data_->size();
  return data_->get({.indices = indices, .seed = 0, .training = training_});
}

AllocationTrace BatchAllocations::record(int64_t samples) const {
  return plan::record([&] {
    const Batch batch = read(samples);
    return batch.tensors();
  });
}

AllocationTrace BatchAllocations::of(int64_t samples) const {
  return affine_ ? plan::extrapolate(two_, 2, three_, 3, samples) : record(samples);
}

namespace {

/// Allocates the tensors of a model anew, in the order in which Module::to() brings them to a card.
void bring_to_card(Model& model) {
  std::unordered_set<const c10::TensorImpl*> there;
  const auto bring = [&](at::Tensor tensor) {
    if (there.insert(tensor.unsafeGetTensorImpl()).second)
      tensor.set_data(at::empty_like(tensor.detach()));
  };
  model.module()->apply([&](torch::nn::Module& module) {
    for (const auto& parameter : module.named_parameters(/*recurse=*/false))
      bring(parameter.value());
    for (const auto& buffer : module.named_buffers(/*recurse=*/false)) bring(buffer.value());
    plan::flatten_weights(module);
  });
  for (const auto& weights : model.held())
    for (const HeldWeight& weight : weights->all()) bring(weight.scale);
}

/// Does to a trace what a graph does to a card.
class PlannedGraph final : public memory::DeviceGraph {
 public:
  explicit PlannedGraph(std::shared_ptr<plan::SharedByGraphs> shared)
      : shared_(std::move(shared)) {}
  void record(const std::function<void()>& work) override {
    const plan::RecordedStep step(*shared_, seeds_);
    work();
  }
  void replay() override {}

 private:
  std::shared_ptr<plan::SharedByGraphs> shared_;
  std::shared_ptr<plan::GraphSeeds> seeds_;
};

/// Does to a trace what LearnerState::compact() does to a card.
void compact(LearnerState& state, const std::function<void()>& meanwhile) {
  const std::vector<at::Tensor> of_optimizer = state.optimizer_state();
  {
    const plan::OffCard host;
    for (const at::Tensor& tensor : state.weights_and_state())
      tensor.set_data(at::empty_like(tensor.detach()));
    meanwhile();
  }
  plan::mark(plan::kCacheReturned);
  bring_to_card(state.model);
  for (const at::Tensor& tensor : of_optimizer) tensor.set_data(at::empty_like(tensor.detach()));
}

/// Returns a state with a new model, which is made and converted on the host as by a Learner.
std::unique_ptr<LearnerState> set_up_state(const PlanRequest& request, const Splits& data,
                                           const LearnerOptions& options, c10::Device device) {
  std::unique_ptr<LearnerState> state;
  {
    const plan::OffCard host;
    state = std::make_unique<LearnerState>(request.model(), data, options);
    state->set_up(device, stages_of(state->model, request, device));
  }
  if (!request.on_host()) bring_to_card(state->model);
  return state;
}

/// Returns the state of a Learner with synthetic data, whose values mean nothing: none of the
/// checks that look at values is made.
std::unique_ptr<LearnerState> planned_state(const PlanRequest& request, const FitShape& shape,
                                            const Splits& data, const LearnerOptions& options,
                                            c10::Device device) {
  auto state = set_up_state(request, data, options, device);
  // A scale for which no step is skipped. With the share of no part it makes a factor of 1, which
  // would take no product.
  if (state->scaler) state->scaler->restore(std::numbers::sqrt2, 0);
  state->checked_batch = true;
  state->checked_graph = true;
  state->for_card = !request.on_host();
  if (request.ranks > 1)
    state->planned_group = parallel::Group::planned(request.rank, request.ranks);
  if (state->for_card) {
    state->planned_compaction = [&other = *state](const auto& work) { compact(other, work); };
    state->planned_graph = [shared = std::make_shared<plan::SharedByGraphs>()] {
      return std::make_unique<PlannedGraph>(shared);
    };
  }
  state->slicers.train = slicer(shape.train);
  if (shape.valid) {
    state->slicers.valid = slicer(*shape.valid);
    state->planned_valid_samples = shape.valid->most_samples;
  }
  return state;
}

void fit(LearnerState& state, const FitShape& shape) {
  PlannedView view(state);
  FitPlan plan{.epochs = shape.epochs, .batches = shape.batches};
  plan.rates.assign(state.model.layer_groups().size(), state.base_rate());
  state.hold_frozen();
  FitLoop loop(state, view,
               {.work = {.plan = std::move(plan)},
                .callbacks = state.options.callbacks,
                .micro_batches = state.training_micro_batches(0),
                .validation = state.validation_micro_batches(0),
                .is_planned = true},
               "learner.plan");
  const log::NoFindings quiet;
  (void)loop.run();
}

/// Goes through the epochs of a search for the rate, which have all batches.
void search(LearnerState& state, const PlanRequest& request, const FitShape& shape,
            const CallbackPtr& annotator) {
  const DatasetPtr of_the_fit = state.data.train;
  state.data.train = std::make_shared<SyntheticDataset>(request.train, shape.train,
                                                        /*real=*/!state.device.is_meta(), 0);
  PlannedView view(state);
  state.hold_frozen();
  (void)search_rate(state, view,
                    {.options = *request.search,
                     .micro_batches = [&] { return state.training_micro_batches(0); },
                     .callbacks = {annotator},
                     .planned_epochs = shape.search_epochs},
                    "learner.plan");
  state.data.train = of_the_fit;
}

/// The data set is counted as in the ledger of a Learner.
void note_data(const std::vector<at::Tensor>& data_set) {
  Ledger ledger;
  for (const at::Tensor& tensor : data_set) ledger.add(Category::other, "data set", tensor);
  plan::note(ledger);
}

/// Runs from a new model to the end of its fit, and marks the part that counts.
void run_fit(const PlanRequest& request, const FitShape& shape, const Splits& data,
             const LearnerOptions& options, const std::shared_ptr<LedgerAnnotator>& annotator,
             c10::DeviceType device) {
  const auto state = planned_state(request, shape, data, options, device);
  annotator->follow(*state);
  std::optional<StageWatch> stages;
  if (request.cards.size() > 1) stages.emplace(*state);
  if (request.before) request.before(*state);
  plan::mark(plan::kCacheReturned);
  plan::mark("begin");
  plan::note(state->ledger());  // ranks may free what is there
  std::vector<c10::DataPtr> held;
  const std::vector<at::Tensor> data_set = plan::play(request.data_set, held, device);
  note_data(data_set);
  if (request.set_up) request.set_up(*state);
  if (request.search) search(*state, request, shape, annotator);
  fit(*state, shape);
  if (request.on_host() && request.saves_at_end) save_state(*state);
  plan::mark("end");
}

FitTrace counted(plan::Trace trace) {
  const plan::Section section{trace.at("begin"), trace.at("end")};
  return {std::move(trace), section};
}

}  // namespace

BatchShape batch_shape(int64_t samples, int64_t size, bool all) {
  if (samples <= size) return {.samples = samples, .smallest = samples};
  const int64_t count = (samples - 1) / size + 1, parts = all ? count : std::min<int64_t>(count, 3);
  return {.samples = samples,
          .parts = parts,
          .smallest = samples / count,
          .larger = std::min(samples % count, parts - 1)};
}

FitShape shape_of(const PlanRequest& request, int64_t batch, const PartSizes& parts) {
  FitShape shape{.train = split_shape(request, *request.train, batch, parts.train, true)};
  shape.micro_batch = std::min(parts.train, shape.train.whole.samples);
  if (request.valid) shape.valid = split_shape(request, *request.valid, batch, parts.valid, false);
  shape.validates_inside = validates_inside(request, batch);
  // The first step makes the optimizer's state on a card: with one whole batch in an epoch, none
  // has the state beside it until the next epoch.
  if (shape.train.count < 2) shape.search_epochs = 2;
  // The short batch at the end of an epoch is recorded when it has come so often.
  if (request.options.graph) shape.search_epochs = RecordedSteps::kEager + 1;
  if (shape.search_epochs > 1) shape.epochs = std::min(request.epochs, shape.search_epochs);
  shape.batches = request.batches;
  return shape;
}

parallel::Stages stages_of(const Model& model, const PlanRequest& request, c10::Device device) {
  std::vector<int64_t> capacities;
  for (const plan::Target& card : request.cards) capacities.push_back(card.capacity_bytes);
  const auto& stages = request.options.stages;
  return {model, stages, std::vector(stages.size(), device), capacities, "plan"};
}

FitTrace trace_fit(const PlanRequest& request, int64_t batch, const PartSizes& parts) {
  if (request.on_host() && request.options.precision != "fp32")
    throw plan::NotPlannable("precision " + request.options.precision,
                             "takes copies on the host that meta tensors do not show",
                             "plan it with fp32 for a bound");
  const FitShape shape = shape_of(request, batch, parts);
  const auto annotator = std::make_shared<LedgerAnnotator>(!request.on_host());
  const LearnerOptions options = options_for(request, shape, annotator);
  const Splits data = synthetic_splits(request, shape, false);
  const auto run = [&] { run_fit(request, shape, data, options, annotator, c10::kMeta); };
  return as_refused([&] { return counted(plan::trace(run, request.machine)); });
}

FitTrace trace_real_fit(const PlanRequest& request, const FitShape& shape) {
  const auto annotator = std::make_shared<LedgerAnnotator>(/*marks_attempts=*/false);
  const LearnerOptions options = options_for(request, shape, annotator);
  const Splits data = synthetic_splits(request, shape, true);
  return counted(
      plan::host_trace([&] { run_fit(request, shape, data, options, annotator, c10::kCPU); }));
}

}  // namespace tare
