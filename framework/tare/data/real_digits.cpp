// Finds or downloads MNIST's digits, and else draws digits in their place.
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/data/datasets.h"
#include "tare/data/download.h"
#include "tare/data/idx.h"
#include "tare/data/manifests.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<fs::path>(value) : std::nullopt;
}

struct Files {
  const char* images;
  const char* labels;
};
constexpr Files kTest{"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};

bool holds_digits(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kTest.images, ignored) &&
         fs::is_regular_file(folder / kTest.labels, ignored);
}

std::vector<fs::path> places() {
  std::vector<fs::path> result;
  if (const auto given = from_environment("TARE_DATA_DIR")) result = {*given, *given / "mnist10k"};
  result.push_back(datasets::cache_folder() / "mnist10k");
  result.emplace_back("../shared/data/mnist10k");
  if (const auto source = from_environment("TARE_SOURCE_DIR"))
    result.push_back(*source / "../shared/data/mnist10k");
  return result;
}

DigitsSource real(const fs::path& folder) {
  const DatasetPtr data = idx_dataset(folder / kTest.images, folder / kTest.labels);
  return {format_count(data->size()) + " handwritten digits of MNIST (its test set) in " +
              printable(folder.lexically_normal().string()),
          data, true};
}

DigitsSource drawn(const FindDigitsOptions& options, const std::string& why) {
  return {format_count(options.count) + " generated digits in the written style, because " + why,
          generated_digits({.count = options.count, .style = "written", .seed = options.seed}),
          false};
}

/// Why downloads failed, by the folder that stayed empty.
struct Failures {
  std::mutex mutex{};
  std::map<fs::path, std::string> reasons{};
};
Failures& failures() {
  static Failures all;
  return all;
}

bool is_offline() {
  const char* value = std::getenv(datasets::kOffline);
  return value && *value && std::string_view(value) != "0";
}

// Tries to download MNIST's test set; the reason for which that failed, or nothing. A failure is
// remembered for the life of the process, so that a run of many phases waits for the network once.
std::string download_failure() {
  if (is_offline()) return datasets::kOffline + std::string(" is set");
  auto& [mutex, reasons] = failures();
  const std::lock_guard lock(mutex);
  const fs::path folder = datasets::cache_folder();
  const auto known = reasons.find(folder);
  if (known != reasons.end()) return known->second;
  try {
    (void)datasets::fetch("mnist10k");
    return {};
  } catch (const IoError& error) {
    return reasons[folder] = error.what();
  } catch (const FormatError& error) {
    return reasons[folder] = error.what();
  }
}

bool first_time(const std::string& why) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard lock(mutex);
  return seen.insert(why).second;
}

}  // namespace

DigitsSource find_digits(const FindDigitsOptions& options) {
  for (const fs::path& folder : places())
    if (holds_digits(folder)) return real(folder);
  std::string why = "no MNIST files were found and the network was not allowed", cause;
  if (options.download) {
    cause = download_failure();
    if (cause.empty()) return real(datasets::cache_folder() / "mnist10k");
    why = "MNIST could not be downloaded";
    cause = ": " + cause;
  }
  if (options.warn && first_time(why + cause + datasets::cache_folder().string()))
    log::warning("GENERATED digits stand in for MNIST, because " + why +
                 "; figures on them say nothing about real digits" + cause);
  return drawn(options, why);
}

namespace datasets {

bool download_has_failed() {
  auto& [mutex, reasons] = failures();
  const std::lock_guard lock(mutex);
  return !reasons.empty();
}

fs::path cache_folder() { return io::cache_home() / "data"; }

fs::path fetch(const std::string& name) {
  if (name != "mnist10k" && name != "mnist")
    throw ConfigError("data.fetch", "name", "is not downloaded", "mnist10k, mnist", name);
  const Manifest manifest = parse_manifest(kMnistManifest, "mnist.yaml");
  fs::path folder = cache_folder() / name;
  for (const RemoteFile& file : manifest.files)
    if (name == "mnist" || file.name.starts_with("t10k-")) download(file, folder);
  return folder;
}

}  // namespace datasets
}  // namespace tare

namespace tare::datasets {
namespace {

Found digits(const DataOptions& o, bool network) {
  FindDigitsOptions find{.download = o.download && network, .seed = o.seed, .warn = network};
  if (o.count > 0) find.count = o.count;
  DigitsSource source = find_digits(find);
  return {.description = std::move(source.description),
          .data = std::move(source.data),
          .generated = !source.real};
}

Found mnist10k(const DataOptions& o, bool network) {
  DigitsSource source =
      find_digits({.download = o.download && network, .count = 10, .warn = false});
  if (!source.real) {
    const std::string why =
        o.download && network ? " and not downloaded (" + download_failure() + ")" : "";
    throw IoError("data.make", "mnist10k",
                  "not found" + why +
                      ": run `tare data fetch mnist10k`, or set TARE_DATA_DIR to the "
                      "folder of its files");
  }
  return {.description = std::move(source.description), .data = std::move(source.data)};
}

Found mnist(const DataOptions& o, bool network) {
  const auto folder = o.download && network ? fetch("mnist") : cache_folder() / "mnist";
  if (!std::filesystem::exists(folder))
    throw IoError("data.make", "mnist", "not found: run `tare data fetch mnist`");
  return {.description = "MNIST in " + printable(folder.string()),
          .data = idx_dataset(folder / "train-images-idx3-ubyte.gz",
                              folder / "train-labels-idx1-ubyte.gz"),
          .test = idx_dataset(folder / "t10k-images-idx3-ubyte.gz",
                              folder / "t10k-labels-idx1-ubyte.gz")};
}

}  // namespace

void add_real_digits(Registry& all) {
  all.add("digits", "reads MNIST's test set, found or downloaded, or else generates digits", [] {
    return Kind{{"download"}, digits};
  });
  all.add("mnist", "reads MNIST: 60,000 images for train and valid, and 10,000 for test", [] {
    return Kind{{"download"}, mnist};
  });
  all.add("mnist10k", "reads MNIST's 10,000 test images as a small data set of their own", [] {
    return Kind{{"download"}, mnist10k};
  });
}

}  // namespace tare::datasets
