// Stands in for the driver, which LibTorch asks by name, and for NVRTC, by which it compiles a few
// kernels at run time.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "cards.h"
#include "exported.h"
#include "memory.h"

using namespace stand_in;

namespace {

int unsupported() { return CUDA_ERROR_NOT_SUPPORTED; }

/// This library itself, wherever it was loaded from.
void* self() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&unsupported), &info);
  static void* const handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return handle;
}

}  // namespace

EXPORTED cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                      unsigned long long,
                                                      cudaDriverEntryPointQueryResult* status) {
  *function = dlsym(self(), name);
  if (!*function) *function = reinterpret_cast<void*>(&unsupported);
  if (status) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
EXPORTED CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
EXPORTED CUresult cuDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetCount(int* result) {
  *result = count();
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&current_device());
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  *active = has_context(device);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGetErrorString(CUresult, const char** result) {
  *result = "an error of the CUDA stand-in";
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}

// Memory in parts: addresses first, pages later. LibTorch's expandable segments.
EXPORTED CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                                CUmemAllocationGranularity_flags) {
  *bytes = round_up(1);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                                      unsigned long long) {
  *address = reserve(bytes, current_device());
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
EXPORTED CUresult cuMemAddressFree(CUdeviceptr address, size_t) {
  give_back(address);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                              const CUmemAllocationProp* of, unsigned long long) {
  if (!take(of->location.id, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(
      new Block{0, bytes, Kind::device, of->location.id});
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const auto* const pages = reinterpret_cast<Block*>(handle);
  give(pages->device, pages->counted);
  delete pages;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle,
                           unsigned long long) {
  return open_pages(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EXPORTED CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  close_pages(address, bytes);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}

// ---- kernels that LibTorch compiles at run time (prod, cumprod, some of linalg)

EXPORTED int nvrtcVersion(int* major, int* minor) {
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return 0;
}
EXPORTED int nvrtcGetPTXSize(void*, size_t* bytes) {
  *bytes = 1;
  return 0;
}
EXPORTED int nvrtcGetCUBINSize(void*, size_t* bytes) {
  *bytes = 1;
  return 0;
}
EXPORTED int nvrtcGetProgramLogSize(void*, size_t* bytes) {
  *bytes = 1;
  return 0;
}
EXPORTED int nvrtcGetLoweredName(void*, const char*, const char** name) {
  *name = "kernel";
  return 0;
}
EXPORTED CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  *function = reinterpret_cast<CUfunction>(&current_device());
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks_of, CUfunction,
                                                              int threads, size_t) {
  *blocks_of = threads > 0 ? 2048 / threads : 1;
  return CUDA_SUCCESS;
}
