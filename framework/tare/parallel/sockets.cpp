// Finds the connections of this process, and those that are closed.
#include "tare/parallel/sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace tare::parallel {
namespace {

/// Names an open file by its number in the kernel; 0: the descriptor is closed.
ino_t file_of(int descriptor) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 ? about.st_ino : 0;
}

/// Returns an address and a port as "127.0.0.1 4711"; an empty text for one that is not of the
/// internet's protocols.
std::string to_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto named = [&](const void* number, in_port_t port) {
    ::inet_ntop(address.ss_family, number, text.data(), text.size());
    return std::string(text.data()) + ' ' + std::to_string(ntohs(port));
  };
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return named(&v4.sin_addr, v4.sin_port);
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return named(&v6.sin6_addr, v6.sin6_port);
}

/// Returns what `ask`, getsockname() or getpeername(), says of a socket.
std::string address_of(int descriptor, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const bool known = ask(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  return known ? to_text(address) : std::string();
}

/// Whether a connection to the address is made within a second.
bool connects(const addrinfo& to) {
  const int socket = ::socket(to.ai_family, to.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  bool connected = ::connect(socket, to.ai_addr, to.ai_addrlen) == 0;
  if (!connected && errno == EINPROGRESS) {
    constexpr int kMilliseconds = 1000;
    pollfd waited{socket, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    connected = ::poll(&waited, 1, kMilliseconds) > 0 &&
                ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }
  ::close(socket);
  return connected;
}

}  // namespace

bool answers(const std::string& host, int64_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &all) != 0) return false;
  bool found = false;
  for (const addrinfo* one = all; one && !found; one = one->ai_next) found = connects(*one);
  ::freeaddrinfo(all);
  return found;
}

Sockets Sockets::open() {
  Sockets found;
  DIR* folder = ::opendir("/proc/self/fd");
  if (!folder) return found;
  while (const dirent* entry = ::readdir(folder)) {
    const int descriptor = std::atoi(entry->d_name);
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 0)
      found.by_descriptor_[descriptor] = {.file = file_of(descriptor),
                                          .own = address_of(descriptor, ::getsockname),
                                          .other = address_of(descriptor, ::getpeername)};
  }
  ::closedir(folder);
  return found;
}

Sockets Sockets::without(const Sockets& others) const {
  Sockets rest;
  for (const auto& [descriptor, socket] : by_descriptor_) {
    const auto other = others.by_descriptor_.find(descriptor);
    if (other == others.by_descriptor_.end() || other->second.file != socket.file)
      rest.by_descriptor_[descriptor] = socket;
  }
  return rest;
}

std::vector<std::string> Sockets::own_addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [descriptor, socket] : by_descriptor_) addresses.push_back(socket.own);
  return addresses;
}

bool Sockets::is_any_closed() const {
  std::vector<pollfd> asked;
  for (const auto& [descriptor, socket] : by_descriptor_)
    asked.push_back({descriptor, POLLRDHUP, 0});
  return ::poll(asked.data(), asked.size(), 0) > 0;
}

std::vector<std::string> Sockets::closed_addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [descriptor, socket] : by_descriptor_) {
    pollfd asked{descriptor, POLLRDHUP, 0};
    if (file_of(descriptor) != socket.file || ::poll(&asked, 1, 0) > 0)
      addresses.push_back(socket.other);
  }
  return addresses;
}

void Sockets::shut_down() {
  for (const auto& [descriptor, socket] : by_descriptor_)
    if (file_of(descriptor) == socket.file) (void)::shutdown(descriptor, SHUT_RDWR);
  by_descriptor_.clear();
}

}  // namespace tare::parallel
