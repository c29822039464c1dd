// Snapshot: what holds the memory of a device at one moment, by category and by holder.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/memory/call_site.h"

namespace tare::memory {

/// Gives the holder's name of what libraries of a device keep, as cuBLAS its workspace.
inline constexpr const char* kLibraries = "libraries of the device";

/// Groups blocks that are alive for the same reason: one entry of a ledger, or blocks of no ledger
/// that were allocated in the same phase and, inside CallSites, at the same line.
struct Holder {
  std::optional<Category> category{};  ///< unset: unexplained
  std::string name{};                  ///< in the ledger, "layer1.0.conv1.weight"; else empty,
                                       ///< or kLibraries for what libraries of the device keep
  std::string phase{};                 ///< in which the blocks of no ledger were allocated
  CallSite site{};                     ///< that allocated the blocks of no ledger
  int64_t bytes = 0;                   ///< of all storages or blocks of the line
  int64_t count = 0;                   ///< storages or blocks of the line

  /// Returns "24.0 MiB in 12 blocks: activations, born in phase forward at /home/me/train.cpp:41".
  [[nodiscard]] std::string str() const;
};

/// Sums the live blocks of one device by what they are for. The sum of the categories plus
/// `unexplained_bytes` is `allocated_bytes`, always. A value.
struct Snapshot {
  c10::Device device = c10::kCPU;  ///< whose blocks these are
  int64_t allocated_bytes = 0;     ///< of all live blocks; CUDA: rounded up to 512 each
  CategoryBytes categories{};      ///< `mapped` stays 0: no allocation
  int64_t library_bytes = 0;       ///< of the workspace: what libraries of the device keep
  int64_t unexplained_bytes = 0;   ///< in no ledger, and not of the work under way
  std::vector<Holder> holders{};   ///< largest first; their bytes sum to `allocated_bytes`

  /// Returns "parameters 3.1 MiB, activations 24.0 MiB, unexplained 0 B".
  [[nodiscard]] std::string summary() const;
  /// Returns the summary and the `top` largest holders, a line each, ending with a newline.
  [[nodiscard]] std::string str(size_t top = 10) const;
};

/// Takes a snapshot; categories are assigned now, so that an allocation pays nothing for them.
///
/// A block in the ledger of a living Accountable has the category it has there. What a library of
/// the device keeps (LiveBlock::library_workspace) is workspace. Of the others,
/// those allocated in the newest step (see phase.h) belong to the work under way: in phase forward
/// of a step that is not over, activations, or, inside SavedTensors, activations if autograd saved
/// them and workspace if not; in its phases backward and step, workspace; in phase data, batch; in
/// a phase that is still in force, workspace, or `other` for a phase of your own. The rest is
/// unexplained.
///
/// Call it on the thread that drives the training. Waits for idle loader workers, not for the
/// device. Its time grows with the number of live blocks; call sites are read as in site_of().
[[nodiscard]] Snapshot take_snapshot(c10::Device device);
/// Takes a snapshot with a given ledger instead of the living objects' ledgers, from any thread.
[[nodiscard]] Snapshot take_snapshot(c10::Device device, const Ledger& ledger);

}  // namespace tare::memory
