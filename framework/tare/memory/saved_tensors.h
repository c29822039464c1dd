// Which storages autograd keeps for a backward: exact activations, by saved-tensor hooks.
#pragma once

namespace tare::memory {

/// Notes, while in scope, every tensor that autograd saves, so that snapshots distinguish
/// activations from what a forward allocated otherwise. A tensor saved inside is known until its
/// graph frees it, also after the scope. Costs a hook for each saved tensor inside, one branch for
/// each afterwards. Scopes may nest; process-wide.
///
/// The hooks come from an autograd engine derived from LibTorch's own, which install() puts in its
/// place for the life of the process. The constructor throws what install() throws.
class SavedTensors {
 public:
  SavedTensors();
  ~SavedTensors();
  SavedTensors(const SavedTensors&) = delete;
  SavedTensors& operator=(const SavedTensors&) = delete;

  /// Called by the first scope; and by init() where CUDA is loaded, because LibTorch starts the
  /// threads of a device's backward for one engine only, at the first backward. A second call does
  /// nothing. Throws StateError where another engine is installed, as under Python. Thread-safe.
  static void install();
  [[nodiscard]] static bool in_scope() noexcept;  ///< whether a scope is open, on any thread
  /// Whether a tensor on the storage that starts at `data` was noted and is still saved.
  /// Thread-safe.
  [[nodiscard]] static bool contains(const void* data);
};

}  // namespace tare::memory
