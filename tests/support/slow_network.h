// A network of this machine that has the rate and the delay of a real one, for ranks in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tare::testing {

/// Sets the line of each place of a network.
struct LineOptions {
  double bits_per_s = 100e6;  ///< in which the place sends
  double delay_s = 0.010;     ///< of each packet, one way
};

/// Is a network namespace for each place, joined by packets that this process carries: they leave a
/// place by the rate of its line and arrive after its delay, as with the kernel's queue netem,
/// which not every kernel has. Needs root and /dev/net/tun. The namespaces end with the object and
/// the processes in them.
class SlowNetwork {
 public:
  /// Makes the namespaces and begins to carry packets. Throws std::system_error.
  explicit SlowNetwork(int64_t places, LineOptions options = {});
  ~SlowNetwork();
  SlowNetwork(const SlowNetwork&) = delete;
  SlowNetwork& operator=(const SlowNetwork&) = delete;

  /// Returns why this process cannot make such a network; empty: it can.
  [[nodiscard]] static std::string unavailable();

  /// Returns the command that runs, in a place, the command behind it.
  [[nodiscard]] std::vector<std::string> command_in(int64_t place) const;
  /// Returns the variables by which a rank in its place meets the others: rank 0 serves the store.
  [[nodiscard]] std::vector<std::string> variables(int64_t rank) const;
  /// Returns the bytes of the packets that were carried so far.
  [[nodiscard]] int64_t carried_bytes() const { return carried_bytes_; }

 private:
  void carry(const std::stop_token& stop);

  LineOptions options_;
  std::vector<int> namespaces_, devices_;  // descriptors, by place
  std::atomic<int64_t> carried_bytes_ = 0;
  std::jthread carrier_;
};

}  // namespace tare::testing
