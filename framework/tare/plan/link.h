// Link and Cluster: by what devices exchange data, and how long that takes by a model.
#pragma once

#include <cstdint>
#include <string>

namespace tare::plan {

/// Describes a connection between two devices. A value.
struct Link {
  double bytes_per_s = 0;  ///< in one direction, > 0
  double latency_s = 0;    ///< until the first byte of a message arrives, >= 0

  /// Returns the seconds that a message takes.
  [[nodiscard]] double seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }
  /// Returns "3 GB/s, 50 us".
  [[nodiscard]] std::string str() const;
};

/// Describes machines with as many devices each, which ranks fill one after the other. A value. The
/// defaults are those of exchanges by Gloo: inside a machine what tests/bench/bench_ranks.cpp has
/// measured over the loopback with a core for each rank, and between machines the bandwidth of an
/// Ethernet of 25 Gbit/s (docs/scale.md).
struct Cluster {
  int64_t per_machine = 8;                                    ///< devices of a machine, >= 1
  Link inside{.bytes_per_s = 2.4e9, .latency_s = 70e-6};      ///< of a machine
  Link between{.bytes_per_s = 3.125e9, .latency_s = 100e-6};  ///< of machines

  /// Returns the link that bounds an exchange in which each of so many ranks takes part: one inside
  /// a machine, or else the lesser bandwidth and the greater latency of the two.
  [[nodiscard]] Link of(int64_t ranks) const;
};

/// Returns the seconds of a sum over all ranks by a ring: 2 (N - 1) messages of a part of N one
/// after the other (Thakur et al. 2005, "Optimization of Collective Communication Operations in
/// MPICH"; Patarasuk and Yuan 2009, "Bandwidth Optimal All-reduce Algorithms for Clusters of
/// Workstations"). It is how Gloo sums (gloo/allreduce.cc).
[[nodiscard]] double all_reduce_s(int64_t ranks, double bytes, const Link& link);
/// Returns the seconds of a sum whose result one rank gets: N - 1 such messages, and then the parts
/// of all others to that rank (gloo/reduce.cc).
[[nodiscard]] double reduce_s(int64_t ranks, double bytes, const Link& link);
/// Returns the seconds of one rank's message to all others by a binomial tree: ceil(log2 N) rounds
/// (Thakur et al. 2005; gloo/broadcast.cc).
[[nodiscard]] double broadcast_s(int64_t ranks, double bytes, const Link& link);
/// Returns the seconds in which all ranks get a few numbers of each other: N - 1 messages in a ring
/// (gloo/allgather.cc).
[[nodiscard]] double agree_s(int64_t ranks, const Link& link);

/// Reads "25GB/s,5us": a bandwidth in bytes (kB, MB, GB of 1000, KiB, MiB, GiB of 1024) or bits
/// (kbit, Mbit, Gbit of 1000) by the second, and a latency in us, ms or s. `option`: what holds the
/// text, for the ConfigError of any other text.
[[nodiscard]] Link parse_link(const std::string& text, const std::string& option);
/// Reads "5us", "20ms" or "0.5s", above 0, likewise.
[[nodiscard]] double parse_seconds(const std::string& text, const std::string& option);
/// Reads "120TFLOP/s": operations by the second in units of M, G, T or P, above 0, likewise.
[[nodiscard]] double parse_rate(const std::string& text, const std::string& option);

}  // namespace tare::plan
