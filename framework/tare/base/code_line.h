// CodeLine: the line of code that calls a function.
#pragma once

namespace tare {

/// As a default argument, the place of the call: `void f(CodeLine line = CodeLine::current())`.
/// What std::source_location is for, which clang 14 does not have with GCC's library; without the
/// column.
struct CodeLine {
  const char* file = "";  ///< as the compiler was given it; static
  int line = 0;

  [[nodiscard]] static constexpr CodeLine current(const char* file = __builtin_FILE(),
                                                  int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace tare
