// Failures of a card under a Learner, as the CUDA stand-in plays them: cudaMalloc refuses at every
// place of every verb, a card is lost in a step.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <functional>

#include "contract/traits.h"
#include "learner/every_allocation.h"
#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/memory/oom.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

/// The state on the host, where it can be compared also if the card computes nothing.
State host_state(Learner& learner) {
  State state;
  for (const auto& [name, tensor] : learner.model().state()) state.tensors.push_back(tensor.cpu());
  for (const auto& [name, tensor] : learner.optimizer().state())
    state.tensors.push_back(tensor.defined() ? tensor.cpu() : tensor);
  for (const auto& [name, tensor] : rng_state(learner.device())) state.tensors.push_back(tensor);
  return state;
}
State weights_of(Learner& learner) {
  State state;
  for (const auto& [name, tensor] : learner.model().state()) state.tensors.push_back(tensor.cpu());
  return state;
}

/// Finds a function of the stand-in that sets what fails; null on a real card.
template <class Function>
Function* of_stand_in(const char* name) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

/// Refuses memory on the host for each training batch after some.
class ScarceData final : public Dataset {
 public:
  ScarceData(DatasetPtr data, int64_t batches) : data_(std::move(data)), left_(batches) {}
  [[nodiscard]] int64_t size() const override { return data_->size(); }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return data_->sample_shape(); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    if (request.training && left_-- <= 0)
      TORCH_CHECK_WITH(OutOfMemoryError, false, "the host has no memory for a batch");
    return data_->get(request);
  }

 private:
  DatasetPtr data_;
  mutable std::atomic<int64_t> left_;
};

class CudaFailures : public ::testing::Test {
 protected:
  // A workspace of cublasLt too large for a segment that other blocks share, so that a forward
  // alone asks the card for memory where LibTorch keeps no workspaces. It is read at the first
  // product.
  static void SetUpTestSuite() { setenv("CUBLASLT_WORKSPACE_SIZE", "4096", /*overwrite=*/1); }

