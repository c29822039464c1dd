// XXH3 for the checkpoint sources; on x86-64 the library picks AVX2 or AVX-512 at run time.
// Internal.
#pragma once

#define XXH_STATIC_LINKING_ONLY  // for a state on the stack
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#endif
