// Writes what TensorBoard shows of a fit.
#include "tare/callback/tensorboard.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tare/base/error.h"
#include "tare/callback/event_file.h"
#include "tare/callback/growing_file.h"
#include "tare/callback/registry.h"
#include "tare/callback/step_samples.h"
#include "tare/callback/train_seconds.h"
#include "tare/memory/backend.h"

namespace tare {
namespace {

constexpr const char* kFile = "events.out.tfevents.tare";
constexpr double kMiB = 1 << 20;
constexpr int64_t kBuckets = 64;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Whether the values of a parameter are its weights: not so of those held as E4M3 with scales.
bool has_values(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return tensor.numel() > 0 && (type == c10::kFloat || type == c10::kDouble || type == c10::kHalf ||
                                type == c10::kBFloat16);
}

}  // namespace

struct TensorBoard::Parts {
  explicit Parts(int64_t every) : samples(every) {}

  void write_steps() {
    for (const StepSample& sample : samples.take())
      file.add(event_record(sample.time, sample.step,
                            {{"train/loss", sample.loss}, {"train/lr", sample.lr}}));
  }

  void write_epoch(const FitContext& context) {
    const EpochRow& row = context.row;
    std::vector<EventScalar> scalars{{"epoch/train_loss", row.train_loss}};
    if (!std::isnan(row.valid_loss)) scalars.push_back({"epoch/valid_loss", row.valid_loss});
    for (const MetricValue& metric : row.metrics)
      scalars.push_back({"epoch/" + metric.name, metric.value});
    const auto device = context.learner.device();
    const int64_t allocated = memory::backend(device).usage().allocated_bytes;
    scalars.push_back({"memory/allocated_mib", static_cast<double>(allocated) / kMiB});
    if (peak)
      scalars.push_back({"memory/peak_mib", static_cast<double>(peak->peak_bytes()) / kMiB});
    if (const auto rate = seconds.samples_per_s(context))
      scalars.push_back({"throughput/samples_per_s", *rate});
    file.add(event_record(now(), samples.last_step(), scalars));
  }

  /// Writes the figures of a validation inside an epoch.
  void write_validation(const EpochRow& row) {
    std::vector<EventScalar> scalars{{"valid/loss", row.valid_loss}};
    for (const MetricValue& metric : row.metrics)
      scalars.push_back({"valid/" + metric.name, metric.value});
    file.add(event_record(now(), samples.last_step(), scalars));
  }

  void write_texts(const FitContext& context) {
    for (const EpochText& text : context.texts)
      file.add(event_record(now(), samples.last_step(), text.name, text.text));
  }

  void write_weights(Model& model) {
    for (const Parameter& parameter : model.parameters())
      if (has_values(parameter.tensor))
        file.add(event_record(now(), samples.last_step(), "weights/" + parameter.name,
                              histogram_of(parameter.tensor, kBuckets)));
  }

  void write_gradients(const Optimizer& optimizer) {
    for (const ParameterGroup& group : optimizer.groups())
      for (const Parameter& parameter : group.parameters)
        if (const at::Tensor& gradient = parameter.tensor.grad(); gradient.defined())
          file.add(event_record(now(), samples.last_step(), "gradients/" + parameter.name,
                                histogram_of(gradient, kBuckets)));
  }

