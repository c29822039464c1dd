// Runs the functions of both C libraries as one try block each, and checks their options. Internal.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "tare/base/error.h"
#include "tare/c/tare.h"
#include "tare/runtime/exit_code.h"

static_assert(static_cast<int>(TARE_FAILED) == tare::kFailed);
static_assert(static_cast<int>(TARE_BAD_INPUT) == tare::kBadInput);
static_assert(static_cast<int>(TARE_OUT_OF_MEMORY) == tare::kOutOfMemory);
static_assert(static_cast<int>(TARE_IO) == tare::kIo);

namespace tare::c {

inline thread_local std::string last_error;

/// Runs the body of a function; returns its code. `describe` returns the ErrorText of an exception.
template <class Describe, class Body>
int guarded(const Describe& describe, const Body& body) noexcept {
  try {
    try {
      body();
      return TARE_OK;
    } catch (...) {
      const ErrorText error = describe(std::current_exception());
      last_error = error.text;
      return error.code;
    }
  } catch (...) {  // of a type that is no std::exception, or without memory for the text
    last_error.clear();
    return TARE_FAILED;
  }
}

[[noreturn]] inline void refuse(const char* call, const std::string& problem) {
  throw ConfigError(call, problem);
}

inline void check_given(const void* argument, const char* call, const char* name) {
  if (argument == nullptr) refuse(call, std::string(name) + " is null");
}

inline constexpr int kMostThreads = 4096;

/// Returns the options with the defaults of the members that an earlier header lacks.
inline tare_options complete(const tare_options* given) {
  tare_options all{};
  if (!given) return all;
  if (given->size < sizeof(uint32_t) || given->size > sizeof(tare_options))
    refuse("tare_open", "options.size is " + std::to_string(given->size) + ": allowed is up to " +
                            std::to_string(sizeof(tare_options)) +
                            ", that of the header of this library");
  std::memcpy(&all, given, given->size);
  if (all.threads < 0 || all.threads > kMostThreads)
    refuse("tare_open", "threads must be >= 0 and at most " + std::to_string(kMostThreads) +
                            ", got " + std::to_string(all.threads));
  return all;
}

/// Returns a copy of a text for tare_free().
inline char* copied(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace tare::c
