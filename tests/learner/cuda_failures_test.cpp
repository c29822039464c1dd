// Failures of a card under a Learner, as the CUDA stand-in plays them: cudaMalloc refuses at every
// place of every verb, once or from there on; a card is lost in a step.
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
    backend_->reclaim();
  }

  [[nodiscard]] LearnerOptions options(const std::string& device = "cuda:0") const {
    LearnerOptions options = quiet(folder_);
    options.device = device;
    options.micro_batch = options.batch;  // else the batch would be tried in parts
    options.workers = 0;
    options.stop_on_nan = memory::kernels_compute();
    return options;
  }
  /// The shape of an image, so large that two weights of the mlp take 16 and 12 MiB, each in a
  /// segment of its own.
  [[nodiscard]] virtual std::vector<int64_t> shape() const { return {1, 64, 64}; }
  [[nodiscard]] virtual Model network() const {
    return models::make(
        "mlp",
        {.classes = kClasses, .sample_shape = shape(), .hidden = {1024, 3072}, .dropout = 0.1});
  }
  [[nodiscard]] std::unique_ptr<Learner> learner(const std::string& device = "cuda:0") const {
    torch::manual_seed(1);
    return std::make_unique<Learner>(network(), data(), options(device));
  }
  [[nodiscard]] Splits data() const {
    const auto set = [this](int64_t n, uint64_t seed) {
      auto generator = at::detail::createCPUGenerator(seed);
      std::vector<int64_t> sizes = shape();
      sizes.insert(sizes.begin(), n);
      return tensor_dataset(torch::empty(sizes).normal_(0, 1, generator),
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
  size_t from_every_k(const std::function<void()>& verb,
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

  /// Lets the card refuse each cudaMalloc once in turn. LibTorch gives its cache back and asks once
  /// more, so the verb succeeds; then `check` is called. Returns the number of refusals.
  size_t once_at_every_k(const std::function<void()>& verb,
                         const std::function<void(size_t)>& check) const {
    for (size_t k = 1;; ++k) {
      backend_->reclaim();
      const int64_t retries = backend_->retries();
      refuse_(k);
      EXPECT_NO_THROW(verb()) << k;
      refuse_(0);
      check(k);
      if (backend_->retries() == retries || HasFailure()) return k - 1;
      EXPECT_EQ(backend_->retries(), retries + 1) << k;
    }
  }

  /// Expects that a verb asks a card for no memory, so that it succeeds on one that is full.
  void expect_asks_for_none(const std::function<void()>& verb) const {
    backend_->reclaim();
    const int64_t retries = backend_->retries();
    refuse_from_(1);
    EXPECT_NO_THROW(verb());
    refuse_(0);
    EXPECT_EQ(backend_->retries(), retries) << "it was refused";
  }

  memory::DeviceBackend* backend_ = nullptr;
  void (*refuse_)(size_t) = nullptr;
  void (*refuse_from_)(size_t) = nullptr;
  void (*lose_)(int, size_t) = nullptr;
  TempDir folder_;
};

/// With a model of products, and with one of convolutions, whose optimizer's state needs segments
/// of its own too.
class EveryVerb : public CudaFailures, public ::testing::WithParamInterface<bool> {
 protected:
  [[nodiscard]] std::vector<int64_t> shape() const override {
    return GetParam() ? std::vector<int64_t>{1, 16, 16} : CudaFailures::shape();
  }
  [[nodiscard]] Model network() const override {
    if (!GetParam()) return CudaFailures::network();
    return models::make(
        "resnet9", {.classes = kClasses, .sample_shape = shape(), .width = 16, .dropout = 0.1});
  }
};

TEST_P(EveryVerb, AFitThatIsRefusedIsBetweenTwoStepsAndGoesOn) {
  auto l = trained();
  std::vector<State> after_step{host_state(*l)};
  (void)l->fit(1, {.lr = 0.01, .callbacks = {std::make_shared<AfterBatch>([&] {
                                 after_step.push_back(host_state(*l));
                               })}});
  const State end = host_state(*l);
  l->load("start");
  const size_t failures =
      from_every_k([&] { l->fit(1, {.lr = 0.01}); },
                   [&](size_t k) {
                     const State now = host_state(*l);
                     EXPECT_TRUE(std::ranges::find(after_step, now) != after_step.end()) << k;
                     (void)(l->can_resume() ? l->resume() : l->fit(1, {.lr = 0.01}));
                     EXPECT_TRUE(host_state(*l) == end) << k;
                     l->load("start");
                   });
  EXPECT_GE(failures, 3U);
  l->load("start");
  const size_t refusals = once_at_every_k([&] { (void)l->fit(1, {.lr = 0.01}); },
                                          [&](size_t k) {
                                            EXPECT_TRUE(host_state(*l) == end) << k;
                                            l->load("start");
                                          });
  EXPECT_EQ(refusals, failures);
}

TEST_P(EveryVerb, LookingChangesNothing) {
  auto l = trained();
  const State before = host_state(*l);
  const auto unchanged = [&](size_t k) { EXPECT_TRUE(host_state(*l) == before) << k; };
  for (const std::function<void()>& verb : std::vector<std::function<void()>>{
           [&] { (void)l->validate(); }, [&] { (void)l->get_preds(); }}) {
    const size_t failures = from_every_k(verb, unchanged);
    EXPECT_GE(failures, 1U);
    EXPECT_EQ(once_at_every_k(verb, unchanged), failures);
  }
}

TEST_P(EveryVerb, WritingAsksForNoMemory) {
  auto l = trained();
  const State before = host_state(*l);
  expect_asks_for_none([&] { l->save("again"); });
  expect_asks_for_none([&] { (void)l->export_to(folder_ / "net.tare"); });
  EXPECT_TRUE(host_state(*l) == before);
  auto other = learner();
  (void)other->load("again");
  EXPECT_TRUE(host_state(*other) == before);
}

TEST_P(EveryVerb, LoadTakesAllOrNothing) {
  const State start = host_state(*trained());
  auto l = learner();
  (void)l->fit(1, {.lr = 0.1});
  l->save("other");
  const auto load = [&] { (void)l->load("start"); };
  expect_asks_for_none(load);  // into the tensors that are there
  EXPECT_TRUE(host_state(*l) == start);

  const auto without_state = [&] {
    (void)l->load("other");
    (void)l->purge();
  };
  without_state();
  const State other = host_state(*l);
  const size_t failures = from_every_k(load, [&](size_t k) {
    const State now = host_state(*l);
    EXPECT_TRUE(now == other || now == start) << k;
    without_state();
  });
  EXPECT_GE(failures, 1U);
  EXPECT_TRUE(host_state(*l) == start);
  without_state();
  const size_t refusals = once_at_every_k(load, [&](size_t k) {
    EXPECT_TRUE(host_state(*l) == start) << k;
    without_state();
  });
  EXPECT_EQ(refusals, failures);
}

TEST_P(EveryVerb, PurgeAndDestroyAskForNoMemory) {
  auto l = trained();
  const State weights = weights_of(*l);
  expect_asks_for_none([&] { (void)l->purge({.compact = false}); });
  EXPECT_TRUE(weights_of(*l) == weights);
  (void)l->fit(1);
  expect_asks_for_none([&] { (void)l->destroy(); });
  EXPECT_TRUE(l->destroyed());
}

TEST_P(EveryVerb, ACompactingPurgeThatIsRefusedLeavesTheWeightsOnTheHost) {
  auto l = trained();
  const State weights = weights_of(*l);
  const auto unchanged = [&](size_t k) { EXPECT_TRUE(weights_of(*l) == weights) << k; };
  const auto purge = [&] { (void)l->purge({.compact = true}); };
  size_t k = 0;
  for (bool refused = true; refused && !HasFailure();) {
    backend_->reclaim();
    refuse_from_(++k);
    try {
      purge();
      refused = false;
    } catch (const OutOfMemory&) {
    }
    refuse_(0);
    unchanged(k);
    EXPECT_EQ(l->model().device().is_cpu(), refused) << k;
    (void)l->purge();
    EXPECT_FALSE(l->model().device().is_cpu());
    unchanged(k);
    (void)l->fit(1);
    l->load("start");
  }
  EXPECT_GE(k - 1, 1U);
  EXPECT_EQ(once_at_every_k(purge, unchanged), k - 1);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryVerb, ::testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "convolutions" : "products");
});

TEST_F(CudaFailures, ABatchThatTheHostCannotMakeIsNoEndOfTheEpoch) {
  for (const int64_t workers : {0, 1}) {
    Splits scarce = data();
    scarce.train = std::make_shared<ScarceData>(scarce.train, 2);
    LearnerOptions made = options();
    made.workers = workers;
    Learner learner(models::make("mlp", {.classes = kClasses, .sample_shape = shape()}), scarce,
                    made);
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

/// In a process of its own, because a card that is lost stays lost.
class LostCard : public CudaFailures {};

TEST_F(LostCard, IsAnErrorOfTheFitAndTheCheckpointIsContinuedOnAnother) {
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
