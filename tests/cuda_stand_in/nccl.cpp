// Stands in for NCCL between the processes of one machine. A collective goes through memory that
// they share. A thread does it beside the program, as a card would: it waits for the other ranks,
// and ends without a result when the communicator is aborted.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <thread>

#include "cards.h"
#include "exported.h"
#include "memory.h"
#include "streams.h"

namespace {

using stand_in::current_device;

constexpr int kMostRanks = 8;
constexpr size_t kSlotBytes = size_t{256} << 10;  // of a collective that go through at once
constexpr std::chrono::seconds kToMeet{60};

/// Is what the ranks of a communicator share.
struct Shared {
  struct Rank {
    std::atomic<pid_t> process;  // 0: it has not come yet
    std::atomic<int> bus;        // of its card
    std::atomic<uint64_t> steps;
    std::atomic<bool> has_left;
  };
  Rank ranks[kMostRanks];
  alignas(64) char slots[kMostRanks][kSlotBytes];
};

/// Whether a process runs: one that was killed may be there until its parent has asked for it.
bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(')');
  return end != std::string::npos && text.find_first_of("ZX", end) != end + 2;
}

/// Returns what a communicator takes on its card.
size_t card_bytes() {
  static const size_t bytes = stand_in::setting("STAND_IN_NCCL_BYTES", size_t{4} << 20);
  return bytes;
}

void doze() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace

/// Is a rank's end of a communicator.
struct ncclComm {
  Shared* shared = nullptr;
  int rank = 0, size = 1, device = 0;
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> error{ncclSuccess};
  stand_in::Place last{};  // behind all collectives so far

  char* slot(int of) const { return shared->slots[of]; }

  /// Waits until all ranks have come as far; false where the communicator was aborted.
  bool meet() {
    const uint64_t step = ++shared->ranks[rank].steps;
    for (int other = 0; other < size; ++other) {
      for (int tries = 0; shared->ranks[other].steps < step; ++tries) {
        if (aborted) return false;
        // It goes on waiting after it has noticed, as a card does.
        if (shared->ranks[other].has_left ||
            (tries % 100 == 99 && !is_running(shared->ranks[other].process)))
          error = ncclRemoteError;
        doze();
      }
    }
    return !aborted;
  }
};

namespace {

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

template <class Sum>
Sum joined(Sum one, Sum other, ncclRedOp_t operation) {
  switch (operation) {
    case ncclProd:
      return static_cast<Sum>(one * other);
    case ncclMax:
      return std::max(one, other);
    case ncclMin:
      return std::min(one, other);
    default:
      return static_cast<Sum>(one + other);
  }
}

/// Joins the values in the slots of all ranks. Numbers of 16 bits are joined in float.
template <class T, class Sum = T>
void join(const ncclComm& comm, void* to, size_t bytes, ncclRedOp_t operation) {
  for (size_t i = 0; i < bytes / sizeof(T); ++i) {
    const auto value = [&](int rank) {
      T of_rank;
      std::memcpy(&of_rank, comm.slot(rank) + i * sizeof(T), sizeof(T));
      return static_cast<Sum>(of_rank);
    };
    Sum all = value(0);
    for (int rank = 1; rank < comm.size; ++rank) all = joined(all, value(rank), operation);
    if (operation == ncclAvg) all = static_cast<Sum>(all / static_cast<Sum>(comm.size));
    const T result = static_cast<T>(all);
    std::memcpy(static_cast<char*>(to) + i * sizeof(T), &result, sizeof(T));
  }
}

void join(const ncclComm& comm, void* to, size_t bytes, ncclDataType_t type,
          ncclRedOp_t operation) {
  switch (type) {
    case ncclInt8:
      return join<int8_t>(comm, to, bytes, operation);
    case ncclUint8:
      return join<uint8_t>(comm, to, bytes, operation);
    case ncclInt32:
      return join<int32_t>(comm, to, bytes, operation);
    case ncclInt64:
      return join<int64_t>(comm, to, bytes, operation);
    case ncclFloat16:
      return join<c10::Half, float>(comm, to, bytes, operation);
    case ncclBfloat16:
      return join<c10::BFloat16, float>(comm, to, bytes, operation);
    case ncclFloat32:
      return join<float>(comm, to, bytes, operation);
    default:
      return join<double>(comm, to, bytes, operation);
  }
}

/// Puts `bytes` of `from` into this rank's slot, part by part, and calls `read(offset, bytes)` for
/// each part when those of all ranks are there.
void exchange(ncclComm& comm, const char* from, size_t bytes,
              const std::function<void(size_t, size_t)>& read) {
  for (size_t at = 0; at < bytes; at += kSlotBytes) {
    const size_t part = std::min(kSlotBytes, bytes - at);
    if (from) std::memcpy(comm.slot(comm.rank), from + at, part);
    if (!comm.meet()) return;
    read(at, part);
    if (!comm.meet()) return;  // before the slots are filled anew
  }
}

ncclResult_t start(ncclComm* comm, cudaStream_t stream, std::function<void()> work) {
  if (comm->aborted) return ncclInvalidUsage;
  stand_in::note_launch(stream);
  stand_in::run_beside(stream, std::move(work));
  comm->last = stand_in::place_on(stream);
  return ncclSuccess;
}

ncclResult_t reduce(const void* from, void* to, size_t count, ncclDataType_t type,
                    ncclRedOp_t operation, ncclComm* comm, cudaStream_t stream, int root) {
  const size_t bytes = count * size_of(type);
  if (size_of(type) == 0 || operation >= ncclNumOps) return ncclInvalidArgument;
  return start(comm, stream, [=] {
    exchange(*comm, static_cast<const char*>(from), bytes, [&](size_t at, size_t part) {
      if (root < 0 || root == comm->rank)
        join(*comm, static_cast<char*>(to) + at, part, type, operation);
    });
  });
}

/// Ends a rank's part of a communicator, with what it has on its card.
void leave(ncclComm* comm) {
  comm->shared->ranks[comm->rank].has_left = true;
  stand_in::wait_for(comm->last);
  munmap(comm->shared, sizeof(Shared));
  stand_in::give(comm->device, card_bytes());
  delete comm;
}

}  // namespace

