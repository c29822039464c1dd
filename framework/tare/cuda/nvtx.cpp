// Opens and closes NVTX ranges as phases begin and end.
#include "tare/cuda/nvtx.h"

#include <nvtx3/nvToolsExt.h>

#include <new>

namespace tare::cuda {
namespace {

runtime::HostServices* host = nullptr;
nvtxDomainHandle_t domain = nullptr;

void push(const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain, &attributes);
}

void begin(uint32_t phase) noexcept {
  try {
    push(host->phase_name(phase).c_str());
  } catch (const std::bad_alloc&) {
    push("phase");  // its end is marked too
  }
}

void end() noexcept { nvtxDomainRangePop(domain); }

}  // namespace

void mark_phases(runtime::HostServices& services) {
  static constexpr memory::PhaseObserver kObserver{begin, end};
  host = &services;
  domain = nvtxDomainCreateA("tare");
  if (domain != nullptr) services.observe_phases(&kObserver);  // null without a tool
}

}  // namespace tare::cuda
