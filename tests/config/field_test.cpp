// Options structs from YAML and back, and their refusals.
#include "tare/config/field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <variant>

#include "config/expect_error.h"
#include "tare/config/override.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Split { train, valid };
void from_node(const config::Node& node, Split& split) {
  split = static_cast<Split>(config::choice(node, {"train", "valid"}));
}
config::Node to_node(const Split& split) {
  return config::Node::string(split == Split::train ? "train" : "valid");
}

/// A number, or {from, to}.
struct Ends {
  double from = 0, to = 0;
};
void visit_fields(auto& visit, Ends& o) { visit("from", o.from)("to", o.to); }
struct Rate : std::variant<double, Ends> {
  using variant::variant;
};
void from_node(const config::Node& node, Rate& rate) {
  if (node.kind == config::Kind::map) {
    rate = config::read<Ends>(node);
  } else {
    rate = config::read<double>(node);
  }
}
config::Node to_node(const Rate& rate) {
  return std::visit([](const auto& value) { return config::to_node(value); },
                    static_cast<const std::variant<double, Ends>&>(rate));
}

struct Phase {
  int64_t epochs = 1;
  Rate max_lr = 1e-3;
  std::optional<std::string> note{};
};
void visit_fields(config::Visitor& visit, Phase& o) {
  visit("epochs", o.epochs, config::at_least(1))("max_lr", o.max_lr, config::above(0))("note",
                                                                                       o.note);
}

struct Options {
  bool shuffle = true;
  int64_t batch = 64;
  double momentum = 0.9;
  std::string device = "auto";
  std::filesystem::path out = "runs";
  std::optional<int64_t> seed{};
  std::vector<int64_t> hidden{128};
  Split split = Split::valid;
  std::vector<Phase> phases{};
  Phase last{};
};
void visit_fields(auto& visit, Options& o) {
  visit("shuffle", o.shuffle)("batch", o.batch, config::at_least(1))(
      "momentum", o.momentum, config::between(0, 1))("device", o.device,
                                                     config::one_of({"auto", "cpu"}))("out", o.out)(
      "seed", o.seed, config::at_least(0))("hidden", o.hidden, config::at_least(1))(
      "split", o.split)("phases", o.phases)("last", o.last);
}

Options read(const std::string& text) {
  return config::read<Options>(config::parse_text(text, "r.yaml"));
}
std::string field_refusal(const std::string& text) {
  return config::message_of([&] { (void)read(text); });
}

/// A number of seconds, or `never`.
struct Pause {
  std::optional<int64_t> seconds{};
};
void from_node(const config::Node& node, Pause& value) {
  value.seconds.reset();
  if (node.text != "never") value.seconds = config::read<int64_t>(node);
}
config::Node to_node(const Pause& value) {
  return value.seconds ? config::to_node(*value.seconds) : config::Node::string("never");
}

struct Inner {
  std::optional<int64_t> pause{};
  int64_t first = 1, second = 2;
};
void visit_fields(config::Visitor& visit, Inner& o) {
  visit.as<Pause>("pause", o.pause, config::at_least(1))("first", o.first);
  visit("second", o.second, config::at_least(0));
}

struct Outer {
  Inner inner{};
  std::string between = "text";
};
void visit_fields(auto& visit, Outer& o) {
  visit.select(o.inner, {"second"});
  visit("between", o.between);
  visit.select(o.inner, {"pause", "first"});
}

TEST(Field, SelectedFieldsOfAnotherStructKeepTheirRulesAndHaveTheOrderOfTheSelection) {
  EXPECT_THAT(config::field_names<Outer>(), ElementsAre("second", "between", "pause", "first"));
  const auto read = [](const char* text) {
    return config::read<Outer>(config::parse_text(text, "test"));
  };
  EXPECT_EQ(read("second: 5").inner.second, 5);
  EXPECT_THROW((void)read("second: -1"), ConfigError);
}

TEST(Field, AValueHasTheFormOfAnotherType) {
  const auto read = [](const char* text) {
    return config::read<Inner>(config::parse_text(text, "test"));
  };
  EXPECT_EQ(read("pause: 3").pause, 3);
  EXPECT_FALSE(read("pause: never").pause);
  EXPECT_THROW((void)read("pause: 0"), ConfigError);
  EXPECT_EQ(config::to_node(Inner{}).find("pause")->text, "never");
  EXPECT_EQ(config::to_node(Inner{.pause = 3}).find("pause")->text, "3");
}

TEST(Read, FillsEveryKindOfField) {
  const Options o = read(
      "shuffle: false\nbatch: 32\nmomentum: 0\ndevice: cpu\nout: a/b\nseed: 3\nhidden: [1, "
      "2]\nsplit: train\n"
      "phases:\n  - {epochs: 2, max_lr: {from: 1e-5, to: 1e-3}, note: 12}\n  - {}\nlast: {epochs: "
      "9}\n");
  EXPECT_FALSE(o.shuffle);
  EXPECT_EQ(o.batch, 32);
  EXPECT_EQ(o.momentum, 0);
  EXPECT_EQ(o.device, "cpu");
  EXPECT_EQ(o.out, "a/b");
  EXPECT_EQ(o.seed, 3);
  EXPECT_THAT(o.hidden, ElementsAre(1, 2));
  EXPECT_EQ(o.split, Split::train);
  ASSERT_EQ(o.phases.size(), 2u);
  EXPECT_EQ(std::get<Ends>(o.phases[0].max_lr).from, 1e-5);
  EXPECT_EQ(o.phases[0].note, "12");
  EXPECT_EQ(std::get<double>(o.phases[1].max_lr), 1e-3);
  EXPECT_EQ(o.last.epochs, 9);
}

