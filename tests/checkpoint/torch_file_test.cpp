// Files of torch.save: what PyTorch wrote is read with its values, and everything that is no state
// dict is refused by name, without a call.
#include "tare/checkpoint/torch_file.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "checkpoint/support.h"
#include "support/hostile.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/safetensors.h"

namespace tare::checkpoint {
namespace {

using tare::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::filesystem::path golden(const std::string& name) {
  const char* source = std::getenv("TARE_SOURCE_DIR");
  return std::filesystem::path(source ? source : ".") / "tests/golden" / name;
}

std::map<std::string, at::Tensor> by_name(const TorchFile& file) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, tensor] : file.tensors()) all.emplace(name, tensor);
  return all;
}

TEST(TorchFile, HasEveryDtypeOfSafetensors) {
  const auto all = by_name(TorchFile::open(golden("torch_state.pt")));
  const auto wanted = at::tensor({0, 1, 1, 0, 1, 0}).reshape({2, 3});
  for (const auto& [name, type] :
       std::map<std::string, c10::ScalarType>{{"int64", at::kLong},
                                              {"float64", at::kDouble},
                                              {"float32", at::kFloat},
                                              {"int32", at::kInt},
                                              {"bfloat16", at::kBFloat16},
                                              {"float16", at::kHalf},
                                              {"int16", at::kShort},
                                              {"float8_e4m3fn", at::kFloat8_e4m3fn},
                                              {"float8_e5m2", at::kFloat8_e5m2},
                                              {"int8", at::kChar},
                                              {"uint8", at::kByte},
                                              {"bool", at::kBool}}) {
    const at::Tensor& got = all.at("dtype." + name);
    EXPECT_EQ(got.scalar_type(), type) << name;
    EXPECT_TRUE(same(got.to(at::kFloat), wanted.to(at::kFloat))) << name;
  }
}

TEST(TorchFile, ReadsViewsOfOneStorageWithTheirStrides) {
  const TorchFile file = TorchFile::open(golden("torch_state.pt"));
  EXPECT_EQ(file.place(), "");
  EXPECT_EQ(file.file_bytes(),
            static_cast<int64_t>(std::filesystem::file_size(golden("torch_state.pt"))));
  const auto all = by_name(file);
  const at::Tensor base = counting({3, 4});
  EXPECT_TRUE(same(all.at("whole"), base));
  EXPECT_TRUE(same(all.at("transposed"), base.t()));
  EXPECT_THAT(all.at("transposed").strides(), ElementsAre(1, 4));
  EXPECT_TRUE(same(all.at("column"), base.select(1, 1)));
  EXPECT_TRUE(same(all.at("expanded"), at::tensor({11.F}).expand({2, 2})));
  EXPECT_EQ(all.at("whole").const_data_ptr(), all.at("transposed").const_data_ptr());
  EXPECT_TRUE(same(all.at("parameter"), at::tensor({1.5F, -2.5F})));
  EXPECT_EQ(all.at("empty").sizes(), c10::IntArrayRef({0, 3}));
  EXPECT_EQ(all.at("scalar").item<int64_t>(), 7);
}

TEST(TorchFile, KeepsItsTensorsWhenItIsGoneAndNeverWritesTheFile) {
  const std::string before = read_file(golden("torch_state.pt"));
  auto tensor = by_name(TorchFile::open(golden("torch_state.pt"))).at("whole");
  tensor.fill_(3);
  EXPECT_EQ(tensor.sum().item<float>(), 36);
  EXPECT_EQ(read_file(golden("torch_state.pt")), before);
}

TEST(TorchFile, OpensTheStateDictOfATraining) {
  const TorchFile file = TorchFile::open(golden("torch_nested.pt"));
  EXPECT_EQ(file.place(), "state_dict");
  EXPECT_THAT(file.others(),
              ElementsAre("epoch", "arch", "best", "shape", "big", "none", "list", "optimizer"));
  const auto all = by_name(file);
  EXPECT_EQ(all.size(), 2u);
  EXPECT_TRUE(same(all.at("module.weight"), counting({2, 3})));
  EXPECT_TRUE(same(all.at("module.bias"), at::tensor({0.5F, -0.5F})));
}

