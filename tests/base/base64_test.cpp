// Base64 against the vectors of its standard.
#include "tare/base/base64.h"

#include <gtest/gtest.h>

namespace tare {
namespace {

TEST(Base64, WritesTheVectorsOfTheStandard) {  // RFC 4648, section 10
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

TEST(Base64, GivesTheBytesBack) {
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "\xff\xfe\x80", "?>~"})
    EXPECT_EQ(bytes_of_base64(base64(bytes)), bytes);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(bytes_of_base64(base64(all)), all);
  EXPECT_EQ(bytes_of_base64("Zm9\""), std::nullopt);
}

TEST(Base64, KnowsWhatItMayHaveWritten) {
  for (const char* text : {"", "Zg==", "Zm8=", "Zm9v", "//4A"})
    EXPECT_TRUE(is_base64(text)) << text;
  for (const char* text : {"Z", "Zg=", "Zm9v\n", "Zm9\"", "Z=8=", "===="})
    EXPECT_FALSE(is_base64(text)) << text;
}

}  // namespace
}  // namespace tare
