// Stands in for the CUDA runtime where there is no GPU. Device memory is memory of the host that is
// zero until it is written. A launched kernel does nothing. Copies and fills are done at once, or
// late on streams beside the default one (streams.h). What LibTorch's caching allocators decide
// depends on these calls alone. cards.h lists the settings.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "cards.h"
#include "exported.h"
#include "graphs.h"
#include "memory.h"
#include "streams.h"

using namespace stand_in;

namespace {

/// Streams are single bytes, of which only the address counts.
cudaError_t make(cudaStream_t* result) {
  if (const cudaError_t error = with_context()) return error;
  *result = reinterpret_cast<cudaStream_t>(new char);
  return cudaSuccess;
}

/// An event is through when what is before it is done and somebody has waited for the device, or at
/// its STAND_IN_LAG-th question.
struct Event {
  double ms = 0;
  int asked = 0;
  unsigned waits = 0;
  Place place{};         // on the stream that it was recorded on
  uint64_t capture = 0;  // that it was recorded in; 0: none
};
std::atomic<unsigned> waits{1}, blocking_copies{0}, launches{0};
Event& of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }
cudaError_t make(cudaEvent_t* result) {
  *result = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  of(event) = {1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec), 0,
               waits, place_on(stream), capture_of(stream)};
  return cudaSuccess;
}
cudaError_t wait() {
  ++waits;
  return with_context();
}
/// Refuses to wait for what is only captured.
cudaError_t refuse_wait() { return fail(cudaErrorStreamCaptureUnsupported); }

/// Frees memory when all that was queued is done, as the runtime does.
cudaError_t release_behind_all(void* memory, Kind kind) {
  wait_for_all();
  return release(memory, kind);
}

/// Counts a copy of memory of the host that is not pinned: it goes through a buffer of the
/// driver's, and is done when the call returns.
bool is_blocking(const void* to, const void* from, cudaStream_t stream) {
  if (block_at(to) && block_at(from)) return false;
  ++blocking_copies;
  wait_for(place_on(stream));
  return true;
}

/// Queues a copy. One that might come before what it copies is there copies NaN.
cudaError_t copy_on(cudaStream_t stream, void* to, const void* from, size_t bytes) {
  if (is_early(stream)) return queue(stream, [=] { return fill(to, 0xff, bytes); });
  return queue(stream, [=] { return copy(to, from, bytes); });
}

/// The stream of the kernel that the calling thread is about to launch.
cudaStream_t& stream_of_launch() {
  thread_local cudaStream_t stream = nullptr;
  return stream;
}

/// The CUDA version of the driver.
int driver_version() {
  return static_cast<int>(setting("STAND_IN_DRIVER", static_cast<size_t>(CUDART_VERSION)));
}

/// Lists the compute capabilities that LibTorch's kernels for CUDA 13 are compiled for.
constexpr int kCompiled[] = {75, 80, 86, 90, 100, 120};
bool has_kernels(const Card& card) { return 10 * card.major + card.minor >= kCompiled[0]; }
/// The compute capability of the kernels that a card runs. CUB refuses one that is not compiled.
int compiled_for(const Card& card) {
  int best = kCompiled[0];
  for (const int capability : kCompiled)
    if (capability <= 10 * card.major + card.minor) best = capability;
  return best;
}

bool is_device(int device) { return device >= 0 && device < count(); }

const char* text(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoKernelImageForDevice:
      return "no kernel image is available for execution on the device";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInitializationError:
      return "initialization error";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "peer access is already enabled";
    default:
      return "an error of the CUDA stand-in";
  }
}

}  // namespace

// A call that nobody wrote by hand; see stubs.sh.
EXPORTED int cuda_stand_in_called(const char* function) {
  static const bool trace = std::getenv("STAND_IN_TRACE") != nullptr;
  if (trace) std::fprintf(stderr, "[stand-in] %s\n", function);
  return 0;
}

// ---- devices

