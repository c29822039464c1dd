// The fixture of lifecycle_contract.h: a Learner on the device, and what it should hold.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

#include "contract/traits.h"
#include "support/temp_dir.h"
#include "tare/learner/learner.h"
#include "tare/memory/backend.h"
#include "tare/model/registry.h"
#include "tare/trace/cuda_cache.h"

namespace tare::testing {

template <class Traits>
class LifecycleContract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = &memory::backend(Traits::device());
    backend_->warm();
    const auto set = [](int64_t n) {
      return tensor_dataset(torch::rand({n, 1, 16, 16}), torch::arange(n) % 10);
    };
    data_ = {.train = set(64), .valid = set(16)};
    run_once();  // what libraries keep for the life of the process
    backend_->reclaim();
    start_ = backend_->usage();
  }
  void TearDown() override {
    if (!backend_) return;
    backend_->set_budget({});
    backend_->reclaim();  // what libraries keep for the life of the process
    EXPECT_EQ(usage().allocated_bytes, start_.allocated_bytes);
    EXPECT_EQ(usage().blocks, start_.blocks);
  }

  [[nodiscard]] std::unique_ptr<Learner> learner(int64_t width = 16, LearnerOptions options = {},
                                                 const char* model = "resnet9") const {
    torch::manual_seed(1);
    options.device = Traits::device().str();
    options.batch = 16;
    options.workers = 0;
    options.folder = folder_.path();
    options.progress = false;
    options.stop_on_nan = memory::kernels_compute();
    return std::make_unique<Learner>(
        models::make(model, {.sample_shape = {1, 16, 16}, .width = width, .dropout = 0.1}), data_,
        std::move(options));
  }
  void run_once() const {
    auto l = learner();
    l->fit(1);
    l->purge({.compact = true});
    l->destroy();
  }

  struct Trained {
    double loss = 0;
    std::vector<torch::Tensor> state{};  ///< on the host
    int64_t peak_bytes = 0;              ///< of the fit, above its start
    int64_t needed_bytes = 0;            ///< that a budget must leave: of a card whole segments
  };
  /// A fit of two epochs from the same weights and generators.
  [[nodiscard]] Trained train(Learner& l) const {
    torch::manual_seed(2);
    backend_->reclaim();
    const int64_t before = usage().reserved_bytes;
    memory::PeakScope peak(Traits::device());
    Trained trained{.loss = l.fit(2).epochs.back().train_loss};
    trained.peak_bytes = peak.peak_above_start_bytes();
    const bool on_host = Traits::device().is_cpu();
    trained.needed_bytes = on_host ? trained.peak_bytes : usage().reserved_bytes - before;
    for (const auto& [name, tensor] : l.model().state()) trained.state.push_back(tensor.cpu());
    return trained;
  }
  /// Bit for bit on the host; sums on a GPU have any order.
  static void expect_same(const Trained& a, const Trained& b) {
    if (!memory::kernels_compute()) return;
    const bool exact = Traits::device().is_cpu();
    EXPECT_NEAR(a.loss, b.loss, exact ? 0 : 1e-2);
    ASSERT_EQ(a.state.size(), b.state.size());
    for (size_t i = 0; i < a.state.size(); ++i)
      EXPECT_TRUE(exact ? torch::equal(a.state[i], b.state[i])
                        : torch::allclose(a.state[i], b.state[i], 1e-2, 1e-2))
          << "tensor " << i;
  }

  /// Returns all weights and buffers, not as tensors, which would count.
  static std::vector<float> values(Model& model) {
    std::vector<float> all;
    for (const auto& [name, tensor] : model.state()) {
      const auto floats = tensor.detach().cpu().to(torch::kFloat).contiguous();
      const auto* const first = floats.template const_data_ptr<float>();
      all.insert(all.end(), first, first + floats.numel());
    }
    return all;
  }
  [[nodiscard]] memory::Usage usage() const { return backend_->usage(); }
  [[nodiscard]] int64_t allocated() const {
    return usage().allocated_bytes - start_.allocated_bytes;
  }
  /// Expects that the device holds so many bytes more than at the start when its caches have been
  /// given back, and no more pinned memory than at the start.
  void expect_bytes(int64_t allocated_bytes, int64_t reserved_bytes) const {
    backend_->reclaim();
    const memory::Usage now = usage();
    EXPECT_EQ(now.allocated_bytes - start_.allocated_bytes, allocated_bytes);
    EXPECT_EQ(now.reserved_bytes - start_.reserved_bytes, reserved_bytes);
    EXPECT_EQ(now.pinned_bytes, start_.pinned_bytes);
  }
  static int64_t rounded(int64_t bytes) {
    return (bytes + Traits::kRounding - 1) / Traits::kRounding * Traits::kRounding;
  }
  static int64_t state_bytes(Model& model) {
    int64_t bytes = 0;
    for (const auto& [name, tensor] : model.state())
      bytes += rounded(static_cast<int64_t>(tensor.nbytes()));
    return bytes;
  }
  /// Returns the bytes that the device's allocator reserves for the model's tensors alone.
  static int64_t segment_bytes(Model& model) {
    if (Traits::device().is_cpu()) return state_bytes(model);
    plan::CudaCache cache;
    int64_t block = 0;
    for (const auto& [name, tensor] : model.state())
      EXPECT_TRUE(cache.allocate(block++, static_cast<int64_t>(tensor.nbytes())));
    return cache.reserved_bytes();
  }
  static int64_t gradient_bytes(Model& model) {
    int64_t bytes = 0;
    for (const auto& p : model.parameters())
      bytes += rounded(static_cast<int64_t>(p.tensor.nbytes()));
    return bytes;
  }

  /// Returns the bytes that are requested for the gradients, before the allocator rounds them.
  static int64_t asked_for_gradients(Model& model) {
    int64_t bytes = 0;
    for (const auto& p : model.parameters()) bytes += static_cast<int64_t>(p.tensor.nbytes());
    return bytes;
  }

  memory::DeviceBackend* backend_ = nullptr;
  memory::Usage start_;
  Splits data_;
  TempDir folder_;
};

}  // namespace tare::testing