  void SetUp() override {
    if (const auto reason = memory::CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    refuse_ = of_stand_in<void(size_t)>("stand_in_refuse");
    refuse_from_ = of_stand_in<void(size_t)>("stand_in_refuse_from");
    lose_ = of_stand_in<void(int, size_t)>("stand_in_lose");
    if (!refuse_ || !refuse_from_ || !lose_) GTEST_SKIP() << "a card fails on no request";
    backend_ = &memory::backend(memory::CudaTraits::device());
    backend_->warm();
  }

  [[nodiscard]] LearnerOptions options(const std::string& device = "cuda:0") const {
    LearnerOptions options = quiet(folder_);
    options.device = device;
    options.micro_batch = options.batch;  // else the batch would be tried in parts
    options.workers = 0;
    options.stop_on_nan = memory::kernels_compute();
    return options;
  }
  [[nodiscard]] std::unique_ptr<Learner> learner(const std::string& device = "cuda:0") const {
    torch::manual_seed(1);
    return std::make_unique<Learner>(models::make("mlp", {.classes = kClasses,
                                                          .sample_shape = {1, kSide, kSide},
                                                          .hidden = {1024, 3072},
                                                          .dropout = 0.1}),
                                     data(), options(device));
  }
  [[nodiscard]] static Splits data() {
    const auto set = [](int64_t n, uint64_t seed) {
      auto generator = at::detail::createCPUGenerator(seed);
      return tensor_dataset(torch::empty({n, 1, kSide, kSide}).normal_(0, 1, generator),
                            torch::arange(n) % kClasses);
    };
    return {.train = set(48, 11), .valid = set(16, 12)};
  }
  /// A Learner in the middle of its life, saved as "start".
  [[nodiscard]] std::unique_ptr<Learner> trained() const {
    auto made = learner();
    torch::manual_seed(5);
    made->fit(1);
    made->save("start");
    return made;
  }

  /// Expects that the card holds what it held, its caches aside. The device's thread of autograd
  /// may let go of a gradient a moment later.
  void expect_back(const memory::Usage& before, size_t k) const {
    constexpr int kTries = 100'000;
    for (int i = 0; i < kTries && backend_->usage().blocks != before.blocks; ++i) sched_yield();
    backend_->reclaim();
    const auto now = backend_->usage();
    EXPECT_EQ(now.allocated_bytes, before.allocated_bytes) << k;
    EXPECT_EQ(now.blocks, before.blocks) << k;
    EXPECT_EQ(now.reserved_bytes, before.reserved_bytes) << k;
  }

  /// Lets the card refuse from each cudaMalloc on in turn. After each failure it holds what it
  /// held, and `check` is called. Returns the number of failures.
  size_t at_every_k(const std::function<void()>& verb,
                    const std::function<void(size_t)>& check) const {
    memory::Usage before;
    const auto fail_at = [&](size_t k) {
      if (k == 0) return refuse_(0);
      backend_->reclaim();
      before = backend_->usage();
      refuse_from_(k);
    };
    return at_every_allocation<c10::OutOfMemoryError>(fail_at, verb, [&](size_t k) {
      expect_back(before, k);
      check(k);
    });
  }

  static constexpr int64_t kSide = 64;  // weights of 16 and 12 MiB, each in a segment of its own
  memory::DeviceBackend* backend_ = nullptr;
  void (*refuse_)(size_t) = nullptr;
  void (*refuse_from_)(size_t) = nullptr;
  void (*lose_)(int, size_t) = nullptr;
  TempDir folder_;
};

TEST_F(CudaFailures, AFitThatIsRefusedIsBetweenTwoStepsAndGoesOn) {
  auto l = trained();
  std::vector<State> after_step{host_state(*l)};
  (void)l->fit(1, {.lr = 0.01, .callbacks = {std::make_shared<AfterBatch>([&] {
                                 after_step.push_back(host_state(*l));
                               })}});
  const State end = host_state(*l);
  l->load("start");
  const size_t failures =
      at_every_k([&] { l->fit(1, {.lr = 0.01}); },
                 [&](size_t k) {
                   const State now = host_state(*l);
                   EXPECT_TRUE(std::ranges::find(after_step, now) != after_step.end()) << k;
                   (void)(l->can_resume() ? l->resume() : l->fit(1, {.lr = 0.01}));
                   EXPECT_TRUE(host_state(*l) == end) << k;
                   l->load("start");
                 });
  EXPECT_GE(failures, 3U);
}

TEST_F(CudaFailures, ARefusalIsAbsorbedWhereTheSecondTryIsServed) {
  auto l = trained();
  (void)l->fit(1, {.lr = 0.01});
  const State end = host_state(*l);
  int64_t absorbed = 0;
  for (size_t k = 1; k <= 4; ++k) {
    l->load("start");
    backend_->reclaim();
    const int64_t retries = backend_->retries();
    refuse_(k);
    EXPECT_NO_THROW((void)l->fit(1, {.lr = 0.01})) << k;
    refuse_(0);
    absorbed += backend_->retries() - retries;
    EXPECT_TRUE(host_state(*l) == end) << k;
  }
  EXPECT_GE(absorbed, 2);
}

TEST_F(CudaFailures, LookingAndWritingChangeNothing) {
  auto l = trained();
  const State before = host_state(*l);
  const auto unchanged = [&](size_t k) {
    EXPECT_FALSE(l->destroyed());
    EXPECT_TRUE(host_state(*l) == before) << k;
  };
  EXPECT_GE(at_every_k([&] { (void)l->validate(); }, unchanged), 1U);
  EXPECT_GE(at_every_k([&] { (void)l->get_preds(); }, unchanged), 1U);
  at_every_k([&] { l->save("start"); },
             [&](size_t k) {
               unchanged(k);
               EXPECT_NO_THROW((void)learner()->load("start")) << "the old checkpoint is whole";
             });
  at_every_k([&] { (void)l->export_to(folder_ / "net.tare"); }, unchanged);
  EXPECT_TRUE(host_state(*l) == before);
}

TEST_F(CudaFailures, LoadTakesAllOrNothing) {
  const State start = host_state(*trained());
  auto l = learner();
  (void)l->fit(1, {.lr = 0.1});
  l->save("other");
  const State other = host_state(*l);
  at_every_k([&] { (void)l->load("start"); },
             [&](size_t k) {
               const State now = host_state(*l);
               EXPECT_TRUE(now == other || now == start) << k;
               (void)l->load("other");
             });
  EXPECT_TRUE(host_state(*l) == start);
}

TEST_F(CudaFailures, PurgeAndDestroyGiveBackOrLeaveAlone) {
  auto l = trained();
  const State weights = weights_of(*l);
  const auto unchanged = [&](size_t k) { EXPECT_TRUE(weights_of(*l) == weights) << k; };
  at_every_k([&] { (void)l->purge({.compact = false}); }, unchanged);
  unchanged(0);
  (void)l->fit(1);
  at_every_k([&] { (void)l->destroy(); }, [&](size_t) { EXPECT_FALSE(l->destroyed()); });
  EXPECT_TRUE(l->destroyed());
}

TEST_F(CudaFailures, ACompactingPurgeThatIsRefusedLeavesTheWeightsOnTheHost) {
  auto l = trained();
  const State weights = weights_of(*l);
  backend_->reclaim();
  refuse_from_(1);
  EXPECT_THROW((void)l->purge({.compact = true}), OutOfMemory);
  refuse_(0);
  EXPECT_TRUE(weights_of(*l) == weights);
  EXPECT_TRUE(l->model().device().is_cpu());
  (void)l->purge();
  EXPECT_FALSE(l->model().device().is_cpu());
  EXPECT_TRUE(weights_of(*l) == weights);
}

TEST_F(CudaFailures, ABatchThatTheHostCannotMakeIsNoEndOfTheEpoch) {
  for (const int64_t workers : {0, 1}) {
    Splits scarce = data();
    scarce.train = std::make_shared<ScarceData>(scarce.train, 2);
    LearnerOptions made = options();
    made.workers = workers;
    Learner learner(models::make("mlp", {.classes = kClasses, .sample_shape = {1, kSide, kSide}}),
                    scarce, made);
    EXPECT_THROW((void)learner.fit(1), c10::OutOfMemoryError) << workers;
  }
}

TEST_F(CudaFailures, ADeviceThatIsNotThereIsNamedWithThoseThatAre) {
  try {
    (void)learner("cuda:7");
    FAIL() << "there is no such card";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "[device] cuda:7 is not there, only cpu, cuda:0, cuda:1; use device: auto");
  }
}

