// CodeLine: the line of code that calls a function.
#pragma once

namespace tare {

/// Holds the file and line of a call. A function gets those of its caller by a default argument:
/// `void f(CodeLine line = CodeLine::current())`. It stands for std::source_location, which clang
/// 14 does not have with GCC's library, and has no column.
struct CodeLine {
  const char* file = "";  ///< as the compiler was given it; static
  int line = 0;           ///< from 1; 0: unknown

  /// Returns the line of the call, where this stands as the default of a parameter.
  [[nodiscard]] static constexpr CodeLine current(const char* file = __builtin_FILE(),
                                                  int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace tare
