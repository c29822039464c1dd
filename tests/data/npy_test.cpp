// Arrays of NumPy: what is read, and which damage is named.
#include "tare/data/npy.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "support/npy_file.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/data/datasets.h"
#include "tare/data/level_source.h"
#include "tare/data/npy_check.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy_text(const std::string& head, const std::string& data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(head.size());
  text += '\0';
  return text + head + data;
}

std::string npy_refusal(const std::string& text) {
  const TempDir folder;
  io::write_atomically(folder / "a.npy", text);
  try {
    (void)read_npy(folder / "a.npy");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Npy, IsReadAsItWasSaved) {
  const TempDir folder;
  const at::Tensor numbers = at::arange(24).to(at::kFloat).view({2, 3, 4});
  write_npy(folder / "a.npy", numbers);
  EXPECT_TRUE(at::equal(read_npy(folder / "a.npy"), numbers));
  write_npy(folder / "a.npy", at::arange(5));
  EXPECT_TRUE(at::equal(read_npy(folder / "a.npy"), at::arange(5)));
  const std::string bytes = npy_text("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n",
                                     std::string("\x01\x00\xFF", 3));
  io::write_atomically(folder / "a.npy", bytes);
  EXPECT_EQ(read_npy(folder / "a.npy")[2].item<int64_t>(), 255);
}

TEST(Npy, NamesThePartThatIsWrong) {
  const auto head = [](const std::string& dtype, const std::string& order,
                       const std::string& shape) {
    return "{'descr': '" + dtype + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  };
  EXPECT_THAT(npy_refusal("PK\x03\x04 is a zip"), HasSubstr("magic: is not that of a .npy file"));
  EXPECT_THAT(npy_refusal(npy_text(head("<c8", "False", "(1,)"), "12345678")),
              HasSubstr("descr: is '<c8', which is not read"));
  EXPECT_THAT(npy_refusal(npy_text(head("|u1", "True", "(1,)"), "1")),
              HasSubstr("fortran_order: must be False"));
  EXPECT_THAT(npy_refusal(npy_text(head("|u1", "False", "(2,)"), "1")),
              HasSubstr("data: has 1 bytes, and dtype and shape need 2"));
  EXPECT_THAT(npy_refusal(npy_text(head("|u1", "False", "(-2,)"), "1")), HasSubstr("shape: is no"));
  EXPECT_THAT(npy_refusal(npy_text(head("|u1", "False", "(x,)"), "1")), HasSubstr("shape: is no"));
  EXPECT_THAT(npy_refusal(npy_text(head("<f8", "False", "(9223372036854775807, 9)"), "1")),
              HasSubstr("shape: is too large"));
  EXPECT_THAT(npy_refusal(npy_text("{'descr': '|u1'}\n", "1")),
              HasSubstr("fortran_order: is missing"));
  EXPECT_THAT(npy_refusal(npy_text(head("|u1", "False", "(1,)"), "").substr(0, 20)),
              HasSubstr("data: ends too early"));
}

TEST(Npy, IsADataSetOfInputsAndTargets) {
  const TempDir folder;
  write_npy(folder / "x.npy", at::arange(40).to(at::kFloat).view({20, 2}));
  write_npy(folder / "y.npy", at::arange(20).remainder(2));
  const auto options = [&](const char* labels) {
    return DataOptions{
        .name = "npy", .labels = (folder / labels).string(), .file = (folder / "x.npy").string()};
  };
  const Splits classes = datasets::make(options("y.npy")).splits;
  EXPECT_EQ(classes.train->size(), 16);
  EXPECT_EQ(classes.train->targets().scalar_type(), at::kLong);
  write_npy(folder / "v.npy", at::arange(20).to(at::kFloat));
  EXPECT_EQ(datasets::make(options("v.npy")).splits.train->targets().sizes(),
            at::IntArrayRef({16, 1}));
  write_npy(folder / "short.npy", at::arange(7));
  try {
    (void)datasets::make(options("short.npy"));
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("labels has 7 targets for 20 samples"));
  }
}

