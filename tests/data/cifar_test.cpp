// CIFAR's binary files, and what is wrong with some.
#include "tare/data/cifar.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/picture_check.h"

namespace tare {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr size_t kCifarPixels = 3 * 32 * 32;

/// A row whose red, green and blue are `red`, `red` + 1 and `red` + 2.
std::string cifar_row(const std::string& labels, int red) {
  std::string row = labels;
  for (int channel = 0; channel < 3; ++channel)
    row += std::string(kCifarPixels / 3, static_cast<char>(red + channel));
  return row;
}

void write_cifar_10(const std::filesystem::path& folder) {
  io::make_directories(folder);
  io::write_atomically(folder / "batches.meta.txt", "airplane\r\nautomobile\nbird\n\n");
  for (int i = 1; i <= 5; ++i)
    io::write_atomically(folder / ("data_batch_" + std::to_string(i) + ".bin"),
                         cifar_row(std::string(1, static_cast<char>(i % 3)), 10 * i) +
                             cifar_row(std::string(1, '\2'), 200));
  io::write_atomically(folder / "test_batch.bin", cifar_row(std::string(1, '\1'), 99));
}

void write_cifar_100(const std::filesystem::path& folder) {
  io::make_directories(folder);
  io::write_atomically(folder / "fine_label_names.txt", "apple\nbear\n");
  io::write_atomically(folder / "coarse_label_names.txt", "fruit\nanimals\n");
  io::write_atomically(folder / "train.bin",
                       cifar_row(std::string("\7\1", 2), 5) + cifar_row(std::string("\3\0", 2), 6));
  io::write_atomically(folder / "test.bin", cifar_row(std::string("\0\0", 2), 7));
}

TEST(Cifar, TenHasItsBatchesInOrderWithTheNamesOfItsClasses) {
  const TempDir folder;
  write_cifar_10(folder.path());
  const Splits splits = cifar(folder.path());
  EXPECT_EQ(splits.valid, nullptr);
  EXPECT_THAT(splits.train->labels(), ElementsAre("airplane", "automobile", "bird"));
  EXPECT_THAT(splits.train->sample_shape(), ElementsAre(3, 32, 32));
  EXPECT_TRUE(
      at::equal(splits.train->targets(), at::tensor({1, 2, 2, 2, 0, 2, 1, 2, 2, 2}, at::kLong)));
  const at::Tensor pixels = splits.train->get({std::vector<int64_t>{4}}).input()[0];
  EXPECT_TRUE(pixels[0].eq(30).all().item<bool>());
  EXPECT_TRUE(pixels[2].eq(32).all().item<bool>());
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.test->targets().item<int64_t>(), 1);
}

TEST(Cifar, AHundredHasItsFineLabels) {
  const TempDir folder;
  write_cifar_100(folder.path());
  const Splits splits = cifar(folder.path());
  EXPECT_THAT(splits.train->labels(), ElementsAre("apple", "bear"));
  EXPECT_TRUE(at::equal(splits.train->targets(), at::tensor({1, 0}, at::kLong)));
  EXPECT_EQ(splits.train->get({std::vector<int64_t>{1}}).input().max().item<int64_t>(), 8);
}

TEST(Cifar, ByNameHasATestSplitOfItsOwn) {
  const TempDir folder;
  write_cifar_10(folder.path());
  const auto named =
      datasets::make({.name = "cifar", .folder = folder.path().string(), .stratify = false});
  EXPECT_EQ(named.splits.train->size(), 8);
  EXPECT_EQ(named.splits.valid->size(), 2);
  EXPECT_EQ(named.splits.test->size(), 1);
  EXPECT_THAT(named.description, HasSubstr("11 pictures of CIFAR-3"));
}

std::string cifar_error(const std::filesystem::path& folder) {
  try {
    (void)datasets::make({.name = "cifar", .folder = folder.string()});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Cifar, DamagedFilesAreRefusedByName) {
  const TempDir folder;
  EXPECT_THAT(cifar_error(""), HasSubstr("cifar-10-batches-bin"));
  EXPECT_THAT(cifar_error(folder.path()), HasSubstr("holds neither"));
  write_cifar_10(folder / "cifar-10-batches-bin");
  EXPECT_THAT(cifar_error(folder.path()), HasSubstr("subfolder cifar-10-batches-bin"));
  const auto ten = folder / "cifar-10-batches-bin";
  EXPECT_EQ(cifar_error(ten), "");
  io::write_atomically(ten / "data_batch_3.bin", std::string(3000, 'x'));
  EXPECT_THAT(cifar_error(ten), AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("3000 bytes")));
  io::write_atomically(ten / "data_batch_3.bin", cifar_row("\x09", 1));
  EXPECT_THAT(cifar_error(ten), AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("9 of row 1")));
  std::filesystem::remove(ten / "data_batch_3.bin");
  EXPECT_THAT(cifar_error(ten), HasSubstr("data_batch_3.bin"));
}

TEST(Cifar, ACheckNamesEveryDamagedFile) {
  const TempDir folder;
  write_cifar_10(folder.path());
  io::write_atomically(folder / "data_batch_1.bin", cifar_row("\x4d", 1));
  io::write_atomically(folder / "data_batch_3.bin", std::string(3000, 'x'));
  std::filesystem::remove(folder / "test_batch.bin");
  const PictureCheck check = check_cifar(folder.path());
  ASSERT_EQ(check.problems.size(), 3U);
  EXPECT_EQ(check.problems[0].path, "data_batch_1.bin");
  EXPECT_THAT(check.problems[0].problem, HasSubstr("label: 77 of row 1"));
  EXPECT_EQ(check.problems[1].path, "data_batch_3.bin");
  EXPECT_EQ(check.problems[2].path, "test_batch.bin");
  EXPECT_TRUE(check.classes.empty());
}

TEST(Cifar, ACheckCountsThePicturesOfEachClass) {
  const TempDir folder;
  write_cifar_10(folder.path());
  EXPECT_TRUE(is_cifar(folder.path()));
  const PictureCheck check = check_cifar(folder.path());
  EXPECT_EQ(check.pictures, 11);
  ASSERT_EQ(check.classes.size(), 6U);
  EXPECT_EQ(check.classes[2].name, "bird");
  EXPECT_EQ(check.classes[2].pictures, 7);
  EXPECT_EQ(check.classes[4].split, "test");
  EXPECT_EQ(check.classes[4].pictures, 1);
}

}  // namespace
}  // namespace tare
