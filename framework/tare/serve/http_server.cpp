// Carries requests and responses with cpp-httplib.
#include "tare/serve/http_server.h"

#include <httplib.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>

#include "tare/base/error.h"
#include "tare/base/log.h"

namespace tare::serve {
namespace {

constexpr std::chrono::seconds kGrace{15};  // for requests that have begun, after a signal

/// Returns "application/json" of "Application/JSON; charset=utf-8".
std::string type_of(const httplib::Request& request) {
  std::string type = request.get_header_value("Content-Type");
  type.resize(std::min(type.find(';'), type.size()));
  std::erase_if(type, [](unsigned char c) { return std::isspace(c) != 0; });
  std::ranges::transform(type, type.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type;
}

void send(const Response& response, httplib::Response& to) {
  to.status = response.status;
  to.set_content(response.body, response.type);
  if (response.status == 503) to.set_header("Retry-After", "1");
}

/// Sends a response to a request whose body is not read to its end.
void send_last(const Response& response, httplib::Response& to) {
  send(response, to);
  to.set_header("Connection", "close");
}

/// Answers a request whose body, if it has one, is in memory.
void answer(Service& service, const httplib::Request& request, std::string_view body,
            httplib::Response& response) {
  send(service.answer({.method = request.method,
                       .path = request.path,
                       .top = request.get_param_value("top"),
                       .content_type = type_of(request),
                       .body = body}),
       response);
}

void set_routes(httplib::Server& server, Service& service, const HttpOptions& options) {
  constexpr const char* kAny = ".*";
  server.Get(kAny, [&](const httplib::Request& request, httplib::Response& response) {
    answer(service, request, "", response);
  });
  // The library bounds what a request announces; a body in chunks announces nothing.
  const httplib::Server::HandlerWithContentReader with_body =
      [&service, most = static_cast<size_t>(options.most_body_bytes)](
          const httplib::Request& request, httplib::Response& response,
          const httplib::ContentReader& read) {
        if (request.is_multipart_form_data())
          return send_last(service.refused(415, "the body must be JSON or a picture, and no form"),
                           response);
        std::string body;
        if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding"))
          return answer(service, request, body, response);  // there is none
        bool fits = true;
        const bool complete = read([&](const char* data, size_t size) {
          fits = body.size() + size <= most;
          if (fits) body.append(data, size);
          return fits;
        });
        const bool announced_too_much = response.status == 413;  // set by the library
        if (!fits || announced_too_much)
          return send_last(
              service.refused(413, "the body has more than the " + std::to_string(most) +
                                       " bytes that the server takes"),
              response);
        if (!complete) return send_last(service.refused(400, "the body broke off"), response);
        answer(service, request, body, response);
      };
  server.Post(kAny, with_body);
  server.Put(kAny, with_body);
  server.Patch(kAny, with_body);
  server.Delete(kAny, with_body);
  server.Options(kAny, [&](const httplib::Request& request, httplib::Response& response) {
    answer(service, request, "", response);
  });
  server.set_error_handler([&](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty())
      send(service.refused(response.status, response.status == 413
                                                ? "the body has more bytes than the server takes"
                                                : "the request cannot be read"),
           response);
  });
  server.set_exception_handler(
      [&](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
        send(service.refused(500, "the server has no memory for the request"), response);
      });
}

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void StopSignals::wait() const {
  const sigset_t signals = stop_signals();
  int signal = 0;
  sigwait(&signals, &signal);
}

void serve_http(Service& service, const HttpOptions& options, const StopSignals& signals,
                const std::function<void(int port)>& on_ready) {
  if (options.port < 0 || options.port > 65535)
    throw ConfigError("serve", "port", "is no port", "0 to 65535", std::to_string(options.port));
  if (options.connections < 1 || options.most_body_bytes < 1 || options.idle_seconds < 1)
    throw ConfigError("serve", "an option of the server is below 1");
  httplib::Server server;
  server.new_task_queue = [&options] {
    return new httplib::ThreadPool(static_cast<size_t>(options.connections));
  };
  server.set_payload_max_length(static_cast<size_t>(options.most_body_bytes));
  server.set_keep_alive_max_count(1'000'000);
  server.set_keep_alive_timeout(options.idle_seconds);
  server.set_read_timeout(options.idle_seconds);
  server.set_write_timeout(options.idle_seconds);
  server.set_tcp_nodelay(true);
  // The library's own options let two servers share a port.
  socket_t listener = INVALID_SOCKET;
  server.set_socket_options([&listener](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    listener = socket;
  });
  set_routes(server, service, options);
  errno = 0;
  const int port = options.port == 0 ? server.bind_to_any_port(options.host)
                   : server.bind_to_port(options.host, options.port) ? options.port
                                                                     : -1;
  if (port <= 0)
    throw IoError("serve", options.host + ":" + std::to_string(options.port),
                  errno != 0 ? errno : EADDRNOTAVAIL);
  // The library keeps five connections that are not accepted yet: of more at once, some are reset.
  ::listen(listener, SOMAXCONN);
  std::thread listening([&] { server.listen_after_bind(); });
  on_ready(port);
  signals.wait();
  service.stop();
  // A client that sends its request byte by byte does not keep the process.
  const std::jthread watchdog([](const std::stop_token& ended) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wakes;
    if (wakes.wait_for(lock, ended, kGrace, [&] { return ended.stop_requested(); })) return;
    log::warning("a request is still being sent: the server ends without it");
    std::_Exit(0);
  });
  server.stop();
  listening.join();
}

}  // namespace tare::serve
