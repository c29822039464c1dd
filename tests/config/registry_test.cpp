// Registry: entries with options of their own, choices out of YAML, errors with their places.
#include "tare/config/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tare {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Sides {
  int64_t width = 2, height = 3;
};
void visit_fields(auto& visit, Sides& o) {
  visit("width", o.width, config::at_least(1))("height", o.height);
}

class Areas : public ::testing::Test {
 protected:
  Areas() {
    areas_.add<Sides>("rectangle", "width times height", [](const Sides& o, int64_t factor) {
      if (o.height == 13) throw ConfigError("area", "height", "brings bad luck", "12", "13");
      return o.width * o.height * factor;
    });
    areas_.add("point", "nothing", [](int64_t factor) { return 0 * factor; });
  }
  static config::Choice choice(const std::string& yaml) {
    return config::read<config::Choice>(config::parse_text(yaml, "a.yaml"));
  }
  [[nodiscard]] std::string refusal(const std::string& yaml) const {
    try {
      (void)areas_.make(areas_.complete(choice(yaml)), 1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  config::Registry<int64_t(int64_t)> areas_{"shape"};
};

TEST_F(Areas, AreMadeByNameWithTheirOptions) {
  EXPECT_EQ(areas_.make(choice("rectangle"), 1), 6);
  EXPECT_EQ(areas_.make(choice("{rectangle: {height: 5}}"), 2), 20);
  EXPECT_EQ(areas_.make(choice("{point: }"), 2), 0);
  EXPECT_THAT(areas_.names(), ElementsAre("point", "rectangle"));
  EXPECT_EQ(areas_.infos()[1].summary, "width times height");
  EXPECT_EQ(config::to_yaml(areas_.infos()[1].defaults), "width: 2\nheight: 3\n");
}

TEST_F(Areas, AChoiceIsCompletedWithDefaultsAndWrittenAsItIsRead) {
  const config::Choice whole = areas_.complete(choice("{rectangle: {height: 5}}"));
  EXPECT_EQ(config::to_yaml(config::to_node(whole)), "rectangle:\n  width: 2\n  height: 5\n");
  EXPECT_EQ(config::read<config::Choice>(config::to_node(whole)), whole);
  EXPECT_EQ(areas_.complete(whole), whole);
}

TEST_F(Areas, AFlatChoiceHasItsNameAsType) {
  const auto flat = [](const std::string& yaml) {
    config::Choice value{.name = "point"};
    config::from_flat_node(config::parse_text(yaml, "a.yaml"), value);
    return value;
  };
  const auto message = [&](const std::string& yaml) -> std::string {
    try {
      (void)areas_.make(flat(yaml), 1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(areas_.make(flat("{type: rectangle, height: 5}"), 1), 10);
  EXPECT_EQ(areas_.make(flat("rectangle"), 1), 6);
  EXPECT_EQ(areas_.make(flat("{}"), 1), 0) << "without a type the name stays";
  EXPECT_EQ(config::to_yaml(config::to_node(areas_.complete(flat("{type: rectangle, height: 5}")))),
            "type: rectangle\nwidth: 2\nheight: 5\n");
  EXPECT_EQ(config::to_yaml(config::to_short_node(choice("point"))), "point\n");
  EXPECT_THAT(message("{type: rectangel}"),
              AllOf(HasSubstr("a.yaml:1:8: type is no shape"), HasSubstr("\"rectangle\"")));
  EXPECT_THAT(message("{type: rectangle, width: 0}"), HasSubstr("a.yaml:1:26: width must be >= 1"));
  EXPECT_THAT(message("{type: rectangle, height: 13}"),
              HasSubstr("a.yaml:1:27: height brings bad"));
  EXPECT_THAT(message("{width: 1}"), HasSubstr("width is not a known key; there are no options"));
}

TEST_F(Areas, WhatIsNoChoiceIsRefusedAtItsPlace) {
  EXPECT_THAT(refusal("rectangel"),
              AllOf(HasSubstr("a.yaml:1:1: is no shape (did you mean \"rectangle\"?)"),
                    HasSubstr("got rectangel; allowed: point, rectangle")));
  EXPECT_THAT(refusal("{rectangle: {wide: 5}}"),
              AllOf(HasSubstr("a.yaml:1:14: rectangle.wide is not a known key"),
                    HasSubstr("did you mean \"width\"")));
  EXPECT_THAT(refusal("{rectangle: {width: 0}}"),
              HasSubstr("a.yaml:1:21: rectangle.width must be >= 1, got 0"));
  EXPECT_THAT(refusal("{rectangle: {height: 13}}"),
              HasSubstr("rectangle.height brings bad luck, got 13; allowed: 12"));
  EXPECT_THAT(refusal("{point: {x: 1}}"), HasSubstr("point.x is not a known key"));
  for (const char* text : {"[rectangle]", "{}", "{point: , rectangle: }"})
    EXPECT_THROW((void)choice(text), ConfigError) << text;
}

TEST_F(Areas, AnUnknownNameGivenInCodeIsRefusedWithTheKindAndTheNearestName) {
  const auto message = [&](const std::string& name) -> std::string {
    try {
      (void)areas_.make(name, 1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(
      message("rectangel"),
      "[shape] name is no shape (did you mean \"rectangle\"?), got rectangel; allowed: point, "
      "rectangle");
  EXPECT_EQ(message("zzz"), "[shape] name is no shape, got zzz; allowed: point, rectangle");
}

TEST(UnknownEntry, SaysWhatIsAllowedOnceAlsoWithinAnotherField) {
  const ConfigError error = config::unknown_entry("loss", "loss", "mze", {"l1", "mse"});
  EXPECT_THAT(error.what(), StartsWith("[loss] no loss is named 'mze' (did you mean \"mse\"?); "
                                       "allowed: l1, mse"));
  EXPECT_EQ(error.field(), "loss");
  const std::string within = error.within("phases.0", {}).what();
  EXPECT_EQ(within.find("allowed:"), within.rfind("allowed:")) << within;
}

TEST_F(Areas, ALaterEntryOfANameReplacesTheFirst) {
  areas_.add("point", "one", [](int64_t) { return 1; });
  EXPECT_EQ(areas_.make(choice("point"), 5), 1);
  EXPECT_EQ(areas_.names().size(), 2U);
}

}  // namespace
}  // namespace tare
