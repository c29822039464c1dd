// The messages of every exception, escaped text and nearest names.
#include "tare/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace tare {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Source, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ((Source{"a.yaml", 3, 5}.str()), "a.yaml:3:5");
  EXPECT_EQ((Source{"a.yaml", 3, 0}.str()), "a.yaml:3");
  EXPECT_EQ((Source{"command line", 0, 0}.str()), "command line");
  EXPECT_EQ(Source{}.str(), "");
}

TEST(ConfigError, NamesPlaceFieldAndWhatIsAllowed) {
  const ConfigError error({"run.yaml", 3, 5}, "device", "is not known", "auto, cpu", "\"gpu\"");
  EXPECT_STREQ(error.what(),
               "[config] run.yaml:3:5: device is not known, got \"gpu\"; allowed: auto, cpu");
  EXPECT_EQ(error.source().line, 3);
  EXPECT_EQ(error.field(), "device");
  EXPECT_EQ(error.problem(), "is not known");
  EXPECT_EQ(error.allowed(), "auto, cpu");
  EXPECT_EQ(error.got(), "\"gpu\"");
}

TEST(ConfigError, ForValuesInCodeStartsWithTheOperation) {
  EXPECT_STREQ(ConfigError("learner.fit", "epochs must be >= 1, got 0").what(),
               "[learner.fit] epochs must be >= 1, got 0");
  const ConfigError parts("learner.fit", "epochs", "must be >= 1", "", "0");
  EXPECT_STREQ(parts.what(), "[learner.fit] epochs must be >= 1, got 0");
  EXPECT_EQ(parts.field(), "epochs");
}

TEST(ConfigError, AboutKeepsTheMessage) {
  const ConfigError whole("learner.fit", "batch 64 is larger than the training split");
  const ConfigError parts = whole.about("batch", "at most 48", "64");
  EXPECT_STREQ(parts.what(), whole.what());
  EXPECT_EQ(parts.field(), "batch");
  EXPECT_EQ(parts.allowed(), "at most 48");
  EXPECT_EQ(parts.got(), "64");
}

TEST(UnknownName, NamesTheNearestAndAll) {
  const std::vector<std::string> known{"l1", "mse"};
  EXPECT_STREQ(unknown_name("loss", "loss", "hinge", known).what(),
               "[loss] no loss is named 'hinge'; allowed: l1, mse");
  const ConfigError near = unknown_name("loss", "loss", "mze", known);
  EXPECT_STREQ(near.what(),
               "[loss] no loss is named 'mze' (did you mean \"mse\"?); allowed: l1, mse");
  EXPECT_EQ(near.field(), "loss");
  EXPECT_EQ(near.allowed(), "l1, mse");
  EXPECT_EQ(near.got(), "mze");
  EXPECT_EQ(unknown_name("metric", "metric", "mze", known, "metrics").field(), "metrics");
}

TEST(Listed, JoinsNamesAndEscapesThem) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a", "b\n", "c"}), "a, b\\n, c");
  EXPECT_EQ(listed({"a", "b", "c", "d"}, 2), "a, b and 2 more");
  EXPECT_EQ(listed({"a", "b"}, 2), "a, b");
}

TEST(DivergedError, CountsEpochAndStepFromOne) {
  const DivergedError error("fit", "loss", 1e39, 1, 2);
  EXPECT_THAT(error.what(), HasSubstr("in epoch 1, step 2;"));
  EXPECT_EQ(error.epoch(), 1);
  EXPECT_EQ(error.step(), 2);
  EXPECT_THAT(error.what(), HasSubstr("; lower the learning rate, or look for NaN in the data"));
  EXPECT_THAT(DivergedError("fit", "loss", 1e39, 1, 2, "use fp32").what(),
              ::testing::EndsWith("; use fp32"));
}

