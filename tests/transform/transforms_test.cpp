// Transforms as options, and transforms that a program adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "tare/base/error.h"
#include "tare/transform/random.h"
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

TEST(Transforms, AResizeThatWasStoredWithoutAntialiasHasNone) {
  const auto list = [](const char* text) { return config::parse_text(text, "stored"); };
  const auto old = config::read<Transforms>(
      with_stored_defaults(list("- flip: {}\n- resize: {height: 8, width: 9, round: true}\n")));
  EXPECT_EQ(old, (Transforms{Flip{}, Resize{8, 9, true, false}}));
  const Transforms both{Resize{8, 9}, Resize{4, 4, false, false}};
  EXPECT_EQ(config::read<Transforms>(with_stored_defaults(to_node(both))), both);
}

TEST(Transforms, ANameStandsForItsDefaults) {
  Transforms read;
  from_node(config::parse_text("[flip, shift: {pixels: 2}, affine]", "t"), read);
  EXPECT_EQ(read, (Transforms{Flip{}, Shift{2}, Affine{}}));
}

TEST(Transforms, EveryKindHasItsName) {
  EXPECT_EQ(name_of(Resize{}), "resize");
  EXPECT_EQ(name_of(Normalise{}), "normalise");
  EXPECT_EQ(name_of(Flip{}), "flip");
  EXPECT_EQ(name_of(Shift{}), "shift");
  EXPECT_EQ(name_of(Affine{}), "affine");
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

/// Adds a number to every pixel: its own, or with a limit one that each image draws.
struct BrightenOptions {
  double by = 0.5;
  bool random = false;
};
void visit_fields(auto& visit, BrightenOptions& o) {
  visit("by", o.by, config::between(0, 1))("random", o.random);
}
class Brighten final : public ImageTransform {
 public:
  explicit Brighten(const BrightenOptions& options) : options_(options) {}
  [[nodiscard]] bool random() const override { return options_.random; }
  [[nodiscard]] at::Tensor apply(at::Tensor images,
                                 std::span<const uint64_t> seeds) const override {
    const auto by = static_cast<float>(options_.by);
    if (!options_.random) return images.add_(by);
    for (int64_t i = 0; i < images.size(0); ++i)
      images[i].add_(RandomBits(seeds[static_cast<size_t>(i)]).uniform(0, by));
    return images;
  }

 private:
  BrightenOptions options_;
};

class AddedTransform : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    transforms::registry().add<BrightenOptions>(
        "brighten", "add to every pixel",
        [](const BrightenOptions& o) { return Added{std::make_shared<Brighten>(o)}; });
  }
  static Transforms read(const char* yaml) {
    Transforms transforms;
    from_node(config::parse_text(yaml, "t"), transforms);
    return transforms;
  }
};

TEST_F(AddedTransform, ActsInItsPlaceAndIsWrittenAsItIsRead) {
  const at::Tensor bytes = at::full({2, 1, 3, 3}, 51, at::kByte);
  const auto value = [&](const char* yaml) {
    return read(yaml).apply(bytes, {}, false)[1][0][2][2].item<float>();
  };
  EXPECT_FLOAT_EQ(value("[brighten]"), 0.2F + 0.5F);
  EXPECT_FLOAT_EQ(value("[{normalise: {mean: [0.1], std: [0.5]}}, {brighten: {by: 0.25}}]"), 0.45F);
  EXPECT_FLOAT_EQ(value("[{brighten: {by: 0.25}}, {normalise: {mean: [0.1], std: [0.5]}}]"), 0.7F);
  EXPECT_FLOAT_EQ(value("[brighten, brighten]"), 1.2F);
  EXPECT_FLOAT_EQ(value("[{resize: {height: 5, width: 5, round: true}}, brighten]"), 0.7F);
  const Transforms two = read("[brighten, {resize: {height: 5, width: 5}}]");
  EXPECT_EQ(config::to_yaml(to_node(two)),
            config::to_yaml(to_node(read(config::to_yaml(to_node(two)).c_str()))));
  EXPECT_EQ(two.deterministic(), two);
  EXPECT_EQ(two.output_shape({1, 3, 3}), (std::vector<int64_t>{1, 5, 5}));
  EXPECT_EQ(bytes[0][0][0][0].item<int64_t>(), 51) << "the batch is not changed";
}

TEST_F(AddedTransform, DrawsByTheSampleInTrainingOnly) {
  const Transforms random = read("[{brighten: {random: true}}]");
  EXPECT_TRUE(random.random());
  EXPECT_TRUE(random.deterministic().steps().empty());
  const at::Tensor images = at::zeros({2, 1, 2, 2});
  const std::vector<uint64_t> seeds{3, 4}, second{4};
  const at::Tensor both = random.apply(images, seeds, true);
  EXPECT_TRUE(at::equal(both[1], random.apply(images.slice(0, 1), second, true)[0]));
  EXPECT_FALSE(at::equal(both[0], both[1]));
  EXPECT_TRUE(at::equal(random.apply(images, {}, false), images));
  const at::Tensor masks = at::ones({2, 2, 2}, at::kLong);
  EXPECT_TRUE(random.apply_to_targets(masks, seeds, true).is_same(masks));
}

TEST_F(AddedTransform, IsCheckedAsTheOthers) {
  EXPECT_THAT(error_of("[{brighten: {by: 2}}]"), HasSubstr("0.brighten.by must be from 0 to 1"));
  EXPECT_THAT(error_of("[brigten]"), HasSubstr("did you mean \"brighten\""));
  EXPECT_THROW((Transforms{Added{}}), ConfigError);
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
