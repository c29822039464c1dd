// Copies the state of a fit, and writes the copies on a thread.
#include "tare/train/background_save.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <chrono>
#include <exception>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/averaged_weights.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/model/stored.h"
#include "tare/train/rng.h"

namespace tare {
namespace {

constexpr const char* kModel = "model";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kExtra = "extra";

}  // namespace

void BackgroundSave::prepare(const std::vector<CallbackPtr>& callbacks) {
  if (state_.device.is_meta() && state_.for_card) return;
  const memory::Phase phase(memory::PhaseKind::save);
  try {
    const auto whole = state_.whole_parameters();
    made_.clear();
    std::vector<NamedTensor> model = stored_state(state_.model);
    std::vector<NamedTensor> optimizer = state_.saved_optimizer();
    std::vector<NamedTensor> generators = state_.saved_rng();
    if (!state_.is_first_rank()) return;  // the other ranks give what this one writes
    copy(kModel, model);
    copy(kOptimizer, optimizer);
    copy(kExtra, generators);
    for (const auto& callback : callbacks) {
      const auto* const averaged = dynamic_cast<const AveragedWeights*>(callback.get());
      std::vector<NamedTensor> tensors = averaged ? averaged->averages() : callback->tensors();
      copy(callback->name(), tensors);
    }
    made_.clear();
  } catch (const OutOfMemory& error) {
    throw error.with_advice(
        "the copies of save_in_background do not fit beside the training: set it to false, or "
        "raise the budget");
  }
}

void BackgroundSave::start(const std::string& name, const SaveDone& done) {
  finish();
  const memory::Phase phase(memory::PhaseKind::save);
  const auto path = state_.options.folder / io::checked_name(name, "checkpoint");
  made_.clear();
  const auto whole = state_.together([&] { return state_.whole_parameters(); });
  checkpoint::Contents contents = state_.together([&] {
    return state_.contents([this](const std::string& part, std::vector<NamedTensor>& tensors) {
      copy(part, tensors);
    });
  });
  made_.clear();
  ++state_.saves;
  if (!state_.is_first_rank()) {  // it has given what rank 0 writes
    if (done) done({});
    return;
  }
  // Where the system has no thread to give, the write is done when its result is taken.
  write_ = std::async(std::launch::async | std::launch::deferred,
                      [path, contents = std::move(contents)]() mutable {
                        const checkpoint::Contents own = std::move(contents);  // ends here
                        checkpoint::save(path, own);
                      });
  done_ = done;
}

void BackgroundSave::poll() {
  if (write_.valid() && write_.wait_for(std::chrono::seconds(0)) != std::future_status::timeout)
    take_result();
}

void BackgroundSave::finish() {
  if (write_.valid()) take_result();
}

void BackgroundSave::take_result() {
  std::exception_ptr error;
  try {
    write_.get();
  } catch (...) {  // it is handed on
    error = std::current_exception();
  }
  if (const SaveDone done = std::exchange(done_, {})) return done(error);
  if (error) std::rethrow_exception(error);
}

void BackgroundSave::copy(const std::string& part, std::vector<NamedTensor>& tensors) {
  const c10::AutoGradMode no_grad(false);
  for (auto& [name, tensor] : tensors) tensor = copied(part + '/' + name, tensor);
}

at::Tensor BackgroundSave::copied(const std::string& name, const at::Tensor& source) {
  if (!source.defined() || source.layout() != c10::kStrided) return source;  // no file takes it
  const View view{source.storage().unsafeGetStorageImpl(),
                  source.storage_offset(),
                  source.scalar_type(),
                  source.is_neg(),
                  source.sizes().vec(),
                  source.strides().vec()};
  const auto made = made_.find(view);
  if (made != made_.end()) return made->second;
  at::Tensor& copy = copies_[name];
  if (!copy.defined() || copy.sizes() != source.sizes() ||
      copy.scalar_type() != source.scalar_type()) {
    copy.reset();
    const c10::Device device = source.is_meta() ? c10::kMeta : c10::kCPU;
    copy = at::empty(source.sizes(), at::TensorOptions(source.scalar_type()).device(device));
  }
  copy.copy_(source.detach());
  made_.emplace(view, copy);
  return copy;
}

void BackgroundSave::account(Ledger& ledger) const {
  for (const auto& [name, copy] : copies_) ledger.add(Category::workspace, "saved copy", copy);
}

}  // namespace tare
