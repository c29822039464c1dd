// Makes network namespaces, and carries packets between their devices with a rate and a delay.
#include "support/slow_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <system_error>

namespace tare::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kDevice = "tare0";
constexpr const char* kStorePort = "29500";
constexpr const char* kEnter = "/usr/bin/nsenter";
constexpr size_t kMostWaiting = 1000;  // packets of a line, as netem has by default
constexpr int kQueue = 1000;           // packets of the kernel, before they are read

std::string address_of(int64_t place) { return "10.77.0." + std::to_string(place + 1); }

void require(bool done, const char* what) {
  if (!done) throw std::system_error(errno, std::generic_category(), what);
}

void set_address(int socket, ifreq& request, unsigned long what, const std::string& address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  require(inet_pton(AF_INET, address.c_str(), &in.sin_addr) == 1, "inet_pton");
  std::memcpy(&request.ifr_addr, &in, sizeof in);
  require(ioctl(socket, what, &request) == 0, "setting an address");
}

void bring_up(int socket, const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  require(ioctl(socket, SIOCSIFFLAGS, &request) == 0, "bringing a device up");
}

struct Place {
  int space = -1, device = -1;  // descriptors
};

/// Makes a namespace with a device; called on a thread of its own, which is in the namespace then.
Place make_place(int64_t place) {
  require(unshare(CLONE_NEWNET) == 0, "a new network namespace");
  Place made;
  made.space = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  require(made.space >= 0, "/proc/thread-self/ns/net");
  made.device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  require(made.device >= 0, "/dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, kDevice, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  require(ioctl(made.device, TUNSETIFF, &request) == 0, "making a device");
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  require(socket >= 0, "a socket");
  set_address(socket, request, SIOCSIFADDR, address_of(place));
  set_address(socket, request, SIOCSIFNETMASK, "255.255.255.0");
  request.ifr_qlen = kQueue;
  require(ioctl(socket, SIOCSIFTXQLEN, &request) == 0, "setting a queue");
  bring_up(socket, kDevice);
  bring_up(socket, "lo");
  close(socket);
  return made;
}

/// Makes a place without moving this thread.
Place place_by_thread(int64_t place) {
  Place made;
  std::exception_ptr error;
  std::thread([&] {
    try {
      made = make_place(place);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
  return made;
}

struct Packet {
  Clock::time_point due;
  std::vector<char> bytes;
  size_t to = 0;
};

/// Holds the packets that a place has sent and that have not arrived.
struct Line {
  std::deque<Packet> waiting;
  Clock::time_point free{};  // when the last packet has left
};

/// Returns the place that a packet is for; `places` for one of another protocol or address.
size_t destination(const std::vector<char>& packet, size_t places) {
  constexpr size_t kHeader = 20, kAddress = 16;
  if (packet.size() < kHeader || packet.front() >> 4 != 4) return places;
  const auto last = static_cast<unsigned char>(packet[kAddress + 3]);
  return last >= 1 && last <= places ? last - 1U : places;
}

Clock::duration as_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

std::string SlowNetwork::unavailable() {
  if (geteuid() != 0) return "network namespaces need root";
  if (access(kEnter, X_OK) != 0) return "nsenter of util-linux is missing";
  try {
    const Place place = place_by_thread(0);
    close(place.device);
    close(place.space);
  } catch (const std::system_error& error) {
    return error.what();
  }
  return "";
}

SlowNetwork::SlowNetwork(int64_t places, LineOptions options) : options_(options) {
  for (int64_t place = 0; place < places; ++place) {
    const Place made = place_by_thread(place);
    namespaces_.push_back(made.space);
    devices_.push_back(made.device);
  }
  carrier_ = std::jthread([this](const std::stop_token& stop) { carry(stop); });
}

SlowNetwork::~SlowNetwork() {
  carrier_.request_stop();
  carrier_.join();
  for (const int one : devices_) close(one);
  for (const int one : namespaces_) close(one);
}

std::vector<std::string> SlowNetwork::command_in(int64_t place) const {
  const std::string own = "/proc/" + std::to_string(getpid()) + "/fd/";
  std::vector<std::string> words;
  words.emplace_back(kEnter);
  words.push_back("--net=" + own + std::to_string(namespaces_[static_cast<size_t>(place)]));
  return words;
}

std::vector<std::string> SlowNetwork::variables(int64_t rank) const {
  std::vector<std::string> all;
  const auto set = [&](const char* name, const std::string& value) {
    all.push_back(name);
    all.back() += '=';
    all.back() += value;
  };
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(namespaces_.size()));
  set("LOCAL_RANK", "0");
  set("LOCAL_WORLD_SIZE", "1");
  set("MASTER_ADDR", address_of(0));
  set("MASTER_PORT", kStorePort);
  set("GLOO_SOCKET_IFNAME", kDevice);
  return all;
}

void SlowNetwork::carry(const std::stop_token& stop) {
  std::vector<Line> lines(devices_.size());
  std::vector<pollfd> polled;
  for (const int device : devices_) polled.push_back({device, POLLIN, 0});
  std::array<char, 1 << 16> buffer{};
  const Clock::duration delay = as_duration(options_.delay_s);
  while (!stop.stop_requested()) {
    constexpr std::chrono::milliseconds kLongest{50};  // until the end is noticed
    Clock::time_point next = Clock::now() + kLongest;
    for (const Line& line : lines)
      if (!line.waiting.empty()) next = std::min(next, line.waiting.front().due);
    const auto left = std::max(next - Clock::now(), Clock::duration::zero());
    const timespec wait{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(left).count()};
    (void)ppoll(polled.data(), polled.size(), &wait, nullptr);
    for (size_t from = 0; from < lines.size(); ++from) {
      Line& line = lines[from];
      ssize_t count = 0;
      while ((count = read(devices_[from], buffer.data(), buffer.size())) > 0) {
        Packet packet{.due = {}, .bytes = {buffer.begin(), buffer.begin() + count}};
        packet.to = destination(packet.bytes, lines.size());
        if (packet.to == lines.size() || line.waiting.size() >= kMostWaiting) continue;
        const double takes = 8 * static_cast<double>(count) / options_.bits_per_s;
        line.free = std::max(line.free, Clock::now()) + as_duration(takes);
        packet.due = line.free + delay;
        line.waiting.push_back(std::move(packet));
      }
    }
    const Clock::time_point now = Clock::now();
    for (Line& line : lines)
      for (; !line.waiting.empty() && line.waiting.front().due <= now; line.waiting.pop_front()) {
        const Packet& packet = line.waiting.front();
        if (write(devices_[packet.to], packet.bytes.data(), packet.bytes.size()) > 0)
          carried_bytes_ += static_cast<int64_t>(packet.bytes.size());
      }
  }
}

}  // namespace tare::testing
