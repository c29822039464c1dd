// Connects cards of several processes by NCCL.
#include "tare/cuda/nccl_collectives.h"

#include <c10/util/Logging.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <new>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace tare::cuda {
namespace {

using Options = c10d::ProcessGroupNCCL::Options;

/// Sets what LibTorch reads when it makes a group; what the user has set stays.
void set_environment() {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 0); };
  set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2");  // it stops NCCL after an error, and not the process
  set("TORCH_NCCL_RETHROW_CUDA_ERRORS", "0");   // in its thread, which would end the process
  set("TORCH_NCCL_ENABLE_MONITORING", "0");     // by a thread that ends the process
  set("TORCH_NCCL_DUMP_ON_TIMEOUT", "0");
  set("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "0");  // nothing is dumped after an error
  // LibTorch logs each error of NCCL with its stack, on every rank, and Tare says it in a line.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

/// Makes LibTorch's options. They hold NCCL's configuration, which grows with NCCL's versions:
/// spare bytes behind them serve one that is larger in LibTorch than in the header nccl.h that was
/// found here. The constructor is LibTorch's, and so is the destructor in the virtual table that it
/// sets.
c10::intrusive_ptr<Options> make_options(std::chrono::milliseconds timeout) {
  constexpr size_t kSpareBytes = 4096;
  auto* const options = new (::operator new(sizeof(Options) + kSpareBytes))
      Options(/*is_high_priority_stream=*/false);
  options->timeout = timeout;
  return c10::intrusive_ptr<Options>::unsafe_steal_from_new(options);
}

class NcclCollectives final : public memory::Collectives {
 public:
  [[nodiscard]] c10::DeviceType device_type() const override { return c10::kCUDA; }
  [[nodiscard]] std::string name() const override { return "nccl"; }
  [[nodiscard]] std::string hardware(c10::Device device) const override {
    char text[32] = {};
    return cudaDeviceGetPCIBusId(text, sizeof(text), device.index()) == cudaSuccess ? text : "";
  }
  [[nodiscard]] c10::intrusive_ptr<c10d::Backend> connect(
      const memory::CollectivesMember& member) const override {
    set_environment();
    auto nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        member.store, static_cast<int>(member.rank), static_cast<int>(member.size),
        make_options(member.timeout));
    nccl->eagerConnectSingleDevice(member.device);
    return nccl;
  }
};

}  // namespace

std::unique_ptr<memory::Collectives> make_nccl_collectives() {
  return std::make_unique<NcclCollectives>();
}

}  // namespace tare::cuda