TEST_F(CudaFailures, ALostCardIsAnErrorOfTheFitAndTheCheckpointIsContinuedOnAnother) {
  auto l = learner("cuda:1");
  torch::manual_seed(5);
  (void)l->fit(1);
  l->save("start");
  const State weights = weights_of(*l);
  lose_(1, 20);
  EXPECT_THROW((void)l->fit(4), c10::AcceleratorError);
  EXPECT_THROW(l->save("lost"), c10::AcceleratorError);
  EXPECT_NO_THROW(l.reset()) << "a destructor must not throw";
  auto other = learner("cuda:0");
  (void)other->load("start");
  EXPECT_TRUE(weights_of(*other) == weights);
  EXPECT_NO_THROW((void)other->fit(1));
  try {
    (void)learner("cuda:1");
    FAIL() << "the card is lost";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "[device] cuda:1 'CUDA stand-in' cannot be opened: CUDA error: unspecified launch "
                 "failure; look at `nvidia-smi` and `dmesg`; there is also cuda:0; device: auto "
                 "takes what can be opened");
  }
  EXPECT_EQ(learner("auto")->device().str(), "cuda:0");
  lose_(0, 1);
  EXPECT_THROW((void)other->fit(1), c10::AcceleratorError);
  ::testing::internal::CaptureStderr();
  const auto on_host = learner("auto");
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(on_host->device().is_cpu());
  for (const char* card : {"cuda:0", "cuda:1"})
    EXPECT_THAT(words, ::testing::HasSubstr("the host is used, because " + std::string(card) +
                                            " cannot be opened: CUDA error: unspecified launch"));
  EXPECT_NO_THROW((void)on_host->fit(1));
}

}  // namespace
}  // namespace tare::testing
