// Reading safetensors files, also those that Python has written.
#include "tare/checkpoint/safetensors.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdlib>
#include <optional>

#include "checkpoint/support.h"
#include "support/temp_dir.h"

namespace tare::checkpoint {
namespace {

using tare::testing::TempDir;

std::filesystem::path golden_path() {
  const char* source = std::getenv("TARE_SOURCE_DIR");
  return std::filesystem::path(source ? source : ".") / "tests/golden/python.safetensors";
}

// The tensors of tests/golden/safetensors_golden.py.
std::vector<NamedTensor> golden_tensors() {
  const auto tensor = [](std::vector<double> values, c10::ScalarType dtype) {
    return at::tensor(values, at::kDouble).to(dtype);
  };
  return {{"layer.weight", counting({2, 3}).div(4)},
          {"layer.bias", tensor({-1.5, 0, 2.25}, at::kFloat)},
          {"step", at::tensor(std::vector<int64_t>{7}).reshape({})},
          {"half", tensor({0.5, -0.25}, at::kHalf).reshape({2, 1})},
          {"double", tensor({1.0 / 3, -1e300}, at::kDouble)},
          {"mask", tensor({1, 0, 1}, at::kBool)},
          {"bytes", counting({5}, at::kByte)},
          {"int8", tensor({-128, 127}, at::kChar)},
          {"int16", tensor({-32768, 32767}, at::kShort)},
          {"int32", tensor({-2147483648.0, 2147483647.0}, at::kInt)},
          {"empty", at::zeros({0, 4})},
          {"größe \"q\" \\", tensor({1}, at::kFloat)}};
}

TEST(SafeTensors, ReadsWhatPythonWrote) {
  const SafeTensors file = SafeTensors::open(golden_path());
  EXPECT_EQ(file.tensors().size(), golden_tensors().size());
  for (const auto& [name, expected] : golden_tensors())
    EXPECT_TRUE(same(file.tensor(name), expected)) << name;
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"made", "by hand"}}));
}

TEST(SafeTensors, WritesTheBytesThatPythonWrites) {
  const TempDir dir;
  write(dir / "ours", golden_tensors(), {{"made", "by hand"}});
  EXPECT_EQ(read_file(dir / "ours"), read_file(golden_path()));
}

TEST(SafeTensors, GivesBackEveryDtype) {
  const TempDir dir;
  std::vector<NamedTensor> tensors;
  for (const auto dtype : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong,
                           at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    tensors.push_back({c10::toString(dtype), counting({2}, dtype)});
  }
  write(dir / "file", tensors);
  const SafeTensors file = SafeTensors::open(dir / "file");
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(same(file.tensor(name), tensor)) << name;
}

TEST(SafeTensors, GivesBackFloat8BetweenTheWiderAndTheNarrowerTypes) {
  const TempDir dir;
  const at::Tensor e4m3 = counting({5}).to(at::kFloat8_e4m3fn);
  const at::Tensor e5m2 = counting({5}).to(at::kFloat8_e5m2);
  write(dir / "file", {{"a", counting({2}, at::kChar)},
                       {"b", e5m2},
                       {"c", e4m3},
                       {"d", counting({2}, at::kShort)}});
  const SafeTensors file = SafeTensors::open(dir / "file");
  ASSERT_EQ(file.tensors().size(), 4U);
  EXPECT_EQ(file.tensors()[1], (TensorInfo{"c", at::kFloat8_e4m3fn, {5}, 4, 5}));
  EXPECT_EQ(file.tensors()[2], (TensorInfo{"b", at::kFloat8_e5m2, {5}, 9, 5}));
  EXPECT_TRUE(same(file.tensor("c").view(at::kByte), e4m3.view(at::kByte)));
  EXPECT_TRUE(same(file.tensor("b").view(at::kByte), e5m2.view(at::kByte)));
  EXPECT_NE(read_file(dir / "file").find(R"("c":{"dtype":"F8_E4M3","shape":[5])"),
            std::string::npos);
  EXPECT_EQ(describe(at::kFloat8_e4m3fn, std::vector<int64_t>{5}), "float8_e4m3fn [5]");
}

TEST(SafeTensors, ListsTensorsInTheOrderOfTheirData) {
  const TempDir dir;
  write(dir / "file",
        {{"b", counting({2})}, {"a", counting({3})}, {"wide", counting({1}, at::kLong)}});
  const SafeTensors file = SafeTensors::open(dir / "file");
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0], (TensorInfo{"wide", at::kLong, {1}, 0, 8}));
  EXPECT_EQ(file.tensors()[1], (TensorInfo{"a", at::kFloat, {3}, 8, 12}));
  EXPECT_EQ(file.tensors()[2], (TensorInfo{"b", at::kFloat, {2}, 20, 8}));
}

TEST(SafeTensors, GivesItsListToALoopOverAFileThatIsClosed) {
  const TempDir dir;
  const std::string name = "a name too long to be held in the string itself";
  write(dir / "file", {{name, counting({2})}});
  for (const TensorInfo& info : SafeTensors::open(dir / "file").tensors())
    EXPECT_EQ(info.name, name);
}

