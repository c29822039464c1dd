// Computes the parts of a batch on several devices, and brings their gradients together.
#include "tare/learner/replicas.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/runtime/device_name.h"
#include "tare/train/micro_batches.h"

namespace tare {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr const char* kWhere = "replicated";

/// Is a loss whose gradients are known when it is made.
struct Known : torch::autograd::Function<Known> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& loss,
                            at::TensorList gradients, at::TensorList /*parameters*/) {
    ctx->save_for_backward(gradients.vec());
    return loss.clone();
  }
  static Tensors backward(torch::autograd::AutogradContext* ctx, const Tensors& factor) {
    Tensors all = ctx->get_saved_variables();
    const size_t count = all.size();
    all.insert(all.begin(), count + 1, at::Tensor());  // of the loss and the gradients: none
    for (size_t i = count + 1; i < all.size(); ++i)
      if (all[i].defined()) all[i] = all[i].mul(factor.front());
    return all;
  }
};

at::Tensor loss_of(const ResolvedLoss& loss, const Outputs& outputs, const Batch& batch) {
  if (loss.batch_mean) return loss.batch_mean(outputs, batch);
  if (outputs.size() != 1 || batch.targets.size() != 1)
    throw ConfigError(kWhere, "loss", "takes one output and one target",
                      "Loss::of_batch() for several of them",
                      std::to_string(outputs.size()) + " outputs and " +
                          std::to_string(batch.targets.size()) + " targets");
  return loss.mean(outputs.front(), batch.target());
}

Batch moved(const Batch& batch, c10::Device device) {
  Tensors tensors = batch.tensors();
  for (at::Tensor& one : tensors)
    if (one.defined() && !one.is_meta()) one = one.to(device, /*non_blocking=*/true);
  return batch.with(tensors);
}

/// Brings parameters and buffers to those of `model`, also in dtype and layout.
void copy_into(Model& copy, Model& model, c10::Device device) {
  const c10::AutoGradMode no_grad(false);
  const auto to = copy.state(), from = model.state();
  if (to.size() != from.size())
    throw ShapeError(kWhere, std::to_string(from.size()) + " parameters and buffers of the model",
                     std::to_string(to.size()) + " of its copy");
  for (size_t i = 0; i < to.size(); ++i) {
    at::Tensor tensor = to[i].tensor;
    const at::Tensor& source = from[i].tensor;
    if (tensor.sizes() != source.sizes())
      throw ShapeError(kWhere, from[i].name + ' ' + c10::str(source.sizes()) + " of the model",
                       c10::str(tensor.sizes()) + " of its copy");
    if (tensor.scalar_type() != source.scalar_type() || tensor.strides() != source.strides() ||
        tensor.device() != device)
      tensor.set_data(at::empty_like(source.detach(), source.options().device(device)));
    tensor.copy_(source, /*non_blocking=*/true);
  }
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    at::Tensor parameter = copy.parameters()[i].tensor;
    parameter.set_requires_grad(model.parameters()[i].tensor.requires_grad());
  }
  copy.train(model.is_training());
}

class Replicas {
 public:
  Replicas(std::function<Model()> make, std::vector<c10::Device> devices, ResolvedLoss loss)
      : make_(std::move(make)), devices_(std::move(devices)), loss_(std::move(loss)) {}

  StepResult step(Model& model, const Batch& batch) {
    std::vector<Model> planned;  // of a plan, whose tensors are on no device
    const bool is_plan = model.device().is_meta();
    if (!is_plan && model.device() != devices_.front())
      throw ConfigError(kWhere, "devices", "begin with another device than that of the Learner",
                        model.device().str() + " first", devices_.front().str());
    std::vector<Model>& copies = is_plan ? planned : copies_;
    while (copies.size() + 1 < devices_.size()) copies.push_back(make_());
    std::vector<Model*> models{&model};
    for (size_t i = 0; i < copies.size(); ++i) {
      copy_into(copies[i], model, is_plan ? model.device() : devices_[i + 1]);
      models.push_back(&copies[i]);
    }
    return compute(models, batch);
  }

