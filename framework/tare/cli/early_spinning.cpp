// bound_spinning() before LibTorch is set up, which is most of a program's start: the program is
// executed anew 10 ms after its start in place of 200.
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "tare/runtime/threads.h"

namespace tare::cli {
namespace {

/// The loader calls it before the constructors of any library, so what it needs of the C library
/// must not have any: the environment is not there yet but as an argument.
void execute_anew(int, char** argv, char** environment) {
  std::vector<char*> more;
  for (char** entry = environment; *entry; ++entry) {
    const std::string_view variable = *entry;
    if (variable.starts_with("GOMP_SPINCOUNT=") || variable.starts_with("OMP_WAIT_POLICY=")) return;
    more.push_back(*entry);
  }
  std::string spin_count = std::string("GOMP_SPINCOUNT=") + kSpinCount;
  more.insert(more.end(), {spin_count.data(), nullptr});
  execve("/proc/self/exe", argv, more.data());
}

[[gnu::section(".preinit_array"), gnu::used]] void (*before_libraries)(int, char**,
                                                                       char**) = execute_anew;

}  // namespace
}  // namespace tare::cli
