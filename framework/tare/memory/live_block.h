// LiveBlock: a block of memory that an allocator has given and not taken back.
#pragma once

#include <cstdint>

namespace tare::memory {

/// Describes a block that is alive.
struct LiveBlock {
  const void* data = nullptr;  ///< its first byte; not to be read
  int64_t bytes = 0;           ///< size of the block, > 0
  uint64_t sequence = 0;       ///< number in order of allocation on its device, from 1
  uint32_t phase = 0;          ///< id of the phase it was allocated in, see phase.h
  uint32_t stack = 0;          ///< number of the call stack, 0 outside CallSites; see call_stack.h
  uint32_t step = 0;           ///< number of the newest step at that time, see phase.h
  bool library_workspace = false;  ///< a library of the device keeps it, as cuBLAS its workspace
};

}  // namespace tare::memory
