#include <algorithm>

#include "contract/backend_contract.h"
#include "tare/memory/init.h"

namespace tare::memory {
namespace {

struct CudaTraits {
  static std::string prepare() {
    try {
      init({.threads = 0, .cuda = CudaMode::on});
      return {};
    } catch (const DeviceError& error) {
      return error.what();
    }
  }
  static c10::Device device() { return {c10::kCUDA, 0}; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, BackendContract, CudaTraits);

}  // namespace
}  // namespace tare::memory
