// tare-predict: classes and probabilities of images by a bundle. Links what predicting needs and
// nothing else.
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/inference/predictor.h"
#include "tare/memory/init.h"
#include "tare/memory/oom.h"

namespace {

using namespace tare;

enum ExitCode { kSuccess = 0, kFailed = 1, kBadInput = 2, kOutOfMemory = 3, kIo = 4 };

constexpr size_t kMaxArgumentBytes = 4096;
constexpr const char* kHelp =
    "tare-predict BUNDLE IMAGE... [--device cpu|cuda|cuda:N] [--top K] [--json]\n"
    "Prints for each PNG image its most probable class and the probability.\n"
    "\n"
    "  --device D  where to compute; the default is cpu, CUDA is only loaded when it is asked for\n"
    "  --top K     the K most probable classes of each image; the default is 1\n"
    "  --json      one JSON array instead of a line for each class\n"
    "\n"
    "Example: tare-predict digits.tare seven.png --top 3\n"
    "Exit codes: 0, 1 (failed), 2 (bad input), 3 (out of memory), 4 (input or output failed)\n";

struct Arguments {
  std::string bundle;
  std::vector<std::string> images;
  PredictorOptions predictor;
  int64_t top = 1;
  bool json = false, help = false;
};

int64_t parse_top(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw ConfigError("tare-predict", "--top must be a number >= 1, got '" + printable(text) + "'");
  }
  return value;
}

// The value of --name=value or --name value; `i` moves on over the latter.
std::string value_of(const std::string& argument, size_t name_size,
                     const std::vector<std::string>& all, size_t& i) {
  if (argument.size() > name_size) return argument.substr(name_size + 1);
  if (i + 1 == all.size()) throw ConfigError("tare-predict", argument + " needs a value");
  return all[++i];
}

Arguments parse(const std::vector<std::string>& all) {
  Arguments result;
  bool options = true;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& a = all[i];
    const auto is = [&](std::string_view name) {
      return a == name || a.starts_with(std::string(name) + "=");
    };
    if (a.size() > kMaxArgumentBytes)
      throw ConfigError("tare-predict", "an argument is longer than 4,096 bytes");
    if (!options || a.size() < 2 || a[0] != '-') {
      result.bundle.empty() ? void(result.bundle = a) : result.images.push_back(a);
    } else if (a == "--") {
      options = false;
    } else if (a == "--help" || a == "-h") {
      result.help = true;
    } else if (a == "--json") {
      result.json = true;
    } else if (is("--device")) {
      result.predictor.device = value_of(a, 8, all, i);
    } else if (is("--top")) {
      result.top = parse_top(value_of(a, 5, all, i));
    } else {
      const std::string near = nearest(a, {"--device", "--top", "--json", "--help"});
      throw ConfigError("tare-predict",
                        "unknown option '" + printable(a) + "'" +
                            (near.empty() ? "; see --help" : "; did you mean " + near + "?"));
    }
  }
  if (!result.help && (result.bundle.empty() || result.images.empty())) {
    throw ConfigError("tare-predict", "needs a bundle and at least one image; see --help");
  }
  return result;
}

// Prints the error under way; returns the exit code that belongs to it.
int report(const std::exception_ptr& error) {
  const auto say = [](const std::string& text, int code) {
    std::cerr << "tare-predict: " << text << "\n";
    return code;
  };
  if (const auto oom = memory::classify(error)) return say(oom->message, kOutOfMemory);
  try {
    std::rethrow_exception(error);
  } catch (const IoError& e) {
    return say(e.what(), kIo);
  } catch (const Error& e) {
    return say(e.what(), kBadInput);
  } catch (const std::exception& e) {
    return say(printable(e.what(), 1000), kFailed);
  }
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
int predict(const Arguments& arguments) {
  Predictor predictor(arguments.bundle, arguments.predictor);
  nlohmann::json all = nlohmann::json::array();
  int code = kSuccess;
  for (const auto& image : arguments.images) {
    try {
      const auto predictions = predictor.classify(image, arguments.top);
      arguments.json ? all.push_back(to_json(image, predictions)) : print(image, predictions);
    } catch (...) {
      const int failed = report(std::current_exception());
      if (code == kSuccess) code = failed;
    }
  }
  if (arguments.json)
    std::puts(all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  if (std::fflush(stdout) != 0) throw IoError("tare-predict", "standard output", errno);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {  // not bound_spinning(): executing anew would double the start of so short a program
    const Arguments arguments = parse({argv + 1, argv + argc});
    if (arguments.help) return std::fputs(kHelp, stdout) < 0 ? kIo : kSuccess;
    init(
        {.threads = 0, .cuda = arguments.predictor.device == "cpu" ? CudaMode::off : CudaMode::on});
    return predict(arguments);
  } catch (...) {
    return report(std::current_exception());
  }
}