TEST(TorchFile, IsRecognisedByItsFirstBytes) {
  const TempDir dir;
  for (const char* name : {"torch_state.pt", "torch_old.pt", "torch_call.pt"})
    EXPECT_TRUE(is_torch_file(golden(name))) << name;
  EXPECT_FALSE(is_torch_file(golden("python.safetensors")));
  // A header of 640 bytes begins as a pickle does.
  write(dir / "file", {{"a", counting({1})}}, {{"key", std::string(556, 'x')}});
  ASSERT_EQ(read_file(dir / "file").substr(0, 2), "\x80\x02");
  EXPECT_FALSE(is_torch_file(dir / "file"));
  overwrite(dir / "file", "");
  EXPECT_FALSE(is_torch_file(dir / "file"));
}

// A zip archive of stored entries, as torch.save writes it.
struct ZipEntry {
  std::string name, data;
  uint16_t method = 0, flags = 0;
};

template <class Number>
std::string little(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string zip_of(const std::vector<ZipEntry>& entries) {
  std::string file, directory;
  for (const auto& [name, data, method, flags] : entries) {
    const auto size = static_cast<uint32_t>(data.size());
    const std::string common = little(flags) + little(method) + std::string(8, '\0') +
                               little(size) + little(size) +
                               little(static_cast<uint16_t>(name.size())) + little(uint16_t{0});
    directory += "PK\x01\x02" + little(uint16_t{20}) + little(uint16_t{20}) + common +
                 std::string(10, '\0') + little(static_cast<uint32_t>(file.size())) + name;
    file += "PK\x03\x04" + little(uint16_t{20}) + common + name + data;
  }
  const auto count = static_cast<uint16_t>(entries.size());
  return file + directory + "PK\x05\x06" + std::string(4, '\0') + little(count) + little(count) +
         little(static_cast<uint32_t>(directory.size())) +
         little(static_cast<uint32_t>(file.size())) + std::string(2, '\0');
}

std::string archive(const std::string& pickle, const std::string& storage = std::string(24, 'd')) {
  return zip_of({{"f/data.pkl", pickle}, {"f/data/0", storage}});
}

std::string text(const std::string& value) {
  return "X" + little(static_cast<uint32_t>(value.size())) + value;
}
std::string number(int32_t value) { return "J" + little(value); }
std::string numbers(const std::vector<int32_t>& values) {
  std::string all = "(";
  for (const int32_t each : values) all += number(each);
  return all + "t";
}

// {"w": a tensor of a storage of 6 float32}; each part may be another one.
struct TensorText {
  std::string type = "ctorch\nFloatStorage\n", key = text("0"), count = number(6),
              offset = number(0), sizes = numbers({2, 3}), strides = numbers({3, 1});
  std::string name = text("w");
};
std::string saved(const TensorText& t) {
  return "\x80\x02}" + t.name + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + t.type +
         t.key + text("cpu") + t.count + "tQ" + t.offset + t.sizes + t.strides + "\x89}tRs.";
}

class HostileTorchFile : public ::testing::TestWithParam<tare::testing::HostileFile> {};

TEST_P(HostileTorchFile, IsRefusedByName) {
  const TempDir dir;
  overwrite(dir / "file", GetParam().content);
  tare::testing::expect_refused("FormatError", GetParam().message,
                                [&] { (void)TorchFile::open(dir / "file"); });
}

std::vector<tare::testing::HostileFile> calls() {
  return {
      {"CallsTheSystem",
       archive("\x80\x02}" + text("w") + "cposix\nsystem\n(" + text("true") + "tRs."),
       "data.pkl: calls posix.system, which is not read; save a dict of tensors in Python"},
      {"CallsEval",
       archive("\x80\x02"
               "cbuiltins\neval\n(" +
               text("1") + "tR."),
       "calls builtins.eval, which is not read"},
      {"CallsASubmoduleByADottedName",
       archive("\x80\x02"
               "ctorch\nos.system\n(" +
               text("1") + "tR."),
       "calls torch.os.system, which is not read"},
      {"IsAWholeModule",
       archive("\x80\x02"
               "ctorch.nn.modules.linear\nLinear\n)\x81}b."),
       "calls torch.nn.modules.linear.Linear, which is not read"},
      {"HasAComplexStorage", archive(saved({.type = "ctorch\nComplexFloatStorage\n"})),
       "calls torch.ComplexFloatStorage, which is not read"},
      {"MakesAnObject",
       archive("\x80\x02"
               "ccollections\nOrderedDict\n)\x81."),
       "has the instruction 0x81 at byte 28, which is not read"},
      {"NamesAFunctionFromTheStack", archive("\x80\x02" + text("os") + text("system") + "\x93."),
       "has the instruction 0x93"},
      {"SetsAttributesOfATuple", archive("\x80\x02)}b."),
       "sets attributes of a value that is no OrderedDict"},
      {"IsOfProtocolFour", archive("\x80\x04}."), "is of the pickle protocol 4, and up to 2"},
  };
}

std::vector<tare::testing::HostileFile> damaged_pickles() {
  return {
      {"EmptyPickle", archive(""), "data.pkl: ends inside of a value"},
      {"NothingOnTheStack", archive("\x80\x02."), "is damaged at byte 3"},
      {"NoMark", archive("\x80\x02)t."), "is damaged"},
      {"MarkIsTheResult", archive("\x80\x02(."), "is damaged"},
      {"UnknownMemo", archive("\x80\x02h\x05."), "is damaged"},
      {"TextBehindTheEnd", archive("\x80\x02X\xff\xff\xff\xff."), "ends inside of a value"},
      {"NameWithoutEnd",
       archive("\x80\x02"
               "ctorch"),
       "ends inside of a name"},
      {"KeyWithoutValue", archive("\x80\x02}(" + text("a") + "u."), "is damaged"},
      {"KeyIsAList", archive("\x80\x02}]K\x01s."), "has a key that is neither a text"},
      {"IntegerOfNineBytes",
       archive("\x80\x02\x8a\x09"
               "123456789."),
       "more than 64 bits"},
      {"MillionsOfValues", archive("\x80\x02" + std::string(3'000'000, 'N') + "."),
       "has more than 500,000 values"},
      {"MillionsOfMarks", archive("\x80\x02" + std::string(3'000'000, '(') + "."),
       "has more than 500,000 values"},
      {"ListInItself",
       archive("\x80\x02]q\x01h\x01"
               "a."),
       "holds no dict of tensors"},
      {"DictInItself", archive("\x80\x02}q\x01" + text("model") + "h\x01s."),
       "has dicts in dicts without an end"},
      {"EmptyDict", archive("\x80\x02}."), "has no tensor in its dict, which is empty"},
      {"NoTensor", archive("\x80\x02}" + text("epoch") + "K\x01s."), "which has the keys epoch"},
      {"TwoStates", archive("\x80\x02}(" + text("model") + "}" + text("state_dict") + "}u."),
       "has the dicts 'model' and 'state_dict'"},
      {"ARowOfNumbers",
       archive("\x80\x02]K\x01"
               "a."),
       "holds no dict of tensors"},
  };
}

std::vector<tare::testing::HostileFile> wrong_tensors() {
  const std::string twice = "\x80\x02}(" + saved({}).substr(3, saved({}).size() - 5) +
                            saved({}).substr(3, saved({}).size() - 5) + "u.";
  return {
      {"StorageIsMissing", archive(saved({.key = text("1")})), "w: has a storage that the archive"},
      {"StorageIsAPath", archive(saved({.key = text("../data.pkl")})), "that the archive lacks"},
      {"StorageIsLonger", archive(saved({.count = number(7)})), "of another size"},
      {"StorageIsNegative", archive(saved({.count = number(-6)})), "of another size"},
      {"StorageIsCut", archive(saved({}), std::string(23, 'd')), "of another size"},
      {"StorageHasNoType",
       archive(saved({.type = "ctorch.storage\nUntypedStorage\n", .count = number(24)})),
       "has a storage without a dtype"},
      {"ReachesBehind", archive(saved({.offset = number(1)})),
       "w: float32 [2, 3] does not lie in its storage of 6 values"},
      {"StrideReachesBehind", archive(saved({.strides = numbers({4, 1})})), "does not lie in"},
      {"NegativeOffset", archive(saved({.offset = number(-1)})), "no whole number >= 0"},
      {"NegativeStride", archive(saved({.strides = numbers({-3, 1})})), "no whole number >= 0"},
      {"NegativeSize", archive(saved({.sizes = numbers({-2, 3})})), "no whole number >= 0"},
      {"OffsetOverflows", archive(saved({.offset = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"})),
       "does not lie in its storage"},
      {"SizeOverflows",
       archive(saved(
           {.sizes = numbers({INT32_MAX, INT32_MAX, 3, 3}), .strides = numbers({0, 0, 0, 0})})),
       "has a shape whose size overflows"},
      {"StridesLack", archive(saved({.strides = numbers({1})})), "another number of strides"},
      {"TooManySizes", archive(saved({.sizes = numbers(std::vector<int32_t>(65, 1))})),
       "has more than 64 dimensions"},
      {"SizesAreText", archive(saved({.sizes = text("2")})), "has an argument of another form"},
      {"NoBools", archive(saved({.type = "ctorch\nBoolStorage\n", .count = number(24)})),
       "has a bool that is neither 0 nor 1"},
      {"NoName", archive(saved({.name = text("")})), "is an empty name"},
      {"ControlCharacter", archive(saved({.name = text("a\nb")})), "a\\nb: is a name with"},
      {"GivenTwice", archive(twice), "w: is given twice"},
  };
}

std::vector<tare::testing::HostileFile> archives() {
  const std::string good = archive(saved({}));
  std::string outside = good;
  const size_t central = good.find("PK\x01\x02");
  outside.replace(central + 24, 4, "\xff\xff\xff\x7f");
  outside.replace(central + 20, 4, "\xff\xff\xff\x7f");
  return {
      {"Empty", "", "file: is neither a zip archive"},
      {"Text", "hello, this is no archive", "file: is neither a zip archive"},
      {"NothingButTheStart", "PK\x03\x04", "archive: has no directory at its end"},
      {"Compressed", zip_of({{"f/data.pkl", saved({}), 8}}), "f/data.pkl: is compressed"},
      {"Encrypted", zip_of({{"f/data.pkl", saved({}), 0, 1}}), "f/data.pkl: is encrypted"},
      {"EntryBehindTheEnd", outside, "f/data.pkl: ends behind the end of the file"},
      {"EntryTwice", zip_of({{"f/data.pkl", ""}, {"f/data.pkl", ""}}), "is given twice"},
      {"NoEntries", zip_of({}), "has no entry NAME/data.pkl"},
      {"NoPickle", zip_of({{"f/other", ""}}), "has no entry NAME/data.pkl"},
      {"TwoPickles", zip_of({{"f/data.pkl", ""}, {"g/data.pkl", ""}}), "two entries data.pkl"},
      {"TorchScript", zip_of({{"f/data.pkl", ""}, {"f/constants.pkl", ""}}), "TorchScript"},
      {"BigEndian", zip_of({{"f/data.pkl", saved({})}, {"f/byteorder", "big"}}),
       "byteorder: is 'big', and only 'little' is read"},
  };
}

const auto kName = tare::testing::test_name;
INSTANTIATE_TEST_SUITE_P(Calls, HostileTorchFile, ::testing::ValuesIn(calls()), kName);
INSTANTIATE_TEST_SUITE_P(Pickles, HostileTorchFile, ::testing::ValuesIn(damaged_pickles()), kName);
INSTANTIATE_TEST_SUITE_P(Tensors, HostileTorchFile, ::testing::ValuesIn(wrong_tensors()), kName);
INSTANTIATE_TEST_SUITE_P(Archives, HostileTorchFile, ::testing::ValuesIn(archives()), kName);

TEST(TorchFile, OfThisTestsWriterIsRead) {
  const TempDir dir;
  std::string data(24, '\0');
  for (int32_t i = 0; i < 6; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(data.data() + 4 * i, &value, 4);
  }
  overwrite(dir / "file", archive(saved({}), data));
  EXPECT_TRUE(same(by_name(TorchFile::open(dir / "file")).at("w"), counting({2, 3})));
}

TEST(TorchFile, EveryTruncationIsRefused) {
  const TempDir dir;
  const std::string whole = read_file(golden("torch_nested.pt"));
  for (size_t size = 0; size < whole.size(); ++size) {
    overwrite(dir / "file", whole.substr(0, size));
    const auto part = tare::testing::refused_part([&] { (void)TorchFile::open(dir / "file"); });
    ASSERT_TRUE(part == "archive" || part == "file") << size << ": " << part;
  }
}

TEST(TorchFile, OfTheFormatBeforeArchivesIsRefused) {
  tare::testing::expect_refused("FormatError", "as PyTorch wrote before version 1.6",
                                [&] { (void)TorchFile::open(golden("torch_old.pt")); });
}

TEST(TorchFile, OfPythonThatCallsIsRefused) {
  tare::testing::expect_refused("FormatError", "calls posix.system, which is not read",
                                [&] { (void)TorchFile::open(golden("torch_call.pt")); });
}

}  // namespace
}  // namespace tare::checkpoint
