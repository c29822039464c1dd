// The contract of a device's backend, held by CUDA, and pinned memory, which the host does not
// have.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/empty_like.h>

#include "contract/backend_contract.h"
#include "contract/traits.h"

namespace tare::memory {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, BackendContract, CudaTraits);

namespace {

class PinnedMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    backend().reclaim();
    ASSERT_EQ(held(), 0) << "another test has left some";
  }
  static DeviceBackend& backend() { return memory::backend(CudaTraits::device()); }
  [[nodiscard]] static int64_t held() { return backend().usage().pinned_bytes; }
  /// Returns LibTorch's count, which 2.11 does not lower by what is given back.
  [[nodiscard]] static int64_t active_bytes() {
    return at::getHostAllocator(at::kCUDA)->get_stats().active_bytes.current;
  }
  [[nodiscard]] static at::Tensor pinned(int64_t bytes) {
    return at::empty({bytes}, at::TensorOptions(c10::kCPU).dtype(at::kByte).pinned_memory(true));
  }
};

TEST_F(PinnedMemory, IsCountedWithItsRoundingToPowersOfTwo) {
  struct Sizes {
    int64_t asked, counted;
  };
  for (const auto& [asked, counted] : {Sizes{1, 1},
                                       {600, 1024},
                                       {3_MiB, 4_MiB},
                                       {4_MiB, 4_MiB},
                                       {4_MiB + 1, 8_MiB},
                                       {33_MiB, 64_MiB}}) {
    backend().reclaim();
    const Usage before = backend().usage();
    const int64_t active = active_bytes();
    const at::Tensor tensor = pinned(asked);
    EXPECT_TRUE(tensor.is_pinned());
    EXPECT_EQ(held(), counted) << asked;
    EXPECT_EQ(active_bytes() - active, counted) << asked;
    backend().reclaim();
    EXPECT_EQ(held(), counted) << "reclaim() must not take what is in use";
    const Usage now = backend().usage();
    EXPECT_EQ(now.allocated_bytes, before.allocated_bytes) << "it is no memory of the card";
    EXPECT_EQ(now.reserved_bytes, before.reserved_bytes);
  }
}

TEST_F(PinnedMemory, IsCachedWhenItIsFreeUntilItIsReclaimed) {
  for (const bool copied : {false, true}) {
    std::optional<at::Tensor> tensor = pinned(3_MiB);
    if (copied) {
      at::empty_like(*tensor, at::TensorOptions(CudaTraits::device()).pinned_memory(false))
          .copy_(*tensor, /*non_blocking=*/true);
    }
    tensor.reset();
    EXPECT_EQ(held(), 4_MiB) << "LibTorch keeps it for the next copy";
    backend().reclaim();
    EXPECT_EQ(held(), 0) << "copied: " << copied;
  }
}

TEST_F(PinnedMemory, BelongsToAllCards) {
  const at::Tensor tensor = pinned(3_MiB);
  for (const c10::Device device : devices()) {
    EXPECT_EQ(memory::backend(device).usage().pinned_bytes, device.is_cuda() ? 4_MiB : 0) << device;
  }
}

}  // namespace
}  // namespace tare::memory
