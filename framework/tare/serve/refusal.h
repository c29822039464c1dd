// Refusal: why a request gets no predictions, with the status of HTTP.
#pragma once

#include <stdexcept>
#include <string>

namespace tare::serve {

/// Ends a request. what() is for the client.
class Refusal : public std::runtime_error {
 public:
  /// Takes a status of 400 or above.
  Refusal(int http_status, const std::string& text)
      : std::runtime_error(text), status_(http_status) {}
  [[nodiscard]] int status() const { return status_; }  ///< of HTTP

 private:
  int status_;
};

}  // namespace tare::serve
