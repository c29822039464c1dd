// Safetensors files that break one rule each. Every one is refused at once, naming what is wrong.
#include <cstring>

#include "checkpoint/support.h"
#include "support/hostile.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/safetensors.h"

namespace tare::checkpoint {
namespace {

std::string file_of(const std::string& header, const std::string& data, uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

std::string file_of(const std::string& header, const std::string& data = std::string(8, 'd')) {
  return file_of(header, data, header.size());
}

std::string refused_file(const std::string& file) {
  return refused_part([&] { (void)parse_header(as_bytes(file), "file"); });
}

struct Case {
  const char* name;
  std::string file;
  std::string part;
};

// A tensor of 8 bytes, all of the data.
std::string tensor(const std::string& fields) { return "{\"t\":{" + fields + "}}"; }

const std::string kGood = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";

class HostileFile : public ::testing::TestWithParam<Case> {};

TEST_P(HostileFile, IsRefusedByName) {
  const tare::testing::TempDir dir;
  overwrite(dir / "file", GetParam().file);
  const std::string part = GetParam().part.empty() ? "" : GetParam().part + ": ";
  tare::testing::expect_refused("FormatError", "/file: " + part,
                                [&] { (void)SafeTensors::open(dir / "file"); });
}

TEST(HostileFileOfPyTorch, IsCalledAZipArchive) {
  const tare::testing::TempDir dir;
  for (const std::string start : {"PK\3\4", "PK\5\6"}) {  // the second of one without entries
    overwrite(dir / "file", start + std::string(60, '\0'));
    tare::testing::expect_refused("FormatError", "/file: header: is that of a zip archive",
                                  [&] { (void)SafeTensors::open(dir / "file"); });
  }
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<Case> with_wrong_frame() {
  std::string many = "{";
  for (int i = 0; i < 20'000; ++i)
    many += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  return {
      {"Empty", "", "header"},
      {"ShorterThanTheLength", std::string(7, '\0'), "header"},
      {"NothingButTheLength", std::string(8, '\0'), "header"},
      {"HeaderBehindTheFile", file_of("{}", "", 3), "header"},
      {"HeaderLengthOverflows", file_of("{}", "", UINT64_MAX), "header"},
      {"HeaderLengthIsNegative", file_of("{}", "", uint64_t{1} << 63), "header"},
      {"HeaderAboveTheLimit", file_of("{}", "", kMaxHeaderBytes + 1), "header"},
      {"SpaceInFront", file_of(" {}", ""), "header"},
      {"ByteOrderMarkInFront", file_of("\xef\xbb\xbf{}", ""), "header"},
      {"ZipArchive", "PK\x03\x04" + std::string(100, '\0'), "header"},
      {"Pickle", "\x80\x02}q\x01(X" + std::string(100, 'x'), "header"},
      {"NestsThreeMillionDeep", file_of("{\"t\":" + std::string(3'000'000, '[')), "t"},
      {"NestsThreeMillionDeepInAShape", file_of("{\"t\":{\"shape\":" + std::string(3'000'000, '[')),
       "t"},
      {"NestsThreeMillionObjects", file_of("{\"t\":" + repeated("{\"t\":", 500'000)), "t"},
      {"NameOfAMebibyte", file_of("{\"" + std::string(1 << 20, 'n') + "\":{" + kGood + "}}"),
       std::string(200, 'n') + "..."},
      {"ManyTensorsThenNone", file_of(many), "header"},
  };
}

std::vector<Case> with_wrong_header() {
  const std::string two = R"({"a":{"dtype":"U8","shape":[N],"data_offsets":[0,N]},)"
                          R"("b":{"dtype":"U8","shape":[M],"data_offsets":[B,E]}})";
  const auto pair = [&](const char* n, const char* m, const char* b, const char* e) {
    std::string text = two;
    for (const auto& [key, value] : {std::pair{"N", n}, {"M", m}, {"B", b}, {"E", e}}) {
      for (size_t at = 0; (at = text.find(key, at)) != std::string::npos; ++at)
        text.replace(at, 1, value);
    }
    return text;
  };
  return {
      {"NotJson", "{nonsense", "header"},
      {"CutOff", "{\"t\":{" + kGood, "header"},
      {"TextBehindTheEnd", tensor(kGood) + "x", "header"},
      {"ZeroByteBehindTheEnd", tensor(kGood) + std::string(4, '\0'), "header"},
      {"SecondObject", tensor(kGood) + tensor(kGood), "header"},
      {"ByteThatIsNoUtf8", "{\"\xff\":{" + kGood + "}}", "header"},
      {"LoneSurrogate", "{\"\\ud800\":{" + kGood + "}}", "header"},
      {"ValueIsNumber", R"({"t":1})", "t"},
      {"ValueIsText", R"({"t":"x"})", "t"},
      {"ValueIsList", R"({"t":[]})", "t"},
      {"ValueIsNull", R"({"t":null})", "t"},
      {"ValueIsBool", R"({"t":true})", "t"},
      {"DuplicateTensor", "{\"t\":{" + kGood + "},\"t\":{" + kGood + "}}", "t"},
      {"DuplicateMetadata", R"({"__metadata__":{},"__metadata__":{}})", "__metadata__"},
      {"DuplicateMetadataKey", R"({"__metadata__":{"k":"1","k":"2"}})", "__metadata__"},
      {"MetadataIsText", R"({"__metadata__":"x"})", "__metadata__"},
      {"MetadataValueIsNumber", R"({"__metadata__":{"k":1}})", "__metadata__"},
      {"MetadataValueIsObject", R"({"__metadata__":{"k":{}}})", "__metadata__"},
      {"EmptyName", "{\"\":{" + kGood + "}}", "header"},
      {"ControlCharacterInName", "{\"a\\nb\":{" + kGood + "}}", "a\\nb"},
      {"EscapeCodeInName", "{\"\\u001b[31m\":{" + kGood + "}}", "\\x1b[31m"},
      {"UnknownDtype", tensor(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])"), "t"},
      {"DtypeIsNumber", tensor(R"("dtype":1,"shape":[2],"data_offsets":[0,8])"), "t"},
      {"DtypeIsList", tensor(R"("dtype":[],"shape":[2],"data_offsets":[0,8])"), "t"},
      {"NoDtype", tensor(R"("shape":[2],"data_offsets":[0,8])"), "t"},
      {"NoShape", tensor(R"("dtype":"F32","data_offsets":[0,8])"), "t"},
      {"NoOffsets", tensor(R"("dtype":"F32","shape":[2])"), "t"},
      {"FieldTwice", tensor(R"("dtype":"F64",)" + kGood), "t"},
      {"UnknownField", tensor(R"("extra":[],)" + kGood), "t"},
      {"ShapeIsText", tensor(R"("dtype":"F32","shape":"2","data_offsets":[0,8])"), "t"},
      {"ShapeIsNegative", tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "t"},
      {"ShapeIsFraction", tensor(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "t"},
      {"ShapeIsHuge",
       tensor(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"), "t"},
      {"ShapeNests", tensor(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), "t"},
      {"ShapeProductOverflows",
       tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"), "t"},
      {"ShapeBytesOverflow",
       tensor(R"("dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8])"), "t"},
      {"ZeroHidesOverflow",
       tensor(R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"), "t"},
      {"RankTooHigh",
       tensor("\"dtype\":\"F32\",\"shape\":[2" +
              [] {
                std::string ones;
                for (int i = 0; i < 64; ++i) ones += ",1";
                return ones;
              }() +
              "],\"data_offsets\":[0,8]"),
       "t"},
      {"OneOffset", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8])"), "t"},
      {"ThreeOffsets", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), "t"},
      {"OffsetsReversed", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "t"},
      {"OffsetsTooShort", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "t"},
      {"OffsetsBehindTheFile", tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])"), "t"},
      {"DataWithoutTensor", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "data"},
      {"HoleAtTheFront", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), "t"},
      {"HoleBetween", pair("3", "4", "4", "8"), "b"},
      {"Overlap", pair("5", "4", "4", "8"), "b"},
      {"SameBytesTwice", pair("8", "8", "0", "8"), "b"},
      {"EmptyTensorInsideAnother", pair("8", "0", "4", "4"), "b"},
  };
}

std::string tied(const std::string& ties) {
  return "{\"__metadata__\":{\"tare.tied\":\"" + ties + "\"},\"t\":{" + kGood + "}}";
}

std::vector<Case> with_wrong_ties() {
  return {
      {"TiedToNoTensor", tied(R"({\"x\":\"y\"})"), "tare.tied"},
      {"TiedNameIsATensor", tied(R"({\"t\":\"t\"})"), "tare.tied"},
      {"TiedToANumber", tied(R"({\"x\":1})"), "tare.tied"},
      {"TiedNameIsEmpty", tied(R"({\"\":\"t\"})"), "tare.tied"},
      {"TiedNameTwice", tied(R"({\"x\":\"t\",\"x\":\"t\"})"), "tare.tied"},
      {"TiesAreAList", tied("[]"), "tare.tied"},
      {"TiesAreNoJson", tied("x"), "tare.tied"},
      {"TiesNestTooDeep", tied(R"({\"x\":)" + std::string(1'000'000, '[')), "tare.tied"},
  };
}

std::vector<Case> cases() {
  std::vector<Case> all = with_wrong_frame();
  for (const auto& headers : {with_wrong_header(), with_wrong_ties()})
    for (const Case& each : headers) all.push_back({each.name, file_of(each.file), each.part});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, HostileFile, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SafeTensorsHeader, MayBePaddedBehindButNotInFront) {
  EXPECT_EQ(refused_file(file_of("{}  ", "")), "accepted");
  EXPECT_EQ(refused_file(file_of(" {}", "")), "header");
}

TEST(SafeTensorsHeader, NamesUpToTheLimitAreTaken) {
  const auto named = [](size_t length) {
    return "{\"" + std::string(length, 'n') + "\":{" + kGood + "}}";
  };
  EXPECT_EQ(refused_file(file_of(named(kMaxNameBytes))), "accepted");
  EXPECT_EQ(refused_file(file_of(named(kMaxNameBytes + 1))).substr(0, 4), "nnnn");
}

TEST(SafeTensorsHeader, TiesToATensorAreTaken) {
  EXPECT_EQ(refused_file(file_of(tied(R"({\"x\":\"t\"})"))), "accepted");
}

TEST(SafeTensorsHeader, EveryTruncationIsRefused) {
  const tare::testing::TempDir dir;
  write(dir / "file", {{"weight", counting({3, 5})}, {"bias", counting({5})}}, {{"key", "value"}});
  const std::string whole = read_file(dir / "file");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refused_file(whole.substr(0, size)), "accepted") << size;
  }
}

}  // namespace
}  // namespace tare::checkpoint
