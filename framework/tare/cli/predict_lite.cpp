// Predicts pictures without LibTorch, where the bundle allows it.
#include "tare/cli/predict_lite.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/cli/arguments.h"
#include "tare/cli/predict_output.h"
#include "tare/lite/classes.h"
#include "tare/lite/lite.h"
#include "tare/runtime/exit_code.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPictures = 64;  // with more, LibTorch's batches are worth its start

/// Returns the threads of LibTorch's operators, as OMP_NUM_THREADS says, else one a processor.
int64_t threads() {
  const char* given = std::getenv("OMP_NUM_THREADS");
  const int64_t number = given ? std::atoll(given) : 0;
  constexpr int64_t kMost = 64;
  const auto processors = static_cast<int64_t>(std::thread::hardware_concurrency());
  return std::clamp<int64_t>(number > 0 ? number : processors, 1, kMost);
}

/// Throws lite::Unsupported for options and inputs that are left to LibTorch.
void check_arguments(const Arguments& arguments) {
  for (const char* option : {"score", "masks", "text", "trust"})
    if (arguments.has(option)) throw lite::Unsupported("does not know --" + std::string(option));
  if (arguments.has("batch") && arguments.get("batch") != "auto")
    (void)arguments.number("batch", 0, 1);  // throws; pictures are predicted one by one
  if (const std::string device = arguments.get("device", "cpu"); device != "cpu")
    throw lite::Unsupported("computes on the host, and not on " + printable(device));
  const auto& words = arguments.positional();
  if (words.size() - 1 > kMostPictures)
    throw lite::Unsupported("leaves more than " + std::to_string(kMostPictures) +
                            " inputs to batches");
  for (size_t i = 1; i < words.size(); ++i)
    if (!fs::is_regular_file(words[i]) || format_named_by(words[i]).empty())
      throw lite::Unsupported("takes files of pictures (.png, .jpg, .jpeg, .webp), and " +
                              printable(words[i], 200) + " is none");
}

/// Returns a bundle, or the only one in a folder such as a run's.
fs::path bundle_in(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".tare") found.push_back(entry.path());
  if (found.size() != 1) throw lite::Unsupported("needs a bundle, or a folder with one");
  return found.front();
}

/// Predicts all pictures, then prints, so that nothing is printed where one of them fails.
void predict(const Arguments& arguments, lite::Model& model) {
  const lite::Manifest& manifest = model.manifest();
  std::optional<int64_t> top;
  if (arguments.has("top")) top = arguments.number("top", 0, 1);
  if (top && !model.gives_classes()) throw lite::Unsupported("gives values, and no classes");
  const auto& words = arguments.positional();
  std::vector<lite::Output> outputs;
  for (size_t i = 1; i < words.size(); ++i) {
    const lite::BytePlanes planes =
        model.picture_input(read_picture(words[i], manifest.sample_shape[0]));
    outputs.push_back(model.predict({.shape = {1, planes.channels, planes.height, planes.width},
                                     .bytes = planes.bytes.data()}));
  }
  PredictPrinter printer(predict_form(arguments));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const lite::Output& output = outputs[i];
    const OutputPlace place{words[i + 1]};
    const std::vector<int64_t> shape(output.shape.begin() + 1, output.shape.end());
    std::vector<Prediction> named;
    if (lite::has_classes(model, shape))
      for (const lite::ClassScore& one : lite::classes(model, shape, output.values, top))
        named.push_back({one.label, one.index, one.probability});
    if (!named.empty())
      printer.add(place, named);
    else
      printer.add(place, OutputValues{shape, output.values,
                                      lite::value_names(model, output.values.size())});
  }
  printer.finish(true);
}

}  // namespace

std::optional<int> predict_lite(int argc, char** argv) {
  std::string engine = "auto";
  bool verbose = false;
  try {
    const Arguments arguments = parse(predict_command(), argc, argv);
    if (arguments.has("help")) return std::nullopt;
    engine = arguments.get("engine", "auto");
    verbose = arguments.has("verbose");
    if (engine != "auto" && engine != "lite") return std::nullopt;
    check_arguments(arguments);
    const lite::ModelOptions options{.threads = threads()};
    lite::Model model(bundle_in(arguments.positional().front()), options);
    if (!model.takes_pictures()) throw lite::Unsupported("predicts pictures here, and no others");
    if (verbose)
      log::info("predicts without LibTorch, by the kernels " +
                std::string(lite::best_kernels().name) + " on " + std::to_string(options.threads) +
                (options.threads == 1 ? " thread" : " threads"));
    predict(arguments, model);
    return kSuccess;
  } catch (const std::exception& error) {
    if (engine == "lite") {
      log::error(error.what());
      return kBadInput;
    }
    if (verbose) log::info(error.what());
    return std::nullopt;
  }
}

}  // namespace tare::cli
