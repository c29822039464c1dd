// Stands in for a profiler that NVTX loads (NVTX_INJECTION64_PATH): prints domains and ranges.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

namespace {

nvtxDomainHandle_t create(const char* name) {
  static char domain;
  std::printf("domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}

int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  std::printf("push %s\n", attributes->message.ascii);
  return 0;
}

int pop(nvtxDomainHandle_t) {
  std::puts("pop");
  return 0;
}

template <class Function>
NvtxFunctionPointer as_entry(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = as_entry(create);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = as_entry(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = as_entry(pop);
  return 1;
}
