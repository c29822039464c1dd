// For which cards a LibTorch has kernels. Internal.
#pragma once

#include <string>
#include <vector>

namespace tare::cuda {

/// Holds a compute capability such as 9.0, or the compiled kernels for one.
struct Capability {
  int major = 0, minor = 0;

  /// Returns "9.0".
  [[nodiscard]] std::string str() const;
};

/// Lists what a LibTorch was compiled for, by the words of its configuration: `code=sm_90` are
/// kernels, `code=compute_90` is what a driver compiles for later cards. Empty where it has no such
/// word.
struct KernelImages {
  std::vector<Capability> compiled{};  ///< run on cards of their major version from their minor on
  std::vector<Capability> sources{};   ///< run on all cards from theirs on

  /// Reads the words; ignores kernels for one model only, such as sm_90a.
  [[nodiscard]] static KernelImages parse(const std::string& configuration);
  /// Whether a card can run the kernels; true where nothing is known of them.
  [[nodiscard]] bool run_on(Capability card) const;
  /// Returns "7.5, 8.0, 9.0".
  [[nodiscard]] std::string str() const;
};

}  // namespace tare::cuda
