// tare-predict: classes and probabilities of images by a bundle. Links what predicting needs and
// nothing else.
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/signals.h"
#include "tare/cli/arguments.h"
#include "tare/inference/predictor.h"
#include "tare/memory/device.h"
#include "tare/memory/exit_code.h"
#include "tare/memory/init.h"

namespace {

using namespace tare;
using namespace tare::cli;

struct Request {
  std::string bundle;
  std::vector<std::string> images;
  PredictorOptions predictor{};
  int64_t top = 1;
  bool json = false;
};

int64_t parse_top(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw ConfigError("tare predict", "--top must be a number >= 1, got '" + printable(text) + "'");
  }
  return value;
}

CudaMode cuda_for(const std::string& device) {
  memory::check_device_name(device);
  if (device == "cpu") return CudaMode::off;
  return device == "auto" ? CudaMode::automatic : CudaMode::on;
}

Request read(const Arguments& arguments) {
  const auto& words = arguments.positional();
  return {.bundle = words.front(),
          .images = {words.begin() + 1, words.end()},
          .predictor = {.device = arguments.get("device", "cpu")},
          .top = parse_top(arguments.get("top", "1")),
          .json = arguments.has("json")};
}

void print(const std::string& image, const std::vector<Prediction>& predictions) {
  for (const auto& p : predictions) {
    std::printf("%s: %s %.4f\n", printable(image, 1000).c_str(), printable(p.label).c_str(),
                p.probability);
  }
}

nlohmann::json to_json(const std::string& image, const std::vector<Prediction>& predictions) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& p : predictions) {
    list.push_back({{"label", p.label}, {"index", p.index}, {"probability", p.probability}});
  }
  return {{"path", image}, {"predictions", list}};
}

// Goes on behind an image that fails; returns the first failure's code.
int predict(const Request& request) {
  Predictor predictor(request.bundle, request.predictor);
  nlohmann::json all = nlohmann::json::array();
  int code = kSuccess;
  for (const auto& image : request.images) {
    try {
      const auto predictions = predictor.classify(image, request.top);
      request.json ? all.push_back(to_json(image, predictions)) : print(image, predictions);
    } catch (...) {
      const int failed = report_error(std::current_exception());
      if (code == kSuccess) code = failed;
    }
  }
  if (request.json)
    std::puts(all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  if (std::fflush(stdout) != 0) throw IoError("tare predict", "standard output", errno);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  ignore_file_limit_signal();
  try {  // not bound_spinning(): executing anew would double the start of so short a program
    const Arguments arguments = parse(predict_command(), argc, argv);
    if (arguments.has("help")) {
      return std::fputs(help(predict_command()).c_str(), stdout) < 0 ? kIo : kSuccess;
    }
    const Request request = read(arguments);
    init({.threads = 0, .cuda = cuda_for(request.predictor.device)});
    return predict(request);
  } catch (...) {
    return report_error(std::current_exception());
  }
}