TEST(Npy, NamesTheSampleOfABadNumberOrLabel) {
  const TempDir folder;
  const at::Tensor inputs = at::arange(40).to(at::kFloat).view({20, 2});
  const auto refusal = [&](const at::Tensor& x, const at::Tensor& y) -> std::string {
    write_npy(folder / "x.npy", x);
    write_npy(folder / "y.npy", y);
    try {
      (void)datasets::make({.name = "npy",
                            .labels = (folder / "y.npy").string(),
                            .file = (folder / "x.npy").string()});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const at::Tensor labels = at::arange(20).remainder(2);
  const at::Tensor negative = labels.clone();
  negative[7] = -1;
  EXPECT_THAT(refusal(inputs, negative),
              HasSubstr("y.npy: sample 7 (from 0): has the label -1: labels count the classes from "
                        "0, and -100 is"));
  const at::Tensor ignored = labels.clone();
  ignored[7] = -100;
  EXPECT_EQ(refusal(inputs, ignored), "accepted");
  const at::Tensor hole = inputs.clone();
  hole[13][1] = NAN;
  EXPECT_THAT(refusal(hole, labels), HasSubstr("x.npy: sample 13 (from 0): has NaN"));
  const at::Tensor values = at::arange(20).to(at::kFloat);
  values[19] = NAN;
  EXPECT_THAT(refusal(inputs, values), HasSubstr("y.npy: sample 19 (from 0): has NaN"));
  const at::Tensor large = at::arange(20).to(at::kDouble);
  large[2] = 1e39;
  EXPECT_THAT(refusal(inputs, large),
              HasSubstr("y.npy: sample 2 (from 0): has a number that float32 does not hold"));
}

TEST(Npy, WarnsOfLabelsThatDoNotCountFrom0) {
  const TempDir folder;
  write_npy(folder / "x.npy", at::arange(40).to(at::kFloat).view({20, 2}));
  int64_t files = 0;  // a warning comes once
  const auto warning = [&](const at::Tensor& y) {
    const std::filesystem::path path = folder / (std::to_string(++files) + ".npy");
    write_npy(path, y);
    ::testing::internal::CaptureStderr();
    (void)datasets::make(
        {.name = "npy", .labels = path.string(), .file = (folder / "x.npy").string()});
    const std::string logged = ::testing::internal::GetCapturedStderr();
    const std::string checked = check_npy(path, /*are_inputs=*/false).warning;
    EXPECT_THAT(logged, HasSubstr(checked));
    EXPECT_EQ(logged.find("class 0") == std::string::npos, checked.empty());
    return checked;
  };
  const at::Tensor labels = at::arange(20).remainder(4);
  EXPECT_EQ(warning(labels), "");
  EXPECT_EQ(warning(labels.add(1)),
            "has no sample of class 0, and its lowest label is 1: labels count the classes from 0, "
            "so subtract 1 from all of them if these count from 1");
  EXPECT_THAT(warning(labels.add(1).to(at::kByte).view({20, 1})), HasSubstr("class 0"));
  EXPECT_THAT(warning(labels.add(7)), HasSubstr("lowest label is 7"));
  const at::Tensor ignored = labels.add(1);
  ignored[7] = -100;
  EXPECT_THAT(warning(ignored), HasSubstr("lowest label is 1"));
  EXPECT_EQ(warning(labels.add(1).to(at::kFloat)), "") << "values";
  EXPECT_EQ(warning(labels.add(1).view({20, 1}).expand({20, 3}).contiguous()), "") << "no classes";
  EXPECT_EQ(warning(labels.add(200'000)), "") << "no classes";
}

TEST(Npy, RefusesPicturesThatAreNotSavedAsModelsTakeThem) {
  const TempDir folder;
  const auto made = [&](const at::Tensor& x) {
    write_npy(folder / "x.npy", x);
    write_npy(folder / "y.npy", at::arange(x.size(0)).remainder(2));
    const auto options = DataOptions{
        .name = "npy", .labels = (folder / "y.npy").string(), .file = (folder / "x.npy").string()};
    std::string problem;
    try {
      const DatasetPtr train = datasets::make(options).splits.train;
      problem = c10::str(at::IntArrayRef(train->sample_shape()));
    } catch (const ConfigError& error) {
      problem = error.what();
    }
    const std::string found = check_npy(folder / "x.npy", /*are_inputs=*/true).problem;
    EXPECT_THAT(problem, HasSubstr(found));
    EXPECT_EQ(found.empty(), !problem.starts_with("[data.make]"));
    EXPECT_EQ(check_npy(folder / "x.npy", /*are_inputs=*/false).problem, "");
    return problem;
  };
  const at::Tensor grey = at::arange(20 * 16 * 18).remainder(256).view({20, 16, 18});
  const at::Tensor bytes = grey.to(at::kByte);
  EXPECT_EQ(made(bytes), "[1, 16, 18]") << "as NumPy has MNIST";
  EXPECT_EQ(made(bytes.view({20, 1, 16, 18})), "[1, 16, 18]");
  EXPECT_THAT(made(bytes.view({20, 16, 18, 1})),
              HasSubstr("file has pictures with the channels last: save"));
  const at::Tensor levels = grey.to(at::kFloat).view({20, 1, 16, 18});
  EXPECT_THAT(made(levels), HasSubstr("file has the levels of pictures, whole numbers from 0 to "
                                      "255, in another dtype than uint8: save array.astype("));
  EXPECT_EQ(made(levels.div(255)), "[1, 16, 18]");
  EXPECT_THAT(made(grey.view({20, 1, 16, 18})), HasSubstr("in another dtype")) << "int64";
  EXPECT_EQ(made(levels.remainder(100)), "[1, 16, 18]") << "counts";
  EXPECT_EQ(made(bytes.narrow(2, 0, 4).contiguous()), "[16, 4]") << "a sequence";
  const at::Tensor sensors = bytes.narrow(1, 0, 12).narrow(2, 0, 3).unsqueeze(2);
  EXPECT_EQ(made(sensors.expand({20, 12, 40, 3}).contiguous()), "[12, 40, 3]") << "with a warning";
  EXPECT_EQ(made((levels.div(255)).view({20, 16, 18, 1})), "[16, 18, 1]") << "with a warning";
  EXPECT_THAT(check_npy(folder / "x.npy", /*are_inputs=*/true).warning,
              HasSubstr("looks like pictures with the channels last"));
}

TEST(NpyPictures, OfLevelsInAnotherDtypeAreWarnedOf) {
  const TempDir folder;
  const auto warning = [&](const at::Tensor& x) {
    write_npy(folder / "x.npy", x);
    const NpyCheck check = check_npy(folder / "x.npy", /*are_inputs=*/true);
    EXPECT_EQ(check.problem, "");
    return check.warning;
  };
  const at::Tensor whole = at::arange(20 * 16 * 18).remainder(256).view({20, 16, 18});
  const at::Tensor levels = whole.to(at::kFloat);
  EXPECT_THAT(warning(levels),
              HasSubstr("has numbers up to 255 in another dtype than uint8; if they are the levels "
                        "of pictures, save array.astype(numpy.uint8)"));
  EXPECT_THAT(warning(whole), HasSubstr("has numbers up to 255")) << "int64";
  const at::Tensor dark = levels.mul(0.59).view({20, 1, 16, 18});
  EXPECT_THAT(warning(dark), HasSubstr("has numbers up to 150.4"));
  EXPECT_EQ(warning(levels.div(255)), "");
  EXPECT_EQ(warning(levels.sub(100)), "") << "no levels";
  EXPECT_EQ(warning(levels.mul(3)), "") << "no levels";
  EXPECT_EQ(warning(whole.to(at::kByte)), "");
  EXPECT_EQ(warning(levels.narrow(2, 0, 3).contiguous()), "") << "a sequence";
}

TEST(Levels, AreThoseOfTheDataBeforeTheTransforms) {
  const at::Tensor bytes =
      at::arange(4 * 3 * 8 * 8).remainder(200).to(at::kByte).view({4, 3, 8, 8});
  const Transforms normalise{Normalise{.mean = {0.5}, .std = {0.25}}};
  const auto levels = [&](const DatasetPtr& data) {
    const std::optional<Levels> found = levels_of(*subset(transformed(data, normalise), {0, 2}));
    return found ? std::vector{found->least, found->most} : std::vector<double>();
  };
  EXPECT_THAT(levels(tensor_dataset(bytes)), ElementsAre(0, 1));
  EXPECT_THAT(levels(tensor_dataset(bytes.to(at::kFloat).sub(50))), ElementsAre(-50, 149));
  EXPECT_THAT(levels(cache(transformed(tensor_dataset(bytes), {}))), ElementsAre(0, 1));
  EXPECT_EQ(levels_of(*tensor_dataset(at::rand({4, 3}))), std::nullopt) << "rows";
  EXPECT_EQ(levels_of(at::full({1, 2, 2}, std::nan(""))), std::nullopt);
}

TEST(Levels, OfAnotherUnitAreNamed) {
  const Levels unit{.least = 0, .most = 1};
  EXPECT_EQ(levels_warning({.least = 0, .most = 150.5}, unit),
            "has numbers from 0 to 150.5, and those of the training were from 0 to 1: the "
            "predictions are wrong unless both have one unit; save the numbers in the unit of the "
            "training, such as (array / 255).astype(numpy.float32)");
  EXPECT_THAT(levels_warning({.least = 0, .most = 0.9}, {.least = 0, .most = 255}),
              HasSubstr("has numbers from 0 to 0.9, and those of the training were from 0 to 255"));
  EXPECT_EQ(levels_warning({.least = -0.2, .most = 1.4}, unit), "");
  EXPECT_EQ(levels_warning({.least = 0.001, .most = 0.001}, unit), "") << "a blank picture";
  EXPECT_EQ(levels_warning({.least = 5, .most = 9}, {.least = 3, .most = 3}), "");
}

TEST(Levels, DecideWhetherANormaliseIsUnusual) {
  const auto warning = [](const Levels& levels, double mean, double std) {
    return normalise_warning(levels, Transforms{Normalise{.mean = {mean}, .std = {std}}});
  };
  EXPECT_THAT(warning({0, 255}, 0.5, 0.25), HasSubstr("has a std of 0.25, and the levels of the "
                                                      "data are 0 to 255"));
  EXPECT_THAT(warning({0, 1}, 124, 58), HasSubstr("has a mean of 124"));
  EXPECT_EQ(warning({0, 255}, 124, 58), "");
  EXPECT_EQ(warning({0, 1}, 0, 1), "");
  EXPECT_EQ(warning({4, 4}, 124, 58), "") << "one level";
}

TEST(NpyCheck, DescribesAnArray) {
  const TempDir folder;
  write_npy(folder / "x.npy", at::arange(40).to(at::kFloat).view({20, 2}));
  const NpyCheck check = check_npy(folder / "x.npy", true);
  EXPECT_EQ(check.problem, "");
  EXPECT_EQ(check.dtype, "float32");
  EXPECT_THAT(check.shape, ElementsAre(20, 2));
  EXPECT_EQ(check.not_finite, 0);
  EXPECT_THAT(check.first_not_finite, ElementsAre());
  EXPECT_EQ(check.least, 0);
  EXPECT_DOUBLE_EQ(check.mean, 19.5);
  EXPECT_EQ(check.most, 39);
  write_npy(folder / "x.npy", at::arange(-3, 4));
  EXPECT_EQ(check_npy(folder / "x.npy", true).dtype, "int64");
  EXPECT_EQ(check_npy(folder / "x.npy", true).least, -3);
  write_npy(folder / "x.npy", at::arange(0));
  EXPECT_THAT(check_npy(folder / "x.npy", true).problem, HasSubstr("has no samples"));
}

TEST(NpyCheck, LocatesTheFirstNumberThatIsNotFinite) {
  const TempDir folder;
  at::Tensor array = at::arange(1 << 21).to(at::kDouble).view({-1, 4, 2});
  array[200000][3][1] = NAN;  // behind the first part that is looked at
  array[200001][0][0] = -INFINITY;
  array[200002][0][0] = 1e300;
  write_npy(folder / "x.npy", array);
  const NpyCheck check = check_npy(folder / "x.npy", true);
  EXPECT_EQ(check.not_finite, 3);
  EXPECT_THAT(check.first_not_finite, ElementsAre(200000, 3, 1));
  EXPECT_THAT(check.problem, HasSubstr("array[200000, 3, 1] is NaN, and 2 more of the 2,097,152 "
                                       "elements are not finite in float32: remove the sample"));
  EXPECT_EQ(check.most, (1 << 21) - 1);
  write_npy(folder / "x.npy", array[200001]);
  EXPECT_THAT(check_npy(folder / "x.npy", true).problem,
              HasSubstr("array[0, 0] is minus infinite: remove"));
  write_npy(folder / "x.npy", array[200002]);
  EXPECT_THAT(check_npy(folder / "x.npy", true).problem,
              HasSubstr("array[0, 0] is 1e+300, which float32 does not hold: remove"));
}

TEST(Npy, RefusesTargetsWhoseSpreadFloat32Loses) {
  const TempDir folder;
  write_npy(folder / "x.npy", at::arange(40).to(at::kFloat).view({20, 2}));
  const auto refusal = [&](const at::Tensor& y) -> std::string {
    write_npy(folder / "y.npy", y);
    try {
      (void)datasets::make({.name = "npy",
                            .labels = (folder / "y.npy").string(),
                            .file = (folder / "x.npy").string()});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  const at::Tensor small = at::arange(20).to(at::kDouble).mul(0.25);
  EXPECT_EQ(refusal(small), "accepted");
  EXPECT_THAT(
      refusal(small.add(1e9)),
      HasSubstr("labels has numbers from 1000000000 to 1000000004.75 with a deviation of "));
  const at::Tensor two = at::stack({small, small.add(1e9)}, 1);
  EXPECT_THAT(refusal(two), HasSubstr("labels column 1 has numbers from 1000000000 to"));
}

}  // namespace
}  // namespace tare::testing
