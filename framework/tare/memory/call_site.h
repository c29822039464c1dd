// Which line of the user's code allocated a block: call stacks as functions, files and lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tare::memory {

/// Describes one function of a call stack. Inlined functions are frames of their own.
struct Frame {
  std::string function{};  ///< with its parameters; empty if the symbol is not known
  std::string file{};      ///< as the compiler was given it; empty without -g1
  int line = 0;            ///< from 1; 0: unknown
};

/// Returns the frames of a stack (see capture_stack), innermost first; empty for stack 0. The first
/// call in a process reads the symbols of all loaded libraries, which takes about a second; the
/// work is done in this process. Thread-safe.
[[nodiscard]] std::vector<Frame> frames_of(uint32_t stack);

/// Names the line that answers for an allocation.
struct CallSite {
  std::string function{};  ///< without its parameters
  std::string file{};      ///< as the compiler was given it; empty: unknown
  int line = 0;            ///< from 1; 0: unknown

  /// Returns "/home/me/train.cpp:41 (train_step)"; the function alone where the line is unknown,
  /// "unknown" where that is too.
  [[nodiscard]] std::string str() const;
  /// Orders by function, then file, then line.
  // NOLINTNEXTLINE(modernize-use-nullptr): the linter means the 0 of the generated comparison.
  friend auto operator<=>(const CallSite&, const CallSite&) = default;
};

/// Returns the innermost frame that is not in LibTorch, the standard library, the system's headers
/// or Tare's framework. Where there is none, e.g. in the `tare` program, the innermost one of the
/// framework outside its memory library; where no frame has a line, the innermost known function of
/// the program itself. An unknown site for stack 0.
[[nodiscard]] CallSite site_of(uint32_t stack);

/// Returns the frames of a stack from that of site_of() outwards, for people: without the
/// allocator, LibTorch and what else lies inside it, and without what started the program or the
/// thread. All frames where there is no such site.
[[nodiscard]] std::vector<Frame> frames_from_site(uint32_t stack);

}  // namespace tare::memory
