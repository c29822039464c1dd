// Reads the binary files of CIFAR-10 and CIFAR-100.
#include "tare/data/cifar.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCifar = "data.cifar";
constexpr int64_t kChannels = 3, kSide = 32, kPixels = kChannels * kSide * kSide;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // six times the largest file

/// Says how one of the two data sets is stored.
struct Form {
  const char* name = "";             // of the folder in the archive
  int64_t labels = 1;                // bytes in front of the pixels; the last is the class
  const char* class_names = "";      // file with a name a line
  std::vector<std::string> train{};  // files
  std::vector<std::string> test{};   // files
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all{
      {"cifar-10-batches-bin",
       1,
       "batches.meta.txt",
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin"},
       {"test_batch.bin"}},
      {"cifar-100-binary", 2, "fine_label_names.txt", {"train.bin"}, {"test.bin"}}};
  return all;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is no file
  return fs::is_regular_file(path, ignored);
}

const Form& form_of(const fs::path& folder) {
  for (const Form& form : forms())
    if (is_file(folder / form.class_names)) return form;
  std::string problem =
      "holds neither batches.meta.txt of CIFAR-10 nor fine_label_names.txt of "
      "CIFAR-100";
  for (const Form& form : forms())
    if (is_file(folder / form.name / form.class_names))
      problem += "; they lie in its subfolder " + std::string(form.name);
  throw ConfigError(kCifar, "folder", problem,
                    "the folder cifar-10-batches-bin or cifar-100-binary of the binary version",
                    folder.string());
}

std::vector<std::string> names_in(const fs::path& file) {
  std::istringstream lines(io::read_text(file));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.empty()) throw FormatError(kCifar, file.string(), "names", "are missing");
  return names;
}

/// Says what is wrong with a file.
struct Problem {
  std::string part{}, text{};
};

/// Returns the first problem of the content of a file; unset: there is none.
std::optional<Problem> problem_of(const std::string& content, const Form& form, size_t names) {
  const auto row = static_cast<size_t>(form.labels + kPixels);
  if (content.empty() || content.size() % row != 0)
    return Problem{"size", std::to_string(content.size()) +
                               " bytes are no whole number of rows of " + std::to_string(row) +
                               " bytes; download the file again"};
  for (size_t at = 0; at < content.size(); at += row) {
    const auto label = static_cast<uint8_t>(content[at + static_cast<size_t>(form.labels) - 1]);
    if (label >= names)
      return Problem{"label", std::to_string(label) + " of row " + std::to_string(at / row + 1) +
                                  " has no name in " + form.class_names + ", which has " +
                                  std::to_string(names)};
  }
  return std::nullopt;
}

DatasetPtr read(const fs::path& folder, const Form& form, const std::vector<std::string>& files,
                const std::vector<std::string>& names) {
  const int64_t row = form.labels + kPixels;
  std::vector<std::string> contents;
  int64_t samples = 0;
  for (const std::string& file : files) {
    contents.push_back(io::read_text(folder / file, kMostBytes));
    if (const auto problem = problem_of(contents.back(), form, names.size()))
      throw FormatError(kCifar, (folder / file).string(), problem->part, problem->text);
    samples += std::ssize(contents.back()) / row;
  }
  const at::Tensor images = at::empty({samples, kChannels, kSide, kSide}, at::kByte);
  const at::Tensor classes = at::empty({samples}, at::kLong);
  auto* pixels = images.mutable_data_ptr<uint8_t>();
  auto* label = classes.mutable_data_ptr<int64_t>();
  for (const std::string& content : contents)
    for (size_t at = 0; at < content.size(); at += static_cast<size_t>(row), pixels += kPixels) {
      const size_t image = at + static_cast<size_t>(form.labels);
      *label++ = static_cast<uint8_t>(content[image - 1]);
      std::memcpy(pixels, &content[image], kPixels);
    }
  return tensor_dataset(images, classes, names);
}

}  // namespace

std::map<std::string, std::string> cifar_problems(const fs::path& folder) {
  const Form& form = form_of(folder);
  const size_t names = names_in(folder / form.class_names).size();
  std::map<std::string, std::string> problems;
  for (const auto& files : {form.train, form.test})
    for (const std::string& file : files) {
      try {
        const std::string content = io::read_text(folder / file, kMostBytes);
        if (const auto problem = problem_of(content, form, names))
          problems[file] = problem->part + ": " + problem->text;
      } catch (const IoError& error) {
        problems[file] = error.what();
      }
    }
  return problems;
}

bool is_cifar(const fs::path& folder) {
  return std::ranges::any_of(forms(),
                             [&](const Form& form) { return is_file(folder / form.class_names); });
}

Splits cifar(const fs::path& folder) {
  const Form& form = form_of(folder);
  const std::vector<std::string> names = names_in(folder / form.class_names);
  return {.train = read(folder, form, form.train, names),
          .valid = nullptr,
          .test = read(folder, form, form.test, names)};
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found read_cifar(const DataOptions& o, bool) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set cifar",
                      "the folder cifar-10-batches-bin or cifar-100-binary", "");
  Splits splits = cifar(o.folder);
  const int64_t count = splits.train->size() + splits.test->size();
  return {.description = format_count(count) + " pictures of CIFAR-" +
                         std::to_string(splits.train->labels().size()) + " in " +
                         printable(o.folder),
          .data = std::move(splits.train),
          .test = std::move(splits.test)};
}

}  // namespace

void add_cifar(Registry& all) {
  all.add("cifar", "reads CIFAR-10 or CIFAR-100 from a folder of their binary files", [] {
    return Kind{{"folder"}, read_cifar};
  });
}

}  // namespace tare::datasets
