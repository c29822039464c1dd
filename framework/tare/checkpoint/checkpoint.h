// Checkpoints: a directory from which a training run goes on, written so that at every moment the
// old or the new one is there, and believed only after every byte of it has been checked.
//
//   model.safetensors       parameters and buffers, by name
//   optimizer.safetensors   optimizer state, "<buffer>/<parameter>"; absent when there is none
//   extra.safetensors       other tensors, e.g. RNG states; absent when there are none
//   manifest.json           sizes, hash of every tensor, versions, the caller's state; sealed by a
//   checksum; written last
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/checkpoint/named_tensor.h"

namespace tare::checkpoint {

/// What a checkpoint holds. The tensors may be on any device.
struct Contents {
  std::vector<NamedTensor> model{};
  std::vector<NamedTensor> optimizer{};
  std::vector<NamedTensor> extra{};
  std::string state = "{}";  ///< a JSON object: progress, schedule, config, callback states ...; at
                             ///< most 16 MB, depth 30
};

struct SaveOptions {
  bool flush = true;  ///< wait until all of it is on the disk; without, it survives a crash of the
                      ///< process only
};

/// Writes the checkpoint directory `path`, whose parent is made where it is missing; an older one
/// is replaced after the new one is complete (`path`.partial and `path`.old come and go on the
/// way). On any error the old one stays. Waits for the device. Throws IoError; ConfigError for
/// names that repeat or tensors that cannot be written (see safetensors.h), FormatError for a
/// `state` that is no JSON object or passes a limit.
void save(const std::filesystem::path& path, const Contents& contents,
          const SaveOptions& options = {});

struct LoadOptions {
  bool with_optimizer = true;  ///< also read and check optimizer.safetensors
};

/// A verified checkpoint. The tensors are on the CPU, by memory map: they cost pages of the file,
/// not allocations, and live on after this object and after the directory is replaced.
struct Loaded {
  std::vector<NamedTensor> model{};
  std::vector<NamedTensor> optimizer{};  ///< empty when not asked for
  std::vector<NamedTensor> extra{};
  bool has_optimizer = false;  ///< the checkpoint holds optimizer state, read or not
  std::string state{};         ///< the JSON object given to save(), with its keys sorted
  std::string tare_version{}, libtorch_version{};  ///< that wrote it
};

/// Checks sizes, header and the hash of every tensor of the checkpoint at `path`, then returns all
/// of it. Where only `path`.old is there (a process was killed between two renames) that one is
/// read. `path`.partial is never believed. Changes nothing on the disk. Throws IoError for what
/// cannot be read; FormatError naming tensor or field for what is truncated, altered, foreign,
/// incomplete or of a newer format.
[[nodiscard]] Loaded load(const std::filesystem::path& path, const LoadOptions& options = {});

/// True where `path` (or `path`.old, see load) has a manifest; says nothing of its content.
[[nodiscard]] bool exists(const std::filesystem::path& path);

}  // namespace tare::checkpoint