TEST(Read, TakesAWordInOtherLettersForTheWordOfTheRule) {
  EXPECT_EQ(read("device: CPU").device, "cpu");
  EXPECT_EQ(config::to_yaml(config::to_node(read("device: Cpu"))),
            config::to_yaml(config::to_node(read("device: cpu"))));
}

TEST(Read, KeepsWhatIsMissing) {
  Options o;
  o.batch = 7;
  o.last.epochs = 5;
  config::read_into(config::parse_text("momentum: 0.5\nlast: {note: x}\n", "t"), o);
  EXPECT_EQ(o.batch, 7);
  EXPECT_EQ(o.last.epochs, 5);
  EXPECT_EQ(o.last.note, "x");
  EXPECT_EQ(read("").batch, 64);
  EXPECT_EQ(read("last:\n").last.epochs, 1);
  o.seed = 1;
  config::read_into(config::parse_text("seed: null", "t"), o);
  EXPECT_FALSE(o.seed.has_value());
}

TEST(Read, ChangesNothingOnAnError) {
  Options o;
  EXPECT_THROW(config::read_into(config::parse_text("batch: 2\nmomentum: 5\n", "t"), o),
               ConfigError);
  EXPECT_EQ(o.batch, 64);
}

TEST(Read, RefusesWithPlaceAndPath) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"batch: 1\nmomentun: 1\n",
       "[config] r.yaml:2:1: momentun is not a known key (did you mean \"momentum\"?); allowed: "
       "shuffle, batch, "},
      {"phases:\n  - epochs: 1\n  - epoch: 2\n",
       "r.yaml:3:5: phases.1.epoch is not a known key (did you mean \"epochs\"?); allowed: epochs, "
       "max_lr, note"},
      {"phases:\n  - epochs: 0\n", "r.yaml:2:13: phases.0.epochs must be >= 1, got 0"},
      {"batch: 0\n", "r.yaml:1:8: batch must be >= 1, got 0"},
      {"batch: many\n", "r.yaml:1:8: batch must be a whole number, got many"},
      {"batch: 1.5\n", "batch must be a whole number, got 1.5"},
      {"batch: '8'\n", "batch must be a whole number, got \"8\""},
      {"batch:\n", "batch must be a whole number, got nothing"},
      {"batch: [1]\n", "batch must be a whole number, got a list"},
      {"batch: 99999999999999999999\n",
       "batch is out of range, got 99999999999999999999; allowed: -9223372036854775808 to "},
      {"batch: 99999999999999999999.5\n", "batch must be a whole number, got 9999"},
      {"momentum: 1.5\n", "momentum must be from 0 to 1, got 1.5"},
      {"momentum: .nan\n", "momentum must be from 0 to 1, got .nan"},
      {"momentum: 1e999\n",
       "momentum is out of range, got 1e999; allowed: the numbers of a double"},
      {"momentum: fast\n", "momentum must be a number, got fast"},
      {"shuffle: yes\n", "shuffle must be true or false, got yes"},
      {"device: cqu\n", "device is not known (did you mean \"cpu\"?), got cqu; allowed: auto, cpu"},
      {"device: [cpu]\n", "device must be text, got a list"},
      {"out: {}\n", "out must be a path, got a mapping"},
      {"seed: -1\n", "seed must be >= 0, got -1"},
      {"hidden: 3, 4\n", "hidden must be a list, got 3, 4; allowed: [3, 4]"},
      {"hidden: x\n", "hidden must be a whole number, got x"},
      {"hidden: 0\n", "hidden must be >= 1, got 0"},
      {"hidden: [3, 0]\n", "r.yaml:1:13: hidden.1 must be >= 1, got 0"},
      {"hidden: [3, x]\n", "r.yaml:1:13: hidden.1 must be a whole number, got x"},
      {"split: tain\n",
       "r.yaml:1:8: split is not known (did you mean \"train\"?), got tain; allowed: train, valid"},
      {"last: 3\n", "last must be a mapping, got 3; allowed: {key: value} with the keys "},
      {"last: {max_lr: 0}\n", "last.max_lr must be > 0, got 0"},
      {"last: {max_lr: {from: -1, to: 1}}\n", "last.max_lr.from must be > 0, got -1"},
      {"last: {max_lr: {form: 1}}\n", "last.max_lr.form is not a known key"},
      {"[1]\n", "r.yaml:1:1: must be a mapping, got a list"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_THAT(field_refusal(text), HasSubstr(message)) << text;
}

