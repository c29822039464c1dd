// Loads the CUDA plug-in at run time.
#pragma once

namespace tare::runtime {

/// Loads libtare_cuda.so from ../lib or the folder of the program, else from where the system looks
/// for libraries; it adds its backends. Returns whether CUDA is ready; if not, why_absent("cuda")
/// says why. Throws what the plug-in rejects: ConfigError.
[[nodiscard]] bool load_cuda_plugin();

}  // namespace tare::runtime