TEST(SafeTensors, TensorsOutliveTheFileAndItsName) {
  const TempDir dir;
  write(dir / "file", {{"a", counting({4})}});
  std::optional<SafeTensors> file = SafeTensors::open(dir / "file");
  const at::Tensor tensor = file->tensor("a");
  file.reset();
  io::remove_all(dir / "file");
  EXPECT_TRUE(same(tensor, counting({4})));
}

TEST(SafeTensors, WritingToATensorLeavesFileAndOtherOpensAlone) {
  const TempDir dir;
  write(dir / "file", {{"a", counting({4})}});
  const SafeTensors first = SafeTensors::open(dir / "file"),
                    second = SafeTensors::open(dir / "file");
  const std::string before = read_file(dir / "file");
  first.tensor("a").add_(1);
  EXPECT_TRUE(same(first.tensor("a"), counting({4}).add(1)));
  EXPECT_TRUE(same(second.tensor("a"), counting({4})));
  EXPECT_EQ(read_file(dir / "file"), before);
}

TEST(SafeTensors, MapsWithoutCopy) {
  const TempDir dir;
  write(dir / "file", {{"a", counting({4})}});
  const SafeTensors file = SafeTensors::open(dir / "file");
  EXPECT_EQ(file.tensor("a").const_data_ptr(), file.data(file.info("a")).data());
}

TEST(SafeTensors, CopiesATensorThatIsNotAligned) {
  const TempDir dir;
  std::string header = R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("y":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  header.resize(112, ' ');
  const float one = 1;
  overwrite(dir / "file", std::string("\x70\0\0\0\0\0\0\0", 8) + header + "\5" +
                              std::string(reinterpret_cast<const char*>(&one), 4));
  const SafeTensors file = SafeTensors::open(dir / "file");
  EXPECT_TRUE(same(file.tensor("y"), at::tensor(std::vector<float>{1})));
  EXPECT_NE(file.tensor("y").const_data_ptr(), file.data(file.info("y")).data());
}

TEST(SafeTensors, NamesTheNearestOneForAMissingTensor) {
  const TempDir dir;
  write(dir / "file", {{"layer1.weight", counting({4})}});
  const SafeTensors file = SafeTensors::open(dir / "file");
  EXPECT_FALSE(file.contains("layer1.weihgt"));
  try {
    (void)file.tensor("layer1.weihgt");
    FAIL() << "no error";
  } catch (const FormatError& error) {
    EXPECT_EQ(error.part(), "layer1.weihgt");
    EXPECT_NE(std::string(error.what()).find("nearest name is 'layer1.weight'"), std::string::npos)
        << error.what();
  }
}

TEST(SafeTensors, RefusesABoolThatIsNeitherZeroNorOne) {
  const TempDir dir;
  write(dir / "file", {{"mask", counting({2}, at::kBool)}});
  std::string content = read_file(dir / "file");
  content.back() = '\2';
  overwrite(dir / "file", content);
  const SafeTensors file = SafeTensors::open(dir / "file");
  EXPECT_EQ(refused_part([&] { (void)file.tensor("mask"); }), "mask");
}

TEST(SafeTensors, AnEmptyFileOfTensorsIsValid) {
  const TempDir dir;
  write(dir / "file", {});
  EXPECT_TRUE(SafeTensors::open(dir / "file").tensors().empty());
}

TEST(SafeTensors, AFileThatIsNotThereIsAnIoError) {
  const TempDir dir;
  EXPECT_THROW((void)SafeTensors::open(dir / "none"), IoError);
}

TEST(SafeTensors, VerifyNamesTheDamagedTensor) {
  const TempDir dir;
  const Digest digest = write(dir / "file", {{"a", counting({4})}, {"b", counting({4})}});
  std::string content = read_file(dir / "file");
  content.back() = static_cast<char>(content.back() ^ 1);
  overwrite(dir / "file", content);
  EXPECT_EQ(refused_part([&] { verify(SafeTensors::open(dir / "file"), digest, "test"); }), "b");
}

TEST(SafeTensors, VerifyNoticesOtherNamesShapesAndMetadata) {
  const TempDir dir;
  const Digest digest = write(dir / "file", {{"a", counting({4})}});
  const auto refused = [&](const std::vector<NamedTensor>& other,
                           const std::map<std::string, std::string>& metadata) {
    write(dir / "other", other, metadata);
    return refused_part([&] { verify(SafeTensors::open(dir / "other"), digest, "test"); });
  };
  EXPECT_EQ(refused({{"a", counting({4})}}, {}), "accepted");
  EXPECT_EQ(refused({{"b", counting({4})}}, {}), "a");
  EXPECT_EQ(refused({{"a", counting({4})}, {"b", counting({1})}}, {}), "b");
  EXPECT_EQ(refused({{"a", counting({2, 2})}}, {}), "header");
  EXPECT_EQ(refused({{"a", counting({4})}}, {{"key", "value"}}), "header");
}

}  // namespace
}  // namespace tare::checkpoint