TEST(Read, SaysCommandLineForAnOverride) {
  config::Node root = config::parse_text("batch: 1\n", "r.yaml");
  config::apply_override(root, "bacth=2");
  EXPECT_THAT(
      config::message_of([&] { (void)config::read<Options>(root); }),
      HasSubstr("[config] command line: bacth is not a known key (did you mean \"batch\"?)"));
}

TEST(Read, LeavesAKeyThatIsUnsetAtItsDefault) {
  config::Node root = config::parse_text("shuffle: true\n", "r.yaml");
  for (const char* assignment : {"batch=", "hidden=", "device="})
    config::apply_override(root, assignment);
  const auto read = config::read<Options>(root);
  EXPECT_EQ(read.batch, Options().batch);
  EXPECT_EQ(read.hidden, Options().hidden);
  EXPECT_EQ(read.device, Options().device);
  config::apply_override(root, "bacth=");
  EXPECT_THAT(config::message_of([&] { (void)config::read<Options>(root); }),
              HasSubstr("bacth is not a known key (did you mean \"batch\"?)"));
}

TEST(Read, TakesOneNameOrNumberForAList) {
  const auto names = [](const char* text) {
    return config::read<std::vector<std::string>>(config::parse_text(text, "r.yaml"));
  };
  EXPECT_EQ(names("age"), std::vector<std::string>{"age"});
  EXPECT_EQ(names("[age]"), names("age"));
  EXPECT_EQ(config::read<std::vector<int64_t>>(config::parse_text("8", "r.yaml")),
            std::vector<int64_t>{8});
  EXPECT_THAT(config::message_of([&] { (void)names("{a: 1}"); }),
              HasSubstr("must be a list, got a mapping; allowed: [{a: 1}]"));
}

TEST(ToNode, DumpsInOrderAndReadsBack) {
  Options o;
  o.momentum = 0.1 + 0.2;
  o.device = "cpu";
  o.phases = {Phase{.epochs = 2, .max_lr = Ends{1e-5, 1e-3}, .note = "a: b\n"}, Phase{}};
  o.last.note = "null";
  const std::string yaml = config::to_yaml(config::to_node(o));
  EXPECT_THAT(yaml,
              HasSubstr("shuffle: true\nbatch: 64\nmomentum: 0.30000000000000004\ndevice: cpu\n"));
  const Options back = read(yaml);
  EXPECT_EQ(back.momentum, o.momentum);
  EXPECT_EQ(back.phases[0].note, "a: b\n");
  EXPECT_EQ(back.last.note, "null");
  EXPECT_EQ(config::to_yaml(config::to_node(back)), yaml);
}

TEST(Validate, NamesTheOperation) {
  const auto problem = [](const Options& o) {
    return config::message_of([&] { config::validate(o, "learner.fit"); });
  };
  EXPECT_EQ(problem({.batch = 0}), "[learner.fit] batch must be >= 1, got 0");
  EXPECT_EQ(problem({.momentum = std::numeric_limits<double>::quiet_NaN()}),
            "[learner.fit] momentum must be from 0 to 1, got .nan");
  EXPECT_EQ(problem({.device = "vulkan"}),
            "[learner.fit] device is not known, got vulkan; allowed: auto, cpu");
  EXPECT_EQ(problem({.seed = -1}), "[learner.fit] seed must be >= 0, got -1");
  EXPECT_EQ(problem({.hidden = {1, 0}}), "[learner.fit] hidden.1 must be >= 1, got 0");
  EXPECT_EQ(problem({.phases = {{}, {.epochs = -2}}}),
            "[learner.fit] phases.1.epochs must be >= 1, got -2");
  EXPECT_EQ(problem({.last = {.max_lr = 0.0}}), "[learner.fit] last.max_lr must be > 0, got 0");
  EXPECT_NO_THROW(config::validate(Options{}, "learner.fit"));
}

TEST(Validate, GivesTheFieldAsAPart) {
  const ConfigError error = config::error_of([] { config::validate(Phase{.epochs = 0}, "fit"); });
  EXPECT_EQ(error.field(), "epochs");
  EXPECT_EQ(error.got(), "0");
}

struct Texts {
  std::string best = "loss", name = "run";
};
void visit_fields(auto& visit, Texts& o) {
  visit("best", o.best, config::text_or_null());
  visit("name", o.name);
}

TEST(TextOrNull, TakesNullForAnEmptyText) {
  EXPECT_EQ(config::read<Texts>(config::parse_text("best: null", "r.yaml")).best, "");
  EXPECT_EQ(config::read<Texts>(config::parse_text("best: loss2", "r.yaml")).best, "loss2");
  const ConfigError error = config::error_of(
      [] { (void)config::read<Texts>(config::parse_text("name: null", "r.yaml")); });
  EXPECT_THAT(error.what(), HasSubstr("r.yaml:1:7: name must be text, got nothing"));
}

TEST(FieldNames, AreInOrder) {
  EXPECT_THAT(config::field_names<Phase>(), ElementsAre("epochs", "max_lr", "note"));
}

}  // namespace
}  // namespace tare
