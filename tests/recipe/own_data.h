// Every named data set, made of few generated digits in a folder, without a network.
#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>

#include "support/environment.h"
#include "support/npy_file.h"
#include "support/temp_dir.h"
#include "support/tfrecord_files.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/idx.h"
#include "tare/transform/image.h"

namespace tare::testing {

/// Writes `count` pictures of 16 x `width` pixels into a subfolder for each of ten digits.
inline void write_image_folder(const std::filesystem::path& folder, int64_t count,
                               int64_t width = 16) {
  const DigitImages digits = generate_digits({.count = count, .size = 16});
  for (int64_t i = 0; i < count; ++i) {
    const auto label = std::to_string(digits.labels[i].item<int64_t>());
    io::make_directories(folder / label);
    write_png(folder / label / (std::to_string(i) + ".png"), digits.images[i].narrow(2, 0, width));
  }
}

/// Writes an IDX pair under the names of MNIST's files.
inline void write_idx_pair(const std::filesystem::path& folder, const std::string& prefix,
                           int64_t count) {
  io::make_directories(folder);
  const DigitImages digits = generate_digits({.count = count, .seed = 5});
  write_idx(folder / (prefix + "-images-idx3-ubyte.gz"), digits.images.squeeze(1));
  write_idx(folder / (prefix + "-labels-idx1-ubyte.gz"), digits.labels.to(at::kByte));
}

/// Writes `count` examples with pictures of 16 x 16 pixels.
inline void write_tfrecord(const std::filesystem::path& file, int64_t count) {
  const DigitImages digits = generate_digits({.count = count, .size = 16});
  std::vector<std::string> examples;
  for (int64_t i = 0; i < count; ++i)
    examples.push_back(example_of({{"image", bytes_feature(encode_png(digits.images[i]))},
                                   {"label", ints_feature({digits.labels[i].item<int64_t>()})}}));
  write_tf_records(file, examples);
}

/// Rows of four numbers with one of three classes, in one TFRecord file.
inline void write_rows(const std::filesystem::path& file, int64_t count) {
  std::vector<std::string> examples;
  for (int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(i % 3);
    examples.push_back(example_of(
        {{"image", floats_feature({x, 1 - x, x * x, 0.5F})}, {"label", ints_feature({i % 3})}}));
  }
  write_tf_records(file, examples);
}

/// Writes `count` texts of 6 to 9 bytes into a subfolder for each of three classes.
inline void write_text_folder(const std::filesystem::path& folder, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const std::string label = std::to_string(i % 3);
    io::make_directories(folder / label);
    io::write_atomically(folder / label / (std::to_string(i) + ".txt"),
                         "is " + label + std::string(static_cast<size_t>(2 + i % 4), '.'));
  }
}

/// Writes a table with `count` texts of 6 to 9 bytes, each with one of three labels.
inline void write_text_list(const std::filesystem::path& file, int64_t count) {
  std::string rows = "text,label,review,kind\n";
  for (int64_t i = 0; i < count; ++i) {
    const std::string label = std::to_string(i % 3), dots(static_cast<size_t>(2 + i % 4), '.');
    rows += "is " + label + dots + ',' + label + ",was " + label + dots + ',' +
            std::to_string((i + 1) % 3) + '\n';
  }
  io::write_atomically(file, rows);
}

/// Writes a text of `count` lines of twelve different characters.
inline void write_text(const std::filesystem::path& file, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += "line " + std::string(static_cast<size_t>(1 + i % 5), static_cast<char>('a' + i % 7)) +
            '\n';
  io::write_atomically(file, text);
}

/// Writes a list of `count` pictures of 16 x 16 pixels, each with one of ten labels and two
/// numbers.
inline void write_image_list(const std::filesystem::path& file, int64_t count) {
  const DigitImages digits = generate_digits({.count = count, .size = 16});
  std::string rows = "path,label,number,half\n";
  io::make_directories(file.parent_path());
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + ".png";
    write_png(file.parent_path() / name, digits.images[i]);
    const auto label = digits.labels[i].item<int64_t>();
    rows += name + ",digit " + std::to_string(label) + ',' + std::to_string(label) + ',' +
            std::to_string(0.5 * static_cast<double>(label)) + '\n';
  }
  io::write_atomically(file, rows);
}