/// The first question of a program to CUDA is asked when all operators of LibTorch are there.
void load_values() {
  static const bool once = [] {
    const char* const file = std::getenv("STAND_IN_VALUES");
    if (file && *file && !dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
      std::fprintf(stderr, "CUDA stand-in: STAND_IN_VALUES: %s\n", dlerror());
      std::abort();
    }
    return true;
  }();
  static_cast<void>(once);
}
EXPORTED cudaError_t cudaGetDeviceCount(int* result) {
  if (is_forked()) return fail(cudaErrorInitializationError);
  if (driver_version() / 1000 < CUDART_VERSION / 1000) return fail(cudaErrorInsufficientDriver);
  load_values();
  *result = count();
  return *result ? cudaSuccess : fail(cudaErrorNoDevice);
}
EXPORTED cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return count() ? cudaSuccess : fail(cudaErrorNoDevice);
}
EXPORTED cudaError_t cudaSetDevice(int device) {
  if (is_forked()) return fail(cudaErrorInitializationError);
  if (!is_device(device)) return fail(cudaErrorInvalidDevice);
  if (!make_context(device)) return fail(cudaErrorMemoryAllocation);
  current_device() = device;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!is_device(device)) return fail(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = card(device).major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = card(device).minor;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      *value = 1024;
      break;
    case cudaDevAttrMaxBlockDimZ:
      *value = 64;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 0x7fffffff;
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = 65535;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 228 << 10;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = 65536;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrL2CacheSize:
      *value = 50 << 20;
      break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCooperativeLaunch:
      *value = 1;
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (!is_device(device)) return fail(cudaErrorInvalidDevice);
  const Card& of = card(device);
  *p = {};
  std::snprintf(p->name, sizeof(p->name), "%s", of.name);
  std::memcpy(p->uuid.bytes, of.uuid, sizeof(of.uuid));
  p->totalGlobalMem = of.bytes;
  p->major = of.major, p->minor = of.minor;
  p->pciBusID = of.bus;
  p->multiProcessorCount = 132;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048, p->maxBlocksPerMultiProcessor = 32;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024, p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 0x7fffffff, p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->sharedMemPerBlock = 48 << 10, p->sharedMemPerBlockOptin = 227 << 10;
  p->sharedMemPerMultiprocessor = 228 << 10, p->reservedSharedMemPerBlock = 1 << 10;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->l2CacheSize = 50 << 20, p->memoryBusWidth = 5120;
  p->totalConstMem = 64 << 10, p->textureAlignment = 512;
  p->unifiedAddressing = p->concurrentKernels = p->cooperativeLaunch = p->canMapHostMemory = 1;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (!is_device(device)) return fail(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(bytes), "0000:%02x:00.0", card(device).bus);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_version();
  return cudaSuccess;
}
EXPORTED cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// ---- errors

EXPORTED cudaError_t cudaGetLastError() {
  const cudaError_t error = std::exchange(last_error(), cudaSuccess);
  return is_lost() ? cudaErrorLaunchFailure : error;
}
EXPORTED cudaError_t cudaPeekAtLastError() {
  return is_lost() ? cudaErrorLaunchFailure : last_error();
}
EXPORTED const char* cudaGetErrorString(cudaError_t error) { return text(error); }
EXPORTED const char* cudaGetErrorName(cudaError_t error) { return text(error); }

// ---- memory

EXPORTED cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return allocate(memory, bytes, Kind::device);
}
EXPORTED cudaError_t cudaFree(void* memory) { return release_behind_all(memory, Kind::device); }
EXPORTED cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) {
  return allocate(memory, bytes, Kind::device);
}
EXPORTED cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  return release_behind_all(memory, Kind::device);
}
EXPORTED cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return allocate(memory, bytes, Kind::pinned);
}
EXPORTED cudaError_t cudaFreeHost(void* memory) { return release_behind_all(memory, Kind::pinned); }
EXPORTED cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  return pin(memory, bytes);
}
EXPORTED cudaError_t cudaHostUnregister(void* memory) {
  return release_behind_all(memory, Kind::registered);
}
EXPORTED cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (const cudaError_t error = with_context()) return error;
  *total = card(current_device()).bytes;
  *free = stand_in::free_bytes(current_device());
  return cudaSuccess;
}
EXPORTED cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                              const void* memory) {
  *attributes = {};
  attributes->device = -1;
  attributes->hostPointer = const_cast<void*>(memory);
  if (const Block* const block = block_at(memory)) {
    attributes->type = block->kind == Kind::device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    attributes->device = block->device;
    attributes->devicePointer = const_cast<void*>(memory);
    if (block->kind == Kind::device) attributes->hostPointer = nullptr;
  }
  return cudaSuccess;
}
EXPORTED cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  ++blocking_copies;
  return copy(to, from, bytes);
}
EXPORTED cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                     cudaStream_t stream) {
  const bool pinned = block_at(to) && block_at(from);
  if (!pinned && capture_of(stream) && breaks_capture(stream)) return refuse_wait();
  if (is_blocking(to, from, stream)) return copy(to, from, bytes);
  return copy_on(stream, to, from, bytes);
}
/// How often this process has waited for a card, and how many copies the processor took part in:
/// those of memory of the host that is not pinned.
EXPORTED unsigned stand_in_waits() { return waits - 1; }
EXPORTED unsigned stand_in_blocking_copies() { return blocking_copies; }
/// How many kernels this process has queued by a call of their own.
EXPORTED unsigned stand_in_launches() { return launches; }
EXPORTED cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                         cudaStream_t stream) {
  return copy_on(stream, to, from, bytes);
}
EXPORTED cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                       size_t from_pitch, size_t width, size_t height,
                                       cudaMemcpyKind, cudaStream_t stream) {
  const auto rows = [=] {
    for (size_t row = 0; row < height; ++row) {
      if (const cudaError_t error = copy(static_cast<char*>(to) + row * to_pitch,
                                         static_cast<const char*>(from) + row * from_pitch, width))
        return error;
    }
    return cudaSuccess;
  };
  return is_blocking(to, from, stream) ? rows() : queue(stream, rows);
}
EXPORTED cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return fill(memory, value, bytes);
}
EXPORTED cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return queue(stream, [=] { return fill(memory, value, bytes); });
}

