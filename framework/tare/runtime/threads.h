// Processors that this process may use, and the threads of LibTorch's operators on the host.
#pragma once

#include <filesystem>

namespace tare {

/// Keeps LibTorch's OpenMP threads from spinning while they wait, which makes a run many times
/// slower on a busy machine. For a program's main(), before init(). The OpenMP runtime reads its
/// settings before main, so if the user set neither GOMP_SPINCOUNT nor OMP_WAIT_POLICY, this sets
/// the first and executes the program again, once. `argv` is that of main. Returns if there is
/// nothing to do or the program cannot be executed again.
void bound_spinning(char** argv);
inline constexpr const char* kSpinCount = "1000";  ///< what it sets
/// Bounds the spinning of the programs that this one will start: sets GOMP_SPINCOUNT in its
/// environment. Returns false where the user has set either.
bool bound_spinning_of_children();

namespace runtime {

/// Returns how many processors this process may use: the smaller of its affinity and its cgroup's
/// quota (rounded up, version 1 and 2), at least 1.
[[nodiscard]] int usable_processors(const std::filesystem::path& root = "/");

/// Sets the threads of one operator on the host. 0: keeps the number in OMP_NUM_THREADS, else
/// usable_processors().
void set_operator_threads(int threads);

}  // namespace runtime
}  // namespace tare
