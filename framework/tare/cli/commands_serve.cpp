// `tare serve`: predictions by HTTP.
#include <cstdio>
#include <string>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/cli/handlers.h"
#include "tare/cli/trust.h"
#include "tare/inference/bundle_folder.h"
#include "tare/inference/inspect.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/init.h"
#include "tare/serve/http_server.h"

namespace tare::cli {
namespace {

constexpr const char* kServe = "tare serve";

int64_t bytes(const Arguments& arguments, const std::string& name, int64_t standard) {
  if (!arguments.has(name)) return standard;
  const auto value = parse_bytes(arguments.get(name));
  if (!value || *value < 1)
    throw ConfigError(kServe, "--" + name, "is no number of bytes", "such as 16MiB",
                      arguments.get(name));
  return *value;
}

}  // namespace

int serve_command(const Arguments& arguments) {
  trust_given(arguments, kServe);
  const serve::StopSignals signals;  // before any thread
  const std::string device = arguments.get("device", "cpu");
  runtime::check_device_name(device);
  const serve::HttpOptions http{
      .host = arguments.get("host", serve::HttpOptions{}.host),
      .port = static_cast<int>(arguments.number("port", serve::HttpOptions{}.port, 0, 65535)),
      .most_body_bytes = bytes(arguments, "max-body", serve::HttpOptions{}.most_body_bytes),
      .connections = static_cast<int>(
          arguments.number("connections", serve::HttpOptions{}.connections, 1, 10000))};
  serve::ServiceOptions options;
  options.batcher.batch = arguments.number("batch", options.batcher.batch, 1, 1 << 20);
  options.batcher.queue = arguments.number("queue", options.batcher.queue, 1, 1 << 20);
  options.batcher.timeout =
      std::chrono::duration<double>(static_cast<double>(arguments.number("timeout", 30, 1, 86400)));
  init({.threads = static_cast<int>(arguments.number("threads", 0, 0, 4096)),
        .cuda = device == "cpu" ? CudaMode::off : CudaMode::automatic});
  const auto bundle = bundle_at(arguments.positional().front());
  Predictor predictor(bundle, {.device = device});
  serve::Service service(predictor, inspect_json(bundle).text, options);
  serve::serve_http(service, http, signals, [&](int port) {
    std::printf("serving %s on http://%s:%d; POST /predict, GET /info, /health, /metrics\n",
                printable(bundle.string(), 1000).c_str(), http.host.c_str(), port);
    std::fflush(stdout);
  });
  return kSuccess;
}

}  // namespace tare::cli