// ---- streams and events

EXPORTED cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make(stream); }
EXPORTED cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return make(stream);
}
EXPORTED cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  wait_for(place_on(stream));
  delete reinterpret_cast<char*>(stream);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (capture_of(stream) && breaks_capture(stream)) return refuse_wait();
  wait_for(place_on(stream));
  return wait();
}
EXPORTED cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (is_running(place_on(stream))) return fail(cudaErrorNotReady);
  wait_for(place_on(stream));
  return cudaSuccess;
}
EXPORTED cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (capture_of(stream) != of(event).capture) {  // one of both is not captured
    static_cast<void>(breaks_capture());
    return fail(cudaErrorStreamCaptureIsolation);
  }
  wait_on(stream, of(event).place);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDeviceSynchronize() {
  if (breaks_capture()) return refuse_wait();
  wait_for_all();
  return wait();
}
EXPORTED cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call,
                                           void* data, unsigned) {
  wait_for(place_on(stream));
  call(stream, cudaSuccess, data);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaEventCreate(cudaEvent_t* event) { return make(event); }
EXPORTED cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make(event); }
EXPORTED cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &of(event);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (of(event).capture) return fail(cudaErrorCapturedEvent);
  if (is_running(of(event).place)) return fail(cudaErrorNotReady);
  const bool is_through = of(event).waits != waits && is_done(of(event).place);
  if (!is_through && of(event).asked++ < lag()) return fail(cudaErrorNotReady);
  wait_for(of(event).place);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (of(event).capture) return fail(cudaErrorCapturedEvent);
  wait_for(of(event).place);
  return wait();
}
EXPORTED cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record(event, stream);
}
EXPORTED cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return record(event, stream);
}
EXPORTED cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = static_cast<float>(of(end).ms - of(start).ms);
  return cudaSuccess;
}

// ---- kernels

EXPORTED void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
EXPORTED cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
EXPORTED cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t,
                                        cudaStream_t stream) {
  if (!has_kernels(card(current_device()))) return fail(cudaErrorNoKernelImageForDevice);
  const auto launch = [device = current_device()] {
    count_launch(device);
    return cudaSuccess;
  };
  ++launches;
  if (keep(stream, launch)) return cudaSuccess;
  note_launch(stream);
  launch();
  return with_context();
}
EXPORTED unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, cudaStream_t stream) {
  stream_of_launch() = stream;
  return 0;
}
EXPORTED cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                                void* stream) {
  *grid = *block = dim3{1, 1, 1};
  *shared = 0;
  *static_cast<cudaStream_t*>(stream) = stream_of_launch();
  return cudaSuccess;
}
EXPORTED cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = compiled_for(card(current_device()));
  return cudaSuccess;
}
EXPORTED cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks_of, const void*,
                                                                   int threads, size_t) {
  *blocks_of = threads > 0 ? 2048 / threads : 1;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks_of, const void* f, int threads, size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks_of, f, threads, shared);
}
EXPORTED cudaError_t cudaGetSymbolAddress(void** address, const void*) {
  static char symbol[1 << 16];
  *address = symbol;
  return cudaSuccess;
}
