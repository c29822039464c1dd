// Service: what a server of predictions answers, whatever carries the requests.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tare/inference/predictor.h"
#include "tare/serve/batcher.h"

namespace tare::serve {

/// Holds a request of HTTP.
struct Request {
  std::string method{};        ///< "GET", "POST"
  std::string path{};          ///< "/predict", without the query
  std::string top{};           ///< the value of `top` in the query; empty: none
  std::string content_type{};  ///< of the body, without parameters, in lower case
  std::string_view body{};     ///< alive during the call
};

/// Holds the answer to a request.
struct Response {
  int status = 200;                       ///< of HTTP
  std::string type = "application/json";  ///< of the body
  std::string body{};                     ///< UTF-8
};

/// Sets how a Service answers.
struct ServiceOptions {
  BatcherOptions batcher{};    ///< how samples wait and are predicted together
  int64_t most_samples = 256;  ///< of one request, >= 1
};

/// Answers requests with the predictions of a bundle:
/// - `POST /predict` with JSON as read_request() takes it, or with the bytes of a picture; `?top=K`
///   classes of a picture;
/// - `GET /info`: what inspect_json() says of the bundle;
/// - `GET /health`: status 200, or 503 once the server stops;
/// - `GET /metrics`: counts and times in the text format of Prometheus.
/// An error is `{"error": text}` with its status. Thread-safe.
class Service {
 public:
  /// Takes the predictor, which outlives this object, and the description for /info.
  Service(Predictor& predictor, std::string info, const ServiceOptions& options);

  /// Answers a request. Throws nothing but std::bad_alloc.
  [[nodiscard]] Response answer(const Request& request);
  /// Lets /health fail and predictions be refused from now on; those that wait are answered.
  void stop();
  /// Returns the answer to a request that never came to answer(), and counts it.
  [[nodiscard]] Response refused(int status, const std::string& text);

 private:
  [[nodiscard]] Response routed(const Request& request);
  [[nodiscard]] std::string predicted(const Request& request);
  [[nodiscard]] std::string metrics() const;
  void count(int status, double seconds);

  Predictor& predictor_;
  std::string info_;
  ServiceOptions options_;
  Batcher batcher_;
  mutable std::mutex mutex_;
  bool stopping_ = false;             // this and the rest are guarded by mutex_
  std::map<int, int64_t> responses_;  // by status
  std::vector<int64_t> within_;       // requests of /predict by the bounds of the histogram
  int64_t predictions_ = 0;           // requests of /predict
  double seconds_ = 0;                // of them
};

}  // namespace tare::serve
