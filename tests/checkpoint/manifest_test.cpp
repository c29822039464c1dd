// Manifests within limits, and damage that their seal finds.
#include "tare/checkpoint/manifest.h"

#include <nlohmann/json.hpp>

#include "checkpoint/support.h"

namespace tare::checkpoint {
namespace {

using nlohmann::json;

std::string refused_manifest(const std::string& text) {
  return refused_part([&] { (void)parse_object(text, "test", "file", "manifest"); });
}

TEST(Hash, IsXxh3Of64Bits) {
  EXPECT_EQ(hash(std::string_view()),
            "2d06800538d394c2");  // XXH3_64bits of nothing, as xxhsum -H3 prints it
  EXPECT_NE(hash("a"), hash("b"));
}

TEST(ParseObject, RefusesWhatOtherParsersLetPass) {
  EXPECT_EQ(refused_manifest(R"({"a":{"b":[1,2]}})"), "accepted");
  EXPECT_EQ(refused_manifest(R"({"a":1,"a":1})"), "manifest");
  EXPECT_EQ(refused_manifest(R"({"x":[{"a":1,"a":2}]})"), "manifest");
  EXPECT_EQ(refused_manifest(R"({"x":{"a":1},"y":{"a":2}})"), "accepted");
  EXPECT_EQ(refused_manifest("[]"), "manifest");
  EXPECT_EQ(refused_manifest(""), "manifest");
  EXPECT_EQ(refused_manifest("{}{}"), "manifest");
  EXPECT_EQ(refused_manifest(std::string("{}\0", 3)), "manifest");
  EXPECT_EQ(refused_manifest("{\"a\":" + std::string(1'000'000, '[')), "manifest");
}

TEST(ParseObject, DepthIsLimited) {
  const auto nested = [](int depth) {
    std::string text = "1";
    for (int i = 0; i < depth; ++i) text = "{\"a\":" + text + "}";
    return text;
  };
  EXPECT_EQ(refused_manifest(nested(kMaxManifestDepth - 1)), "accepted");
  EXPECT_EQ(refused_manifest(nested(kMaxManifestDepth + 1)), "manifest");
}

TEST(ParseObject, SizeIsLimited) {
  EXPECT_EQ(refused_manifest("{}" + std::string(static_cast<size_t>(kMaxManifestBytes), ' ')),
            "manifest");
}

TEST(Seal, GivesBackWhatWasSealed) {
  const json manifest = {{"a", 1}, {"nested", {{"list", {1, 2, 3}}}}};
  const std::string text = seal(manifest);
  EXPECT_EQ(unseal(text, "test", "file", "manifest"), manifest);
  EXPECT_TRUE(json::accept(text));
  EXPECT_TRUE(json::parse(text).contains("checksum"));
}

TEST(Seal, NoticesEveryFlippedBitAndEveryTruncation) {
  const std::string text = seal({{"key", "value"}, {"number", 12}});
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    const std::string damaged = testing::flipped(text, bit);
    EXPECT_EQ(refused_part([&] { (void)unseal(damaged, "test", "file", "manifest"); }), "manifest")
        << bit;
  }
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(refused_part([&] { (void)unseal(text.substr(0, size), "test", "file", "manifest"); }),
              "manifest");
  }
}

TEST(DigestJson, RoundTripsAndRefusesOtherThings) {
  const Digest digest{"0123456789abcdef", {{"a", "00000000000000ff"}}};
  EXPECT_EQ(digest_from_json(to_json(digest), "test", "file", "part"), digest);
  const auto part = [](const json& other) {
    return refused_part([&] { (void)digest_from_json(other, "test", "file", "part"); });
  };
  EXPECT_EQ(part({{"layout", "0123456789abcdef"}}), "part");
  EXPECT_EQ(part({{"layout", "0123456789abcdeF"}, {"tensors", json::object()}}), "part");
  EXPECT_EQ(part({{"layout", "0123456789abcdef"}, {"tensors", {{"a", 1}}}}), "part");
  EXPECT_EQ(part({{"layout", "0123456789abcdef"}, {"tensors", json::array()}}), "part");
}

TEST(Versions, AreOfThisBuild) {
  EXPECT_FALSE(tare_version().empty());
  EXPECT_EQ(libtorch_version().substr(0, 2), "2.");
}

}  // namespace
}  // namespace tare::checkpoint
