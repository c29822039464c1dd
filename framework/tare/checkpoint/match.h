// Matching named tensors, as when weights are loaded: what fits, what does not, and a copy that
// checks everything first.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tare/memory/named_tensor.h"

namespace tare::checkpoint {

/// Names a tensor that both sides have, with different shapes or dtypes.
struct Difference {
  std::string name;      ///< of the tensor, on both sides
  std::string expected;  ///< of the target, e.g. "float32 [10, 512]"
  std::string got;       ///< of the source
};

/// Lists the differences that compare() found; names are in the order of their list.
struct Match {
  std::vector<std::string> missing;     ///< targets that the source lacks
  std::vector<std::string> unexpected;  ///< source tensors that no target takes
  std::vector<Difference> different;    ///< e.g. a head for another number of classes

  /// Whether every tensor has its counterpart.
  [[nodiscard]] bool complete() const {
    return missing.empty() && unexpected.empty() && different.empty();
  }
  /// Returns one line: "missing: fc.weight (nearest: head.weight); unexpected: ...; different:
  /// fc.bias needs float32 [10], got float32 [3]"; at most 8 names of each kind. "all tensors fit"
  /// for a complete match.
  [[nodiscard]] std::string str() const;
};

/// Whether values of one dtype may be loaded into a tensor of another: the same, or both among
/// float32, bfloat16 and float16.
[[nodiscard]] bool converts(c10::ScalarType from, c10::ScalarType to);

/// Compares names, shapes and dtypes (see converts()). Never throws for a mismatch.
[[nodiscard]] Match compare(const std::vector<NamedTensor>& targets,
                            const std::vector<NamedTensor>& source);

/// Returns the prefix, such as "module." of PyTorch's DataParallel, that all names of `source` have
/// beyond what all targets have: whole parts of names, each with its dot. Empty: none.
[[nodiscard]] std::string surplus_prefix(const std::vector<NamedTensor>& targets,
                                         const std::vector<NamedTensor>& source);

/// Lists the tensors that copy_into() has skipped; both lists are empty if strict.
struct CopyReport {
  std::vector<std::string> fresh;    ///< targets that kept their values
  std::vector<std::string> ignored;  ///< source tensors that were not used
};

/// Copies a tensor into a target that it fits.
using CopyTensor = std::function<void(const NamedTensor& target, const at::Tensor& source)>;

/// Copies source into targets by name, in place, across devices, without autograd; float32 is
/// rounded to a target of 16 bits. All names, shapes and dtypes are checked before the first byte
/// is written. Strict: anything that does not fit throws FormatError(operation, path) naming the
/// first such tensor and listing the others, and no target has changed. Not strict: what fits is
/// copied. `copy`: does it in place of copy_(), for tensors that stand for others; may be empty.
CopyReport copy_into(const std::vector<NamedTensor>& targets,
                     const std::vector<NamedTensor>& source, bool strict,
                     std::string_view operation, const std::filesystem::path& path,
                     const CopyTensor& copy = {});

}  // namespace tare::checkpoint
