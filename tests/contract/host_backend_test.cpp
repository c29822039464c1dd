#include "contract/backend_contract.h"
#include "tare/memory/init.h"

namespace tare::memory {
namespace {

struct HostTraits {
  static std::string prepare() {
    init({.threads = 0, .cuda = CudaMode::off});
    return {};
  }
  static c10::Device device() { return c10::kCPU; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Host, BackendContract, HostTraits);

}  // namespace
}  // namespace tare::memory
