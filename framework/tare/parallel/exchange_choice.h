// Chooses by what the ranks of a job exchange the tensors of their devices. Internal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tare::parallel {

/// Describes where a rank holds its tensors, and what it would exchange them by. A value.
struct RankPlace {
  std::string backend{};   ///< GroupOptions::backend
  std::string host{};      ///< name of its machine
  std::string device{};    ///< such as cuda:0, or cpu
  std::string library{};   ///< that exchanges tensors between such devices; empty: none
  std::string hardware{};  ///< memory::Collectives::hardware(); empty: not known
};

/// Holds how tensors of devices are exchanged.
struct ExchangeChoice {
  bool direct = false;  ///< between the devices, by their library; else through the host
  std::string why{};    ///< the reason why it is not direct
};

/// Chooses for ranks in their order, which are at least one. "auto" takes the devices' library
/// where all ranks have it and each has hardware of its own. Throws ConfigError, with one text on
/// all ranks, where they ask for different backends, or for a library that cannot connect them.
[[nodiscard]] ExchangeChoice choose_exchange(const std::vector<RankPlace>& ranks);
/// Returns the place as text, for other ranks.
[[nodiscard]] std::string to_text(const RankPlace& place);
[[nodiscard]] RankPlace parse_place(const std::string& text);  ///< reverses to_text()

/// Returns "rank 1" or "ranks 1, 3".
[[nodiscard]] std::string named(const std::vector<int64_t>& ranks);

}  // namespace tare::parallel