TEST(ConfigError, WithinPutsTheParentBeforeTheField) {
  const ConfigError inner({}, "epochs", "must be >= 1");
  const ConfigError outer = inner.within("2", {"run.yaml", 7, 1}).within("phases", {"other", 1, 1});
  EXPECT_STREQ(outer.what(), "[config] run.yaml:7:1: phases.2.epochs must be >= 1");
  EXPECT_EQ(ConfigError({}, "", "is bad").within("a", {}).field(), "a");
}

TEST(ConfigError, EscapesTextFromOutside) {
  const ConfigError error({"a\nb.yaml", 1, 1}, "k\x1b[31m", "is bad", "", "x\ny");
  EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  EXPECT_THAT(error.what(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(error.what(), HasSubstr("a\\nb.yaml:1:1: k\\x1b[31m is bad, got x\\ny"));
}

TEST(StateError, NamesCallStateAndAdvice) {
  const StateError error("learner.fit", "the learner is destroyed", "build a new one");
  EXPECT_STREQ(error.what(),
               "[learner.fit] not possible: the learner is destroyed; build a new one");
  EXPECT_EQ(error.call(), "learner.fit");
  EXPECT_EQ(error.state(), "the learner is destroyed");
  EXPECT_STREQ(StateError("a", "b").what(), "[a] not possible: b");
}

TEST(ShapeError, NamesBothShapes) {
  const ShapeError error("loss", "[32]", "[32, 10]");
  EXPECT_STREQ(error.what(), "[loss] expected [32], got [32, 10]");
  EXPECT_EQ(error.expected(), "[32]");
  EXPECT_EQ(error.got(), "[32, 10]");
}

TEST(DeviceError, NamesBothDevices) {
  EXPECT_THAT(DeviceError("loss", "cpu", "cuda:0").what(), HasSubstr("cpu and cuda:0"));
}

TEST(IoError, NamesPathAndCause) {
  const IoError error("io.open", "/no/such", ENOENT);
  EXPECT_STREQ(error.what(), "[io.open] /no/such: No such file or directory");
  EXPECT_EQ(error.path(), "/no/such");
  EXPECT_EQ(error.error_number(), ENOENT);
  EXPECT_EQ(IoError("io.read", "p", "is too large").error_number(), 0);
}

TEST(FormatError, NamesThePart) {
  const FormatError error("safetensors.read", "w.safetensors", "conv1.weight", "hash differs");
  EXPECT_STREQ(error.what(), "[safetensors.read] w.safetensors: conv1.weight: hash differs");
  EXPECT_EQ(error.part(), "conv1.weight");
  EXPECT_STREQ(FormatError("a", "p", "", "empty").what(), "[a] p: empty");
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\nb\tc\r\x1b[0m\x7f"), "a\\nb\\tc\\x0d\\x1b[0m\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, KeepsUtf8AndEscapesWhatIsNot) {
  EXPECT_EQ(printable("Größe 模型 🙂"), "Größe 模型 🙂");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong '/'
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1 escape
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("ab€", 3), "ab...");
}

TEST(Nearest, FindsATypo) {
  const std::vector<std::string> names{"epochs", "max_lr", "device", "batch"};
  EXPECT_EQ(nearest("epoch", names), "epochs");
  EXPECT_EQ(nearest("devcie", names), "device");
  EXPECT_EQ(nearest("DEVICE", names), "device");
  EXPECT_EQ(nearest("max-lr", names), "max_lr");
}

TEST(Nearest, IsEmptyWhereNothingIsNear) {
  EXPECT_EQ(nearest("optimizer", {"epochs", "max_lr"}), "");
  EXPECT_EQ(nearest("lr", {"ab"}), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest(std::string(100'000, 'a'), {"aaaa"}), "");
}

TEST(DidYouMean, AddsTheNearestName) {
  EXPECT_EQ(did_you_mean("epoch", {"epochs", "batch"}), " (did you mean \"epochs\"?)");
  EXPECT_EQ(did_you_mean("optimizer", {"epochs", "batch"}), "");
}

}  // namespace
}  // namespace tare