  [[nodiscard]] double counted(const Batch& batch) const {
    if (loss_.batch_mean)
      return loss_.batch_counted ? loss_.batch_counted(batch) : static_cast<double>(batch.size());
    if (batch.targets.empty()) return static_cast<double>(batch.size());
    return tare::counted(loss_, batch.target()).value_or(static_cast<double>(batch.size()));
  }
  void account(Ledger& all) const {
    for (const Model& copy : copies_) copy.account(all, Category::other, Category::other);
  }

 private:
  StepResult compute(const std::vector<Model*>& models, const Batch& batch) const {
    const auto count = static_cast<int64_t>(models.size());
    auto parts = parts_of(slices_of(batch, (batch.size() - 1) / count + 1),
                          [this](const Batch& part) { return counted(part); });
    const c10::Device first = models.front()->device();
    Tensors losses;
    std::vector<Model*> counting;  // with a loss; the others have no label that counts
    std::vector<Outputs> outputs;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Batch part = moved(parts[i].batch, models[i]->device());
      outputs.push_back(models[i]->forward(part));
      if (parts[i].share == 0) continue;
      losses.push_back(loss_of(loss_, outputs.back(), part).mul(parts[i].share));
      counting.push_back(models[i]);
    }
    at::Tensor loss = losses.front().detach().to(first);
    for (size_t i = 1; i < losses.size(); ++i) loss = loss.add(losses[i].detach().to(first));
    StepResult result{.loss = loss, .outputs = joined(outputs, first)};
    if (c10::GradMode::is_enabled())
      result.loss = with_gradients(loss, losses, counting, *models.front());
    return result;
  }

  static Outputs joined(const std::vector<Outputs>& parts, c10::Device first) {
    Tensors all;
    for (size_t o = 0; o < parts.front().size(); ++o) {
      Tensors rows;
      for (const Outputs& part : parts) rows.push_back(part[o].detach().to(first));
      all.push_back(rows.size() == 1 ? rows.front() : at::cat(rows));
    }
    return all;
  }

  /// Differentiates all losses at once, so that the devices work at the same time.
  static at::Tensor with_gradients(const at::Tensor& loss, const Tensors& losses,
                                   const std::vector<Model*>& models, const Model& model) {
    const auto trained = [](const Model& of) {
      Tensors all;
      for (const Parameter& one : of.parameters())
        if (one.tensor.requires_grad()) all.push_back(one.tensor);
      return all;
    };
    const Tensors own = trained(model);
    if (own.empty()) return loss;
    Tensors wanted;
    for (const Model* one : models)
      for (const at::Tensor& parameter : trained(*one)) wanted.push_back(parameter);
    Tensors found = torch::autograd::grad(losses, wanted, /*grad_outputs=*/{},
                                          /*retain_graph=*/{}, /*create_graph=*/false,
                                          /*allow_unused=*/true);
    const c10::AutoGradMode no_grad(false);
    Tensors sums(own.size());
    for (size_t i = 0; i < found.size(); ++i) {
      at::Tensor& sum = sums[i % own.size()];
      if (!found[i].defined()) continue;
      const at::Tensor here = found[i].to(own[i % own.size()].device());
      sum = sum.defined() ? sum.add(here) : here;
      found[i].reset();
    }
    const c10::AutoGradMode with_graph(true);
    return Known::apply(loss, at::TensorList(sums), at::TensorList(own));
  }

  std::function<Model()> make_;
  std::vector<c10::Device> devices_;
  ResolvedLoss loss_;
  std::vector<Model> copies_;  // on the devices after the first
};

}  // namespace

Task replicated(std::function<Model()> make, const std::vector<std::string>& devices,
                const Loss& loss) {
  if (devices.empty()) throw ConfigError(kWhere, "devices", "are none", "one or more", "[]");
  std::vector<c10::Device> opened;
  for (const std::string& name : devices) opened.push_back(runtime::open_device(name));
  const auto replicas =
      std::make_shared<Replicas>(std::move(make), std::move(opened), resolve(loss));
  return {
      .step = [replicas](Model& model, const Batch& batch) { return replicas->step(model, batch); },
      .predict = [](Model& model, const Batch& batch) { return model.forward(batch); },
      .account = [replicas](Ledger& all) { replicas->account(all); },
      .counted = [replicas](const Batch& batch) { return replicas->counted(batch); }};
}

}  // namespace tare
