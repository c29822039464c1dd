// Routes requests, predicts, and counts.
#include "tare/serve/service.h"

#include <array>
#include <charconv>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/inference/json_predict.h"
#include "tare/runtime/exit_code.h"
#include "tare/serve/refusal.h"
#include "tare/transform/image.h"

namespace tare::serve {
namespace {

/// Holds the upper bounds of the histogram of seconds.
constexpr std::array kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5};

std::string error_json(const std::string& text) {
  return nlohmann::json{{"error", text}}.dump(-1, ' ', false,
                                              nlohmann::json::error_handler_t::replace);
}

bool is_picture(const std::string& type) {
  return type.starts_with("image/") || type == "application/octet-stream";
}

int64_t top_of(const std::string& text) {
  int64_t top = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), top);
  if (error != std::errc() || end != text.data() + text.size() || top < 1)
    throw Refusal(400, "top must be a whole number >= 1");
  return top;
}

std::string number(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// Returns the status for an error of a prediction: that of a client, or of the server.
int status_of(const ErrorText& error) {
  return error.code == kBadInput ? 400 : error.code == kOutOfMemory ? 503 : 500;
}

}  // namespace

Service::Service(Predictor& predictor, std::string info, const ServiceOptions& options)
    : predictor_(predictor),
      info_(std::move(info)),
      options_(options),
      batcher_(predictor, options.batcher),
      within_(kBounds.size()) {}

Response Service::answer(const Request& request) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Response response;
  try {
    response = routed(request);
  } catch (const Refusal& refusal) {
    response = {.status = refusal.status(), .body = error_json(refusal.what())};
  } catch (const std::exception&) {
    const ErrorText error = describe_error(std::current_exception());
    response = {.status = status_of(error), .body = error_json(error.text)};
    if (response.status >= 500) log::error(error.text);
  }
  const std::chrono::duration<double> seconds = Clock::now() - start;
  count(response.status, request.path == "/predict" ? seconds.count() : -1);
  return response;
}

Response Service::refused(int status, const std::string& text) {
  count(status, -1);
  return {.status = status, .body = error_json(text)};
}

void Service::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  batcher_.stop();
}

Response Service::routed(const Request& request) {
  const auto require = [&](const char* method) {
    const bool is_head = request.method == "HEAD" && std::string_view(method) == "GET";
    if (request.method != method && !is_head)
      throw Refusal(405, request.path + " takes " + method + ", got " + request.method);
  };
  if (request.path == "/predict") {
    require("POST");
    return {.body = predicted(request)};
  }
  if (request.path == "/info") {
    require("GET");
    return {.body = info_};
  }
  if (request.path == "/metrics") {
    require("GET");
    return {.type = "text/plain; version=0.0.4", .body = metrics()};
  }
  if (request.path == "/health") {
    require("GET");
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Refusal(503, "the server stops");
    return {.body = R"({"status":"ok"})"};
  }
  throw Refusal(404, "there are POST /predict, GET /info, GET /health and GET /metrics");
}

std::string Service::predicted(const Request& request) {
  JsonRequest asked;
  if (is_picture(request.content_type)) {
    if (predictor_.sample_kind() != SampleKind::image)
      throw Refusal(415, "the model takes no pictures: send application/json, see /info");
    const at::Tensor pixels = decode_image(std::as_bytes(std::span(request.body)), "the body",
                                           predictor_.sample_shape().front());
    asked.samples.emplace_back(predictor_.picture_input(pixels));
  } else if (request.content_type.empty() || request.content_type == "application/json") {
    asked = read_request(request.body, predictor_, options_.most_samples);
  } else {
    throw Refusal(415, "the body must be application/json or a picture, such as image/png");
  }
  if (!request.top.empty()) asked.top = top_of(request.top);
  if (asked.top && !gives_classes(predictor_.manifest()))
    throw Refusal(400, "top is for a model of classes, and the outputs of this one are values");
  const std::vector<Outputs> outputs = batcher_.predict(std::move(asked.samples));
  return response_json(predictor_, outputs, asked.top);
}

void Service::count(int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++responses_[status];
  if (seconds < 0) return;
  ++predictions_;
  seconds_ += seconds;
  for (size_t i = 0; i < kBounds.size(); ++i)
    if (seconds <= kBounds[i]) ++within_[i];
}

std::string Service::metrics() const {
  const BatcherFigures figures = batcher_.figures();
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto head = [&](const char* name, const char* type, const char* help) {
    text += std::string("# HELP ") + name + ' ' + help + "\n# TYPE " + name + ' ' + type + '\n';
  };
  const auto value = [&](const char* name, const char* type, const char* help, double now) {
    head(name, type, help);
    text += std::string(name) + ' ' + number(now) + '\n';
  };
  head("tare_responses_total", "counter", "Responses by status.");
  for (const auto& [status, responses] : responses_)
    text += "tare_responses_total{status=\"" + std::to_string(status) + "\"} " +
            std::to_string(responses) + '\n';
  head("tare_predict_seconds", "histogram", "Time from a request of /predict to its response.");
  for (size_t i = 0; i < kBounds.size(); ++i)
    text += "tare_predict_seconds_bucket{le=\"" + number(kBounds[i]) + "\"} " +
            std::to_string(within_[i]) + '\n';
  text += "tare_predict_seconds_bucket{le=\"+Inf\"} " + std::to_string(predictions_) +
          "\ntare_predict_seconds_sum " + number(seconds_) + "\ntare_predict_seconds_count " +
          std::to_string(predictions_) + '\n';
  value("tare_samples_total", "counter", "Samples that were predicted.",
        static_cast<double>(figures.samples));
  value("tare_batches_total", "counter",
        "Groups of samples that were taken from the queue together.",
        static_cast<double>(figures.batches));
  value("tare_model_seconds_total", "counter", "Time in which the model worked.", figures.seconds);
  value("tare_samples_waiting", "gauge", "Samples that wait for a batch.",
        static_cast<double>(figures.waiting));
  return text;
}

}  // namespace tare::serve