EXPORTED ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
EXPORTED const char* ncclGetErrorString(ncclResult_t error) {
  return error == ncclRemoteError ? "remote process exited or there was a network error"
                                  : "an error of NCCL's stand-in";
}
EXPORTED const char* ncclGetLastError(ncclComm_t) { return ""; }

EXPORTED ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof(id->internal), "/stand_in_nccl.%d.%08x%08x", getpid(),
                random(), random());
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclCommInitRankConfig(ncclComm_t* result, int size, ncclUniqueId id,
                                             int rank, ncclConfig_t*) {
  if (size > kMostRanks) return ncclInvalidArgument;
  const int file = shm_open(id.internal, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return ncclSystemError;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return ncclSystemError;
  auto& own = static_cast<Shared*>(memory)->ranks[rank];
  if (!stand_in::take(current_device(), card_bytes())) {
    own.has_left = true;
    munmap(memory, sizeof(Shared));
    return ncclUnhandledCudaError;
  }
  auto* const comm = new ncclComm;
  comm->shared = static_cast<Shared*>(memory);
  comm->rank = rank, comm->size = size, comm->device = current_device();
  own.bus = stand_in::card(current_device()).bus;
  own.process = getpid();
  const auto until = std::chrono::steady_clock::now() + kToMeet;
  for (int other = 0; other < size && comm->error == ncclSuccess; ++other)
    for (const auto& one = comm->shared->ranks[other];
         one.process == 0 && comm->error == ncclSuccess; doze())
      if (one.has_left || std::chrono::steady_clock::now() > until) comm->error = ncclRemoteError;
  if (comm->error == ncclSuccess) comm->meet();
  if (rank == 0) shm_unlink(id.internal);
  for (int other = 0; other < size; ++other)
    if (other != rank && comm->shared->ranks[other].bus == own.bus) comm->error = ncclInvalidUsage;
  const ncclResult_t error = comm->error;
  if (error == ncclSuccess)
    *result = comm;
  else
    leave(comm);
  return error;
}
EXPORTED ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}
// These functions accept that there is no communicator any more, as NCCL does.
EXPORTED ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm) leave(comm);
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  comm->aborted = true;
  leave(comm);
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  stand_in::wait_for(comm->last);
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->error;
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->size;
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                                    ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return reduce(from, to, count, type, operation, comm, stream, -1);
}
EXPORTED ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                                 ncclRedOp_t operation, int root, ncclComm_t comm,
                                 cudaStream_t stream) {
  return reduce(from, to, count, type, operation, comm, stream, root);
}
EXPORTED ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type,
                                    int root, ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * size_of(type);
  if (size_of(type) == 0) return ncclInvalidArgument;
  return start(comm, stream, [=] {
    const char* const sent = comm->rank == root ? static_cast<const char*>(from) : nullptr;
    exchange(*comm, sent, bytes, [&](size_t at, size_t part) {
      std::memcpy(static_cast<char*>(to) + at, comm->slot(root), part);
    });
  });
}
EXPORTED ncclResult_t ncclBcast(void* data, size_t count, ncclDataType_t type, int root,
                                ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(data, data, count, type, root, comm, stream);
}
EXPORTED ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                                    ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * size_of(type);
  if (size_of(type) == 0) return ncclInvalidArgument;
  return start(comm, stream, [=] {
    exchange(*comm, static_cast<const char*>(from), bytes, [&](size_t at, size_t part) {
      for (int rank = 0; rank < comm->size; ++rank)
        std::memcpy(static_cast<char*>(to) + static_cast<size_t>(rank) * bytes + at,
                    comm->slot(rank), part);
    });
  });
}
EXPORTED ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count,
                                        ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                                        cudaStream_t stream) {
  const size_t bytes = count * size_of(type);
  if (size_of(type) == 0 || operation >= ncclNumOps) return ncclInvalidArgument;
  return start(comm, stream, [=] {
    for (int owner = 0; owner < comm->size; ++owner)
      exchange(*comm, static_cast<const char*>(from) + static_cast<size_t>(owner) * bytes, bytes,
               [&](size_t at, size_t part) {
                 if (owner == comm->rank)
                   join(*comm, static_cast<char*>(to) + at, part, type, operation);
               });
  });
}
// Exchanges between two ranks are not played.
EXPORTED ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclInvalidUsage;
}
EXPORTED ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclInvalidUsage;
}
