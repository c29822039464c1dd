// A port of this machine for programs that a test starts.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

namespace tare::testing {

/// Returns a port of 127.0.0.1 on which nobody listens now, below those that the system gives to
/// connections by itself; 0: none was found.
inline int free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> any(20'000, 32'000);
  for (int tries = 0; tries < 100; ++tries) {
    const int port = any(random);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<in_port_t>(port));
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    const bool is_free =
        ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (is_free) return port;
  }
  return 0;
}

}  // namespace tare::testing
