// Thins steps out, and reads their losses in groups.
#include "tare/callback/step_samples.h"

#include <ATen/ops/empty.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace tare {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void StepSamples::begin(const FitContext& context) {
  samples_.clear();
  unread_ = 0;
  if (context.step == 0) base_ = last_;
  const c10::Device device = context.learner.device();
  if (!device.is_cpu())
    losses_ = at::empty({kUnread}, at::TensorOptions(c10::kDouble).device(device));
}

bool StepSamples::add(const FitContext& context) {
  if (context.turn + 1 < context.turns) return false;  // a sample is of a whole step
  last_ = base_ + context.step;
  if (last_ % (every_ > 0 ? every_ : stride_) != 0) return false;
  if (++taken_ % kEach == 0) stride_ *= 2;
  const bool reads = !losses_.defined() || context.loss.device().is_cpu();
  if (reads) read();  // of the samples before
  samples_.push_back({.step = last_,
                      .epoch = context.row.epoch,
                      .loss = reads ? context.loss_value() : 0,
                      .lr = context.lr,
                      .time = now()});
  if (!reads) losses_.select(0, unread_++).copy_(context.loss.detach(), /*non_blocking=*/true);
  return unread_ == kUnread || std::ssize(samples_) >= kUnread;
}

void StepSamples::read() {
  if (unread_ == 0) return;
  const at::Tensor losses = losses_.narrow(0, 0, unread_).to(c10::kCPU);
  const size_t first = samples_.size() - static_cast<size_t>(unread_);
  for (size_t i = 0; i < static_cast<size_t>(unread_); ++i)
    samples_[first + i].loss = losses.const_data_ptr<double>()[i];
  unread_ = 0;
}

std::vector<StepSample> StepSamples::take() {
  read();
  return std::exchange(samples_, {});
}

void StepSamples::release() {
  losses_.reset();
  if (unread_ > 0) samples_.clear();
  unread_ = 0;
}

void StepSamples::account(Ledger& ledger, const std::string& name) const {
  ledger.add(Category::other, name, losses_);
}

nlohmann::json StepSamples::state() const {
  return {{"stride", stride_}, {"taken", taken_}, {"base", base_}, {"last", last_}};
}

bool StepSamples::load(const nlohmann::json& state) {
  if (!state.is_object()) return false;
  for (const char* key : {"stride", "taken", "base", "last"})
    if (!state.contains(key) || !state[key].is_number_integer() || state[key] < 0) return false;
  if (state["stride"] < 1) return false;
  stride_ = state["stride"].get<int64_t>();
  taken_ = state["taken"].get<int64_t>();
  base_ = state["base"].get<int64_t>();
  last_ = state["last"].get<int64_t>();
  samples_.clear();
  unread_ = 0;
  return true;
}

}  // namespace tare
