// Serves the answers of a Service by HTTP/1.1.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tare/serve/service.h"

namespace tare::serve {

/// Sets where and within which bounds a server listens.
struct HttpOptions {
  std::string host = "127.0.0.1";  ///< an address of this machine; 0.0.0.0: all of them
  int port = 8080;                 ///< 0: any that is free
  int64_t most_body_bytes = int64_t{16} << 20;  ///< of a request, also one that comes in chunks
  int connections = 64;                         ///< that are served at a time, >= 1
  int idle_seconds = 5;                         ///< after which a silent connection is closed
};

/// Holds SIGINT and SIGTERM back from the calling thread and the threads that it starts later, for
/// the life of the process. Make it before any other thread.
class StopSignals {
 public:
  StopSignals();
  void wait() const;  ///< returns when one of them has come
};

/// Listens until a signal, and then answers the requests that have come before it returns; one that
/// is still being sent 15 seconds later is given up with the process. Calls
/// `on_ready` with the port once clients can connect. Throws ConfigError for an option out of
/// range, IoError where it cannot listen.
void serve_http(Service& service, const HttpOptions& options, const StopSignals& signals,
                const std::function<void(int port)>& on_ready);

}  // namespace tare::serve
