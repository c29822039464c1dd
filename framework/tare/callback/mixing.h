// Mixes the samples of a training batch with each other: the callbacks mixup and cutmix.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Configures Mixup and Cutmix.
struct MixingOptions {
  double alpha = 1;  ///< of the shares, drawn from Beta(alpha, alpha), > 0; small: mixes little
  double probability = 1;  ///< that a batch is mixed, in [0, 1]
  bool operator==(const MixingOptions&) const = default;
};
void visit_fields(auto& visit, MixingOptions& o) {
  visit("alpha", o.alpha, config::above(0));
  visit("probability", o.probability, config::between(0, 1));
}

/// Holds how much of a batch stays, and for cutmix which box of the pictures is replaced.
struct Mix {
  double share = 1;  ///< of a sample's own values and label; the sample before it has the rest
  int64_t top = 0, left = 0, bottom = 0, right = 0;  ///< of the box; the ends do not belong to it
};

/// Is the base of callbacks that mix each sample of a training batch with the one before it, the
/// first with the last, and mix their labels likewise: the target becomes the probabilities of the
/// classes, float [batch, classes], which the loss cross_entropy takes. The mean of a batch is then
/// over its samples. Validation sees what it always sees. One share is drawn for a batch, from
/// LibTorch's default generator of the host, so that a resumed fit continues as it would have.
class BatchMixing : public Callback {
 public:
  /// Throws ConfigError for an option out of its range. `name`: of the callback. `classes`: >= 2;
  /// 0: as many as the training data has names of classes.
  BatchMixing(const char* name, const MixingOptions& options, int64_t classes);
  std::string name() const override { return name_; }
  /// Sets the number of classes, >= 2, as the constructor does.
  void set_classes(int64_t classes) { classes_ = classes; }
  /// Whether only pictures [batch, channels, height, width] can be mixed.
  [[nodiscard]] virtual bool needs_pictures() const = 0;
  /// Returns inputs [batch, ...] mixed, in a new tensor.
  [[nodiscard]] virtual at::Tensor mixed(const at::Tensor& input, const Mix& mix) const = 0;

  /// Throws ConfigError for several inputs or targets, an input that is not floating, and targets
  /// that are no classes.
  void check_data(const Batch& sample) const override;
  /// Throws ConfigError where the number of classes is not known.
  Action before_fit(FitContext& context) override;
  /// Replaces input and target of the batch. Throws as check_data(), and ConfigError for labels out
  /// of range, which are looked at in each batch on the host and in the first one on a card.
  Action before_batch(FitContext& context) override;

 protected:
  /// Draws what happens to a batch of inputs from the seed.
  [[nodiscard]] virtual Mix draw(uint64_t seed, const at::Tensor& input) const = 0;
  /// Returns a share drawn from Beta(alpha, alpha).
  [[nodiscard]] double draw_share(uint64_t seed) const;
  /// Makes `planned`, of the same class, do what this callback does without drawing anything.
  [[nodiscard]] CallbackPtr as_planned(std::shared_ptr<BatchMixing> planned) const;
  [[nodiscard]] const MixingOptions& options() const { return options_; }  ///< returns the options

 private:
  [[nodiscard]] at::Tensor probabilities(const at::Tensor& target) const;
  void check_labels(const at::Tensor& target);

  const char* name_;
  MixingOptions options_;
  int64_t classes_;
  bool is_planned_ = false;
  bool checked_ = false;  // the labels of a batch
};

/// Adds up each sample and the one before it, weighted by the share: Zhang et al. 2018, mixup:
/// Beyond Empirical Risk Minimization; as torchvision's v2.MixUp.
class Mixup final : public BatchMixing {
 public:
  /// Throws as BatchMixing.
  explicit Mixup(const MixingOptions& options = {.alpha = 0.2}, int64_t classes = 0)
      : BatchMixing("mixup", options, classes) {}
  bool needs_pictures() const override { return false; }
  CallbackPtr planned() const override { return as_planned(std::make_shared<Mixup>(options())); }
  at::Tensor mixed(const at::Tensor& input, const Mix& mix) const override;

 protected:
  Mix draw(uint64_t seed, const at::Tensor& input) const override;
};

/// Replaces a box of each picture by that of the one before it, and mixes the labels by its area:
/// Yun et al. 2019, CutMix; as torchvision's v2.CutMix.
class Cutmix final : public BatchMixing {
 public:
  /// Throws as BatchMixing.
  explicit Cutmix(const MixingOptions& options = {}, int64_t classes = 0)
      : BatchMixing("cutmix", options, classes) {}
  bool needs_pictures() const override { return true; }
  CallbackPtr planned() const override { return as_planned(std::make_shared<Cutmix>(options())); }
  at::Tensor mixed(const at::Tensor& input, const Mix& mix) const override;

 protected:
  Mix draw(uint64_t seed, const at::Tensor& input) const override;
};

}  // namespace tare
