// TensorBoard: losses, rates, figures, memory and weights of a fit as an event file of TensorBoard.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Configures TensorBoard.
struct TensorBoardOptions {
  /// Relative paths are below the Learner's folder.
  std::filesystem::path folder = "tensorboard";
  /// Steps between two that are written; 0: every step at first, and half as many after each 1,000.
  int64_t every = 0;
  bool histograms = false;  ///< also writes a histogram of each parameter after each epoch
  /// Whether it writes a histogram of each gradient of each epoch's first batch, for which it waits
  /// for the device.
  bool gradients = false;
  /// Pictures of each epoch's first batch to write, as the model gets them; 0: none.
  int64_t images = 0;
};
void visit_fields(auto& visit, TensorBoardOptions& o) {
  visit("folder", o.folder);
  visit("every", o.every, config::at_least(0));
  visit("histograms", o.histograms);
  visit("gradients", o.gradients);
  visit("images", o.images, config::at_least(0));
}

/// Writes `folder`/events.out.tfevents.tare, which TensorBoard shows. Steps: train/loss and
/// train/lr. Epochs: epoch/train_loss, epoch/valid_loss where there is a validation, epoch/NAME for
/// each metric and each column that callbacks before it have added, memory/allocated_mib at the
/// epoch's end and memory/peak_mib, both of all tensors on the Learner's device, and
/// throughput/samples_per_s of the training. Validations inside an epoch: valid/loss, and
/// valid/NAME for each metric. With `histograms` also weights/NAME, with `gradients`
/// gradients/NAME, with `images` train/images, and NAME of each text that callbacks before it have
/// made. The step of a value is the number of optimizer steps, counted over all fits with the
/// object.
///
/// Losses on a device are read in groups. The first fit begins the file anew, a resumed one cuts
/// off what was written beyond its checkpoint. A write that fails is logged as a warning, and the
/// training continues.
class TensorBoard final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit TensorBoard(TensorBoardOptions options = {});
  ~TensorBoard() override;

  [[nodiscard]] std::string name() const override;
  Action before_fit(FitContext& context) override;
  Action before_epoch(FitContext& context) override;
  Action before_batch(FitContext& context) override;
  Action after_backward(FitContext& context) override;
  Action after_step(FitContext& context) override;
  Action before_validate(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override;
  /// Throws ConfigError for `images` of data that are none.
  void check_data(const Batch& sample) const override;
  void purge() override;
  void account(Ledger& ledger) const override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  struct Parts;

  TensorBoardOptions options_;
  std::unique_ptr<Parts> parts_;  // state() writes what waits, so that it has a place in the file
};

}  // namespace tare
