// `tare sweep` over recipes of every data set: each is planned and run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "support/environment.h"
#include "support/npy_file.h"
#include "support/program.h"
#include "support/tfrecord_files.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/digits.h"
#include "tare/data/idx.h"
#include "tare/transform/image.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SweepDataTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// 120 small digits as IDX files by these names, and as PNG files.
  void SetUp() override {
    const DigitImages digits = generate_digits({.count = 120, .size = 12, .seed = 1});
    const auto write = [&](const fs::path& folder, const std::string& part) {
      io::make_directories(folder);
      write_idx(folder / (part + "-images-idx3-ubyte.gz"), digits.images.squeeze(1));
      write_idx(folder / (part + "-labels-idx1-ubyte.gz"), digits.labels.to(at::kByte));
    };
    write(folder_ / "home/data/mnist", "train");
    write(folder_ / "home/data/mnist", "t10k");
    write(folder_ / "home/data/mnist10k", "t10k");
    for (int64_t i = 0; i < 120; ++i) {
      const auto label = digits.labels[i].item<int64_t>();
      const fs::path folder = folder_ / "pngs" / std::to_string(label);
      io::make_directories(folder);
      write_png(folder / (std::to_string(i) + ".png"), digits.images[i]);
    }
    std::ofstream list(folder_ / "list.csv");
    list << "path,label\n";
    for (int64_t i = 0; i < 120; ++i) {
      const std::string label = std::to_string(digits.labels[i].item<int64_t>());
      list << "pngs/" << label << '/' << i << ".png," << label << '\n';
    }
    list.close();
    io::make_directories(folder_ / "cifar");
    io::write_atomically(folder_ / "cifar/batches.meta.txt", "cat\ndog\n");
    for (const char* file : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                             "data_batch_5", "test_batch"}) {
      std::string rows;
      for (int i = 0; i < 24; ++i) rows.append(1, static_cast<char>(i % 2)).append(3072, 'a');
      io::write_atomically(folder_ / "cifar" / (std::string(file) + ".bin"), rows);
    }
    std::vector<std::string> examples;
    for (int64_t i = 0; i < 120; ++i)
      examples.push_back(example_of({{"image", bytes_feature(encode_png(digits.images[i]))},
                                     {"label", ints_feature({digits.labels[i].item<int64_t>()})}}));
    write_tf_records(folder_ / "digits.tfrecord", examples);
    for (int64_t i = 0; i < 60; ++i) {
      const fs::path folder = folder_ / "texts" / std::to_string(i % 2);
      io::make_directories(folder);
      std::ofstream(folder / (std::to_string(i) + ".txt")) << (i % 2 == 0 ? "even" : "odd");
    }
    write_npy(folder_ / "x.npy", digits.images.to(at::kFloat).div(255));
    write_npy(folder_ / "y.npy", digits.labels);
    std::ofstream csv(folder_ / "table.csv"), lines(folder_ / "table.jsonl");
    csv << "x,y\n";
    for (int i = 0; i < 60; ++i) {
      csv << i % 7 << (i % 2 == 0 ? ",even\n" : ",odd\n");
      lines << "{\"x\": " << i % 7 << (i % 2 == 0 ? ", \"y\": \"even\"}\n" : ", \"y\": \"odd\"}\n");
    }
    csv.close();
    lines.close();
    std::ofstream book(folder_ / "book.txt");
    for (int i = 0; i < 300; ++i) book << "line " << i << '\n';
    book.close();
    std::ofstream listed(folder_ / "texts.csv");
    listed << "text,label\n";
    for (int i = 0; i < 60; ++i) listed << "text " << i << (i % 2 == 0 ? ",even\n" : ",odd\n");
    listed.close();
    const bool is_of_texts =
        GetParam() == "text_folder" || GetParam() == "text_list" || GetParam() == "generated_texts";
    const char* const model = is_of_texts            ? "lstm"
                              : GetParam() == "text" ? "gpt, layers: 1, heads: 1, width: 8"
                                                     : "mlp";
    std::ofstream(folder_ / "recipe.yaml")
        << "name: r\nbatch: 16\nworkers: 0\ndevice: cpu\n"
           "data: {name: "
        << GetParam() << options().at(GetParam()) << "}\nmodel: {name: " << model
        << "}\n"
           "phases: [{name: all, epochs: 1, lr: 1.0e-3}]\n";
    std::ofstream(folder_ / "sweep.yaml")
        << "name: s\nrecipe: recipe.yaml\nparameters: {phases.0.lr: [1.0e-3, 1.0e-2]}\n";
  }
  /// Returns the options that each data set needs beside its name.
  [[nodiscard]] std::map<std::string, std::string> options() const {
    const std::string mnist = (folder_ / "home/data/mnist/t10k-").string();
    return {{"digits", ", download: false"},
            {"generated_digits", ", count: 120, size: 12"},
            {"generated_texts", ", count: 60, length: 20"},
            {"idx", ", images: " + mnist + "images-idx3-ubyte.gz, labels: " + mnist +
                        "labels-idx1-ubyte.gz"},
            {"mnist", ", download: false"},
            {"mnist10k", ", download: false"},
            {"text", ", file: " + (folder_ / "book.txt").string() + ", context: 12"},
            {"image_folder", ", folder: " + (folder_ / "pngs").string()},
            {"image_list", ", file: " + (folder_ / "list.csv").string()},
            {"cifar", ", folder: " + (folder_ / "cifar").string()},
            {"csv", ", target: y, file: " + (folder_ / "table.csv").string()},
            {"jsonl", ", target: y, file: " + (folder_ / "table.jsonl").string()},
            {"npy", ", file: " + (folder_ / "x.npy").string() +
                        ", labels: " + (folder_ / "y.npy").string()},
            {"text_folder", ", folder: " + (folder_ / "texts").string()},
            {"text_list", ", file: " + (folder_ / "texts.csv").string()},
            {"tfrecord", ", files: [" + (folder_ / "digits.tfrecord").string() + "]"}};
  }
  TempDir folder_;
};