/// Writes the six files of CIFAR-10, each with `count` pictures, and the names of its classes.
inline void write_cifar(const std::filesystem::path& folder, int64_t count) {
  constexpr size_t kPixels = 3 * 32 * 32;
  io::make_directories(folder);
  std::string names;
  for (int i = 0; i < 10; ++i) names += "class " + std::to_string(i) + '\n';
  io::write_atomically(folder / "batches.meta.txt", names);
  for (const char* file : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                           "data_batch_5", "test_batch"}) {
    std::string rows;
    for (int64_t i = 0; i < count; ++i) {
      rows += static_cast<char>(i % 10);
      for (size_t at = 0; at < kPixels; ++at)
        rows += static_cast<char>((at * static_cast<size_t>(i + 3)) % 251);
    }
    io::write_atomically(folder / (std::string(file) + ".bin"), rows);
  }
}

/// Writes a CSV file of `count` rows with three numbers, a category and one of three classes.
inline void write_table(const std::filesystem::path& file, int64_t count) {
  std::string text = "x,colour,z,y,kind\n";
  for (int64_t i = 0; i < count; ++i)
    text += std::to_string(i % 3) + ",c" + std::to_string(i % 4) + ',' +
            (i % 7 == 0 ? "" : std::to_string(i % 5)) + ',' + std::to_string(i % 4) + ",k" +
            std::to_string(i % 3) + '\n';
  io::write_atomically(file, text);
}

/// Writes `count` JSON lines with two numbers and one of three classes.
inline void write_json_lines(const std::filesystem::path& file, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += R"({"x": )" + std::to_string(i % 3) + R"(, "z": )" + std::to_string(i % 5) +
            R"(.5, "kind": "k)" + std::to_string(i % 3) + "\"}\n";
  io::write_atomically(file, text);
}

/// Writes pictures of 16 x 16 numbers and their labels as two arrays.
inline void write_arrays(const std::filesystem::path& folder, int64_t count) {
  const DigitImages digits = generate_digits({.count = count, .size = 16});
  write_npy(folder / "x.npy", digits.images.to(at::kFloat).div(255));
  write_npy(folder / "y.npy", digits.labels);
}

/// A machine on which every data set is there.
class OwnData {
 public:
  OwnData() {
    write_image_folder(folder_ / "pictures", 60);
    write_image_list(folder_ / "listed/list.csv", 60);
    write_cifar(folder_ / "cifar", 20);
    write_idx_pair(folder_ / "mnist10k", "t10k", 70);
    write_tfrecord(folder_ / "digits.tfrecord", 60);
    write_text_folder(folder_ / "texts", 60);
    write_text_list(folder_ / "texts.csv", 60);
    write_text(folder_ / "book.txt", 200);
    write_table(folder_ / "table.csv", 96);
    write_json_lines(folder_ / "table.jsonl", 96);
    write_arrays(folder_.path(), 60);
    write_idx_pair(folder_ / "home/data/mnist", "train", 80);
    write_idx_pair(folder_ / "home/data/mnist", "t10k", 20);
  }

  /// Throws std::out_of_range for a name that has no files here yet.
  [[nodiscard]] DataOptions options(const std::string& name) const {
    if (name == "digits" || name == "mnist10k") return {.name = name};
    if (name == "mnist") return {.name = name, .download = false};
    if (name == "generated_digits") return {.name = name, .size = 16, .count = 50};
    if (name == "generated_texts") return {.name = name, .count = 60, .length = 24};
    if (name == "text")
      return {.name = name, .file = (folder_ / "book.txt").string(), .context = 12};
    if (name == "npy")
      return {.name = name,
              .labels = (folder_ / "y.npy").string(),
              .file = (folder_ / "x.npy").string()};
    if (name == "csv" || name == "jsonl")
      return {.name = name, .file = (folder_ / ("table." + name)).string(), .target = "kind"};
    if (name == "image_folder") return {.name = name, .folder = (folder_ / "pictures").string()};
    if (name == "image_list") return {.name = name, .file = (folder_ / "listed/list.csv").string()};
    if (name == "cifar") return {.name = name, .folder = (folder_ / "cifar").string()};
    if (name == "text_folder") return {.name = name, .folder = (folder_ / "texts").string()};
    if (name == "text_list") return {.name = name, .file = (folder_ / "texts.csv").string()};
    if (name == "tfrecord")
      return {.name = name, .files = {(folder_ / "digits.tfrecord").string()}};
    if (name == "idx")
      return {.name = name,
              .images = (folder_ / "mnist10k/t10k-images-idx3-ubyte.gz").string(),
              .labels = (folder_ / "mnist10k/t10k-labels-idx1-ubyte.gz").string()};
    throw std::out_of_range("no files for the data set " + name);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempDir folder_;
  ScopedVariable data_{"TARE_DATA_DIR", (folder_ / "mnist10k").string()};
  ScopedVariable home_{"TARE_HOME", (folder_ / "home").string()};
};

}  // namespace tare::testing
