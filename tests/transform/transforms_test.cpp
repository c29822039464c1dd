#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tare/base/error.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

const Transforms& sample() {
  static const Transforms transforms{Resize{32, 40, true}, Flip{0.25}, Shift{3, "edge"},
                                     Affine{15, 0.2}, Normalise{{0.1307, 1.0 / 3}, {0.3081, 0.5}}};
  return transforms;
}

TEST(Transforms, ComeBackFromTheirConfigTree) {
  const std::string yaml = config::to_yaml(to_node(sample()));
  Transforms read;
  from_node(config::parse_text(yaml, "test"), read);
  EXPECT_EQ(read, sample());
}

TEST(Transforms, ReadTheDocumentedForm) {
  Transforms read;
  from_node(
      config::parse_text(
          "- resize: {height: 32, width: 32}\n- normalise: {mean: [0.13], std: [0.31]}\n- flip:\n",
          "t"),
      read);
  EXPECT_EQ(read, (Transforms{Resize{32, 32}, Normalise{{0.13}, {0.31}}, Flip{}}));
}

TEST(Transforms, ANameStandsForItsDefaults) {
  Transforms read;
  from_node(config::parse_text("[flip, shift: {pixels: 2}, affine]", "t"), read);
  EXPECT_EQ(read, (Transforms{Flip{}, Shift{2}, Affine{}}));
}

TEST(Transforms, EveryKindHasItsName) {
  EXPECT_STREQ(name_of(Resize{}), "resize");
  EXPECT_STREQ(name_of(Normalise{}), "normalise");
  EXPECT_STREQ(name_of(Flip{}), "flip");
  EXPECT_STREQ(name_of(Shift{}), "shift");
  EXPECT_STREQ(name_of(Affine{}), "affine");
}

TEST(Transforms, DeterministicDropsWhatIsRandom) {
  EXPECT_TRUE(sample().random());
  const Transforms kept = sample().deterministic();
  EXPECT_FALSE(kept.random());
  EXPECT_EQ(kept, (Transforms{sample().steps()[0], sample().steps()[4]}));
}

TEST(Transforms, OutputShapeFollowsTheLastResize) {
  EXPECT_EQ(sample().output_shape({2, 28, 28}), (std::vector<int64_t>{2, 32, 40}));
  EXPECT_EQ(Transforms().output_shape({1, 5, 6}), (std::vector<int64_t>{1, 5, 6}));
  EXPECT_THROW((void)sample().output_shape({3, 28, 28}), ConfigError);
  EXPECT_THROW((void)sample().output_shape({28, 28}), ShapeError);
}

std::string error_of(const char* yaml) {
  Transforms read{Flip{}};
  try {
    config::read_into(config::parse_text(yaml, "test.yaml"), read);
  } catch (const ConfigError& error) {
    EXPECT_EQ(read, Transforms{Flip{}}) << "changed by a failed read";
    return error.what();
  }
  ADD_FAILURE() << "accepted " << yaml;
  return {};
}

TEST(Transforms, WrongConfigNamesThePlaceAndWhatIsAllowed) {
  EXPECT_THAT(error_of("- resise: {height: 3, width: 3}\n"),
              AllOf(HasSubstr("test.yaml:1"), HasSubstr("resize")));
  EXPECT_THAT(error_of("- resize: {height: 0, width: 3}\n"), HasSubstr("height"));
  EXPECT_THAT(error_of("- resize: {height: 3, widht: 3}\n"), HasSubstr("width"));
  EXPECT_THAT(error_of("- flip: {probability: 1.5}\n"), HasSubstr("probability"));
  EXPECT_THAT(error_of("- shift: {pixels: 2, padding: mirror}\n"), HasSubstr("edge"));
  EXPECT_THAT(error_of("- normalise: {mean: [0.1], std: [0]}\n"), HasSubstr("std"));
  EXPECT_THAT(error_of("- {flip: {}, shift: {}}\n"), HasSubstr("normalise"));
  EXPECT_THAT(error_of("flip: {}\n"), HasSubstr("list"));
  EXPECT_THAT(error_of("[flip, flipp]"),
              AllOf(HasSubstr("test.yaml:1:8: 1"), HasSubstr("did you mean \"flip\"")));
  EXPECT_THAT(error_of("[flip, {flip: {probability: 2}}]"), HasSubstr("1.flip"));
}

TEST(Transforms, WrongValuesInCodeAreRefused) {
  EXPECT_THROW(Transforms{Resize{}}, ConfigError);
  EXPECT_THROW(Transforms{(Flip{-0.1})}, ConfigError);
  EXPECT_THROW(Transforms{(Shift{-1})}, ConfigError);
  EXPECT_THROW((Transforms{Shift{1, "wrap"}}), ConfigError);
  EXPECT_THROW(Transforms{(Normalise{})}, ConfigError);
  EXPECT_THROW((Transforms{Normalise{{0.1}, {0.1, 0.2}}}), ConfigError);
  EXPECT_THROW((Transforms{Normalise{{0}, {std::numeric_limits<double>::quiet_NaN()}}}),
               ConfigError);
}

}  // namespace
}  // namespace tare
