// Checkpoints: a directory from which training resumes, replaced atomically and verified to the
// last byte before it is used.
//
//   model.safetensors       parameters and buffers, by name
//   optimizer.safetensors   optimizer state, "<buffer>/<parameter>"; absent when there is none
//   extra.safetensors       other tensors, e.g. RNG states; absent when there are none
//   manifest.json           sizes, tensor hashes, versions, the caller's state; has a checksum of
//                           itself and is written last
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/memory/named_tensor.h"

namespace tare::checkpoint {

/// Holds the tensors and the state to save. The tensors may be on any device.
struct Contents {
  std::vector<NamedTensor> model{};      ///< parameters and buffers by name
  std::vector<NamedTensor> optimizer{};  ///< optimizer state by name; may be empty
  std::vector<NamedTensor> extra{};      ///< tensors of other objects; may be empty
  /// A JSON object (progress, schedule, callback states ...) of at most 16 MB and depth 30.
  std::string state = "{}";
};

/// Sets whether save() waits for the disk.
struct SaveOptions {
  /// Whether to wait until the whole checkpoint is on the disk; false: it is kept after a crash of
  /// the process, but not of the machine.
  bool flush = true;
};

/// Writes the checkpoint directory `path`, creating its parents. An older one is replaced once the
/// new one is complete (`path`.partial and `path`.old exist in the meantime); on any error it
/// stays. Waits for the device. Throws IoError; ConfigError for repeated names or tensors that
/// cannot be written (see safetensors.h); FormatError for a `state` that is no JSON object or
/// exceeds a limit.
void save(const std::filesystem::path& path, const Contents& contents,
          const SaveOptions& options = {});

/// Selects the parts of a checkpoint that load() reads.
struct LoadOptions {
  bool with_optimizer = true;  ///< also read and check optimizer.safetensors
};

/// Holds a verified checkpoint. The tensors are on the CPU, on the mapped file: they cost no
/// allocation, and stay valid after this object is gone or the directory is replaced.
struct Loaded {
  std::vector<NamedTensor> model{};      ///< parameters and buffers by name
  std::vector<NamedTensor> optimizer{};  ///< empty when not asked for
  std::vector<NamedTensor> extra{};      ///< tensors of other objects
  bool has_optimizer = false;            ///< the checkpoint holds optimizer state, read or not
  std::string state{};                   ///< the JSON object given to save(), with its keys sorted
  std::string tare_version{}, libtorch_version{};  ///< of the program that wrote it
};

/// Verifies sizes, headers and the hash of every tensor of the checkpoint at `path`, then returns
/// it. If there is only `path`.old (a process was killed between two renames), that is read;
/// `path`.partial never is. Changes nothing on the disk. Throws IoError; FormatError, naming tensor
/// or field, for a checkpoint that is truncated, altered, foreign, incomplete or of a newer format.
[[nodiscard]] Loaded load(const std::filesystem::path& path, const LoadOptions& options = {});

/// Whether `path` (or `path`.old, see load) has a manifest; does not verify it.
[[nodiscard]] bool exists(const std::filesystem::path& path);

}  // namespace tare::checkpoint
