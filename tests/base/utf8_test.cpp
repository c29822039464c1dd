// Tests where a character of UTF-8 ends, and which bytes are none.
#include "tare/base/utf8.h"

#include <gtest/gtest.h>

namespace tare::testing {
namespace {

TEST(Utf8, GivesTheBytesOfACharacter) {
  EXPECT_EQ(utf8_length("a\xc3\xa4"), 1U);
  EXPECT_EQ(utf8_length("\xc2\x80z"), 2U);
  EXPECT_EQ(utf8_length("\xdf\xbf"), 2U);
  EXPECT_EQ(utf8_length("\xe0\xa0\x80"), 3U);
  EXPECT_EQ(utf8_length("\xed\x9f\xbf"), 3U);
  EXPECT_EQ(utf8_length("\xef\xbf\xbf"), 3U);
  EXPECT_EQ(utf8_length("\xf0\x90\x80\x80"), 4U);
  EXPECT_EQ(utf8_length("\xf4\x8f\xbf\xbf"), 4U);
  EXPECT_EQ(utf8_length(std::string_view("\0", 1)), 1U);
}

TEST(Utf8, FindsNoCharacterInOtherBytes) {
  for (const char* text :
       {"", "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3z", "\xe0\x9f\xbf", "\xe2\x82",
        "\xe2\x82z", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff"})
    EXPECT_EQ(utf8_length(text), 0U) << ::testing::PrintToString(text);
}

}  // namespace
}  // namespace tare::testing
