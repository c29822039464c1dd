// Sockets: the connections of a process to others. Internal.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tare::parallel {

/// Whether a server takes a connection at this name or address and port within a second. Makes one
/// and closes it.
[[nodiscard]] bool answers(const std::string& host, int64_t port);

/// Lists connections of this process. It does not own them: who does may close them meanwhile, and
/// a descriptor may then be that of another file.
class Sockets {
 public:
  /// Lists none.
  Sockets() = default;
  /// Lists all connections that are open.
  [[nodiscard]] static Sockets open();
  /// Returns the connections that are not among `others`.
  [[nodiscard]] Sockets without(const Sockets& others) const;

  /// Returns the address and port of this end of each connection.
  [[nodiscard]] std::vector<std::string> own_addresses() const;
  /// Whether either end has closed one of them.
  [[nodiscard]] bool is_any_closed() const;
  /// Returns the addresses and ports of the other ends of those that either end has closed.
  [[nodiscard]] std::vector<std::string> closed_addresses() const;
  /// Closes both directions of all connections, and lists none any more. Their descriptors stay
  /// open.
  void shut_down();

 private:
  struct Socket {
    ino_t file;  // the number in the kernel
    std::string own;
    std::string other;
  };
  std::map<int, Socket> by_descriptor_;
};

}  // namespace tare::parallel
