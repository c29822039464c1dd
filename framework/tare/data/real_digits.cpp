#include <cstdlib>
#include <optional>

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

}  // namespace

DigitsSource find_digits(const FindDigitsOptions& options) {
  for (const fs::path& folder : places())
    if (holds_digits(folder)) return real(folder);
  if (!options.download)
    return drawn(options, "no MNIST files were found and the network was not allowed");
  std::string why;
  try {
    return real(datasets::fetch("mnist10k"));
  } catch (const IoError& error) {
    why = error.what();
  } catch (const FormatError& error) {
    why = error.what();
  }
  log::warning("real digits could not be downloaded, generated ones are used: " + why);
  return drawn(options, "MNIST could not be downloaded");
}

namespace datasets {

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