TEST_P(SweepDataTest, IsPlannedAndRun) {
  const ScopedVariable home("TARE_HOME", (folder_ / "home").string());
  const ScopedVariable data("TARE_DATA_DIR", std::nullopt);
  const auto plan = run_program("tare", {"sweep", "plan", "sweep.yaml"}, folder_.path());
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("s1_p0l0-01  round "));
  EXPECT_EQ(plan.out.find("cannot be predicted"), std::string::npos) << plan.out;
  const auto run = run_program("tare", {"sweep", "run", "sweep.yaml"}, folder_.path());
  EXPECT_EQ(run.status, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("s: 2 complete, 0 failed, 0 waiting; 2 started"));
}

INSTANTIATE_TEST_SUITE_P(Data, SweepDataTest, ::testing::ValuesIn(datasets::names()),
                         [](const auto& data) { return data.param; });

TEST(SweepWithoutANetwork, TriesTheDownloadOnce) {
  const TempDir folder;
  io::make_directories(folder / "tools");
  std::ofstream(folder / "tools/curl")
      << "#!/bin/sh\necho x >> '" << (folder / "tried").string() << "'\nexit 1\n";
  fs::permissions(folder / "tools/curl", fs::perms::owner_all);
  const ScopedVariable path("PATH", (folder / "tools").string() + ":/usr/bin:/bin");
  const ScopedVariable home("TARE_HOME", (folder / "home").string());
  const ScopedVariable data("TARE_DATA_DIR", std::nullopt);
  const ScopedVariable source("TARE_SOURCE_DIR", std::nullopt);
  std::ofstream(folder / "recipe.yaml") << "name: r\nbatch: 64\nworkers: 0\ndevice: cpu\n"
                                           "data: {name: digits, size: 8, count: 200}\nmodel: mlp\n"
                                           "phases: [{epochs: 1, lr: 1.0e-3}]\n";
  std::ofstream(folder / "sweep.yaml")
      << "name: s\nrecipe: recipe.yaml\nparameters: {phases.0.lr: [1.0e-3, 1.0e-2]}\n";
  const auto run = run_program("tare", {"sweep", "run", "sweep.yaml"}, folder.path());
  EXPECT_EQ(run.status, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("2 complete"));
  std::ifstream tried(folder / "tried");
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(tried), {}, 'x'), 1);
}

}  // namespace
}  // namespace tare::testing