  StepSamples samples;
  GrowingFile file;
  TrainSeconds seconds;
  std::optional<memory::PeakScope> peak;  // of the epoch under way
};

TensorBoard::TensorBoard(TensorBoardOptions options)
    : options_(std::move(options)), parts_(std::make_unique<Parts>(options_.every)) {
  config::validate(options_, "tensorboard");
}

TensorBoard::~TensorBoard() = default;

std::string TensorBoard::name() const { return "tensorboard:" + options_.folder.string(); }

CallbackFacts TensorBoard::facts() const {
  return {.files = {options_.folder.string()},
          .logs = true,
          .needs_gradients = options_.gradients,
          .only_writes = true,
          .bytes_on_card = StepSamples::kBytesOnCard};
}

void TensorBoard::check_data(const Batch& sample) const {
  if (options_.images == 0) return;
  const at::Tensor input = sample.input();
  const bool pictures = input.defined() && input.dim() == 4 &&
                        (input.size(1) == 1 || input.size(1) == 3) &&
                        (input.is_floating_point() || input.scalar_type() == c10::kByte);
  if (!pictures)
    throw ConfigError("tensorboard", "images", "needs data that are pictures in grey or RGB",
                      "0 for other data", std::to_string(options_.images));
}

Action TensorBoard::before_fit(FitContext& context) {
  if (const DatasetPtr data = context.learner.training_data(); options_.images > 0 && data)
    check_data(data->first_sample());
  parts_->samples.begin(context);
  parts_->file.open(context.learner.folder() / options_.folder / kFile, event_head(now()));
  return Action::proceed;
}

Action TensorBoard::before_epoch(FitContext& context) {
  parts_->seconds.before_epoch();
  parts_->peak.emplace(context.learner.device());
  return Action::proceed;
}

Action TensorBoard::before_batch(FitContext& context) {
  if (options_.images == 0 || context.batch > 0) return Action::proceed;
  const at::Tensor all = context.data.input();
  const at::Tensor first = all.narrow(0, 0, std::min(options_.images, all.size(0)));
  parts_->file.add(
      event_record(now(), parts_->samples.last_step(), "train/images", image_of(first)));
  return Action::proceed;
}

Action TensorBoard::after_backward(FitContext& context) {
  if (options_.gradients && context.batch == 0)
    parts_->write_gradients(context.learner.optimizer());
  return Action::proceed;
}

Action TensorBoard::after_step(FitContext& context) {
  if (!parts_->samples.add(context)) return Action::proceed;
  parts_->write_steps();
  parts_->file.write(io::Flush::no);
  return Action::proceed;
}

Action TensorBoard::before_validate(FitContext& context) {
  parts_->seconds.before_validate(context);
  return Action::proceed;
}

Action TensorBoard::after_validate(FitContext& context) {
  if (!context.inside_epoch) return Action::proceed;
  parts_->write_steps();
  parts_->write_validation(context.row);
  parts_->file.write(io::Flush::no);
  return Action::proceed;
}

Action TensorBoard::after_epoch(FitContext& context) {
  parts_->write_steps();
  parts_->write_epoch(context);
  parts_->write_texts(context);
  if (options_.histograms) parts_->write_weights(context.learner.model());
  parts_->file.write(io::Flush::yes);
  parts_->peak.reset();
  return Action::proceed;
}

Action TensorBoard::after_fit(FitContext&) {
  parts_->peak.reset();
  parts_->write_steps();
  parts_->file.write(io::Flush::yes);
  parts_->samples.release();
  return Action::proceed;
}

void TensorBoard::purge() { parts_->samples.release(); }

void TensorBoard::account(Ledger& ledger) const { parts_->samples.account(ledger, "tensorboard"); }

std::string TensorBoard::state() const {
  parts_->write_steps();
  parts_->file.write(io::Flush::yes);
  return nlohmann::json{{"bytes", parts_->file.bytes()}, {"steps", parts_->samples.state()}}.dump();
}

void TensorBoard::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("bytes") || !value["bytes"].is_number_integer() ||
      !value.contains("steps") || !parts_->samples.load(value["steps"]))
    throw FormatError("tensorboard.load_state", name(), "bytes, steps",
                      "are not in the checkpoint's state");
  parts_->file.continue_at(value["bytes"].get<int64_t>());
}

namespace callbacks {
void add_tensorboard(Registry& all) {
  all.add<TensorBoardOptions>(
      "tensorboard", "writes losses, figures, memory and weights for TensorBoard",
      [](const TensorBoardOptions& o) { return std::make_shared<TensorBoard>(o); });
}
}  // namespace callbacks

}  // namespace tare
