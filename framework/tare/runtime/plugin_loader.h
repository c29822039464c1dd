// Loads the CUDA plug-in at run time.
#pragma once

#include <string>

namespace tare::runtime {

/// Loads libtare_cuda.so from ../lib or the folder of the program, else from where the system looks
/// for libraries; it adds its backends. Returns "" when CUDA is ready, else why it is not. Throws
/// what the plug-in rejects: ConfigError.
[[nodiscard]] std::string load_cuda_plugin();

}  // namespace tare::runtime
