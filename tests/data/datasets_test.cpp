// Data sets by name: where they are found, how they are split and refused.
#include "tare/data/datasets.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/environment.h"
#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/idx.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::outcome_of;
using testing::ScopedFolder;
using testing::ScopedVariable;
using testing::TempDir;

// A machine without any MNIST and without a network: a proxy where nobody listens.
class Datasets : public ::testing::Test {
 protected:
  TempDir folder_;
  ScopedVariable data_{"TARE_DATA_DIR", std::nullopt}, source_{"TARE_SOURCE_DIR", std::nullopt};
  ScopedVariable home_{"TARE_HOME", (folder_ / "home").string()};
  ScopedVariable proxy_{"https_proxy", "http://127.0.0.1:1"}, no_proxy_{"no_proxy", std::nullopt};
  ScopedFolder current_{folder_.path()};

  // Digits under the names of MNIST's test files.
  static void place(const std::filesystem::path& folder, int64_t count) {
    io::make_directories(folder);
    const DigitImages digits = generate_digits({.count = count});
    write_idx(folder / "t10k-images-idx3-ubyte.gz", digits.images.squeeze(1));
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", digits.labels.to(at::kByte));
  }
};

TEST_F(Datasets, RealDigitsAreTakenFromTheFirstPlace) {
  TempDir work;
  io::make_directories(work / "inner");
  const ScopedFolder current(work / "inner");
  const auto found = [] {
    const DigitsSource source = find_digits({.download = false});
    return source.real ? source.data->size() : 0;
  };
  EXPECT_EQ(found(), 0);
  place(work / "shared/data/mnist10k", 10);
  EXPECT_EQ(found(), 10);
  place(folder_ / "home/data/mnist10k", 20);
  EXPECT_EQ(found(), 20);
  const ScopedVariable data("TARE_DATA_DIR", (work / "mine").string());
  EXPECT_EQ(found(), 20);
  place(work / "mine/mnist10k", 30);
  EXPECT_EQ(found(), 30);
  place(work / "mine", 40);
  EXPECT_EQ(found(), 40);
}

TEST_F(Datasets, BrokenRealDigitsAreAnErrorNotPassedOver) {
  place(folder_ / "home/data/mnist10k", 10);
  io::write_atomically(folder_ / "home/data/mnist10k/t10k-images-idx3-ubyte.gz", "broken");
  EXPECT_THROW((void)find_digits({.download = false}), FormatError);
}

TEST_F(Datasets, WithoutFilesAndNetworkDigitsAreDrawnAndItSaysSo) {
  for (const bool download : {true, false}) {
    const DigitsSource source = find_digits({.download = download, .count = 50, .seed = 3});
    EXPECT_FALSE(source.real);
    EXPECT_THAT(source.description,
                AllOf(HasSubstr("50 generated"), HasSubstr("written"), HasSubstr("because")));
    EXPECT_TRUE(at::equal(source.data->targets(),
                          generate_digits({.count = 50, .style = "written", .seed = 3}).labels));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "home/data/mnist10k/t10k-images-idx3-ubyte.gz"));
  EXPECT_THROW((void)datasets::fetch("mnist10k"), IoError);
  EXPECT_THROW((void)datasets::make({.name = "mnist10k", .download = false}), IoError);
}

TEST_F(Datasets, SplitsAndDescribesAndHasNoTestThatIsNotItsOwn) {
  const datasets::Named named =
      datasets::make({.name = "generated_digits", .count = 200, .style = "written", .seed = 4});
  EXPECT_EQ(named.splits.train->size(), 160);
  EXPECT_EQ(named.splits.valid->size(), 40);
  EXPECT_EQ(named.splits.test, nullptr);
  EXPECT_TRUE(named.generated);
  EXPECT_THAT(named.description,
              AllOf(HasSubstr("200 generated"), HasSubstr("written"), HasSubstr("train 160"),
                    HasSubstr("valid 40"), HasSubstr("test none")));
  const datasets::Named three = datasets::make(
      {.name = "generated_digits", .count = 200, .train = 100, .valid = 50, .test = 50});
  EXPECT_EQ(three.splits.test->size(), 50);
}

TEST_F(Datasets, TheNetworkIsTriedAndWarnedOfOncePerProcess) {
  const auto warned = [] {
    ::testing::internal::CaptureStderr();
    const DigitsSource source = find_digits({.count = 10});
    EXPECT_FALSE(source.real);
    EXPECT_THAT(source.description, HasSubstr("MNIST could not be downloaded"));
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned(), HasSubstr("GENERATED digits stand in for MNIST"));
  io::make_directories(folder_ / "tools");
  std::ofstream(folder_ / "tools/curl")
      << "#!/bin/sh\ntouch '" << (folder_ / "tried").string() << "'\nexit 1\n";
  std::filesystem::permissions(folder_ / "tools/curl", std::filesystem::perms::owner_all);
  const ScopedVariable path("PATH", (folder_ / "tools").string() + ":/usr/bin:/bin");
  EXPECT_EQ(warned(), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "tried"));
  EXPECT_TRUE(datasets::download_has_failed());
  EXPECT_THROW((void)datasets::fetch("mnist10k"), IoError) << "asked for by name it is tried";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "tried"));
  std::filesystem::remove(folder_ / "tried");
  const ScopedVariable home("TARE_HOME", (folder_ / "another").string());
  const ScopedVariable offline("TARE_OFFLINE", "1");
  EXPECT_THAT(warned(), HasSubstr("TARE_OFFLINE is set"));
  try {
    (void)datasets::make({.name = "mnist10k"});
    ADD_FAILURE() << "there are no files";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not downloaded (TARE_OFFLINE is set)"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "tried"));
}

TEST_F(Datasets, AForbiddenNetworkIsStrongerThanTheOptions) {
  EXPECT_THROW((void)datasets::make({.name = "mnist"}, datasets::Network::forbidden), IoError);
  EXPECT_THROW((void)datasets::make({.name = "mnist10k"}, datasets::Network::forbidden), IoError);
  EXPECT_TRUE(
      datasets::make({.name = "digits", .count = 20}, datasets::Network::forbidden).generated);
}

TEST_F(Datasets, AreIdentifiedByWhatTheyHoldNotByWhereTheyAre) {
  const auto identity = [&](const std::filesystem::path& folder) {
    return datasets::make({.name = "idx",
                           .images = (folder / "t10k-images-idx3-ubyte.gz").string(),
                           .labels = (folder / "t10k-labels-idx1-ubyte.gz").string()})
        .identity;
  };
  place(folder_ / "a", 40);
  place(folder_ / "b", 40);
  place(folder_ / "c", 50);
  EXPECT_EQ(identity(folder_ / "a"), identity(folder_ / "b"));
  EXPECT_NE(identity(folder_ / "a"), identity(folder_ / "c"));
  const auto generated = [](int64_t seed) {
    return datasets::make({.name = "generated_digits", .count = 40, .seed = seed}).identity;
  };
  EXPECT_EQ(generated(1), generated(1));
  EXPECT_EQ(generated(1).content.size(), 16U);
  EXPECT_NE(generated(1).content, generated(2).content) << "other pictures";
}

TEST_F(Datasets, FilesThatAreNotThereAreNamedWithTheNearest) {
  io::make_directories(folder_ / "pictures");
  const auto message = [](const DataOptions& options) -> std::string {
    try {
      datasets::check_files(options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "there";
  };
  const std::string near = (folder_ / "picture").string();
  EXPECT_THAT(message({.name = "image_folder", .folder = near}),
              AllOf(HasSubstr("folder is not there"), HasSubstr("did you mean \"pictures\"")));
  EXPECT_EQ(message({.name = "image_folder", .folder = (folder_ / "pictures/").string()}), "there");
  EXPECT_THAT(message({.name = "idx", .images = (folder_ / "pictures").string()}),
              HasSubstr("images is no file"));
  EXPECT_THAT(message({.name = "idx", .labels = (folder_ / "none/x").string()}),
              HasSubstr("labels is not there"));
}

TEST_F(Datasets, EveryClassHasItsShareOfEachSplit) {
  place(folder_ / "home/data/mnist10k", 100);
  for (const bool stratify : {true, false}) {
    const auto splits =
        datasets::make({.name = "mnist10k", .stratify = stratify, .download = false}).splits;
    const at::Tensor counts = at::bincount(splits.valid->targets(), {}, 10);
    EXPECT_EQ((counts == 2).all().item<bool>(), stratify) << counts;
  }
}

TEST_F(Datasets, SayHowManySamplesAreInNoSplit) {
  const auto described = [](double train, double valid, double test) {
    ::testing::internal::CaptureStderr();
    const std::string description =
        datasets::make(
            {.name = "generated_digits", .count = 50, .train = train, .valid = valid, .test = test})
            .description;
    return description + '\n' + ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(described(0.5, 0.2, 0),
              AllOf(HasSubstr("train 25, valid 10, test none, unused 15\n"),
                    HasSubstr("15 of the 50 samples are in no split, because the shares train, "
                              "valid and test add up to less than 1")));
  EXPECT_THAT(described(0.5, 0.2, 0.3), Not(HasSubstr("unused")));
  EXPECT_THAT(described(20, 10, 5),
              AllOf(HasSubstr("test 5, unused 15\n"), Not(HasSubstr("in no split"))))
      << "numbers of samples are meant so";
}

TEST_F(Datasets, WarnWhereANormaliseIsOfOtherLevels) {
  const auto warned = [](double mean, double std) {
    ::testing::internal::CaptureStderr();
    (void)datasets::make({.name = "generated_digits",
                          .count = 50,
                          .transforms = Transforms{Normalise{.mean = {mean}, .std = {std}}}});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned(124, 58), HasSubstr("data.transforms: normalise has a mean of 124, and the "
                                         "levels of the data are 0 to 1: give mean and std"));
  EXPECT_THAT(warned(0.5, 58), HasSubstr("normalise has a std of 58"));
  EXPECT_THAT(warned(0.1307, 0.3081), Not(HasSubstr("normalise")));
}

TEST_F(Datasets, FoldsCoverAllSamplesOnce) {
  std::vector<int64_t> classes(10);
  int64_t samples = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const auto named =
        datasets::make({.name = "generated_digits", .count = 100, .folds = 3, .fold = i});
    EXPECT_EQ(named.splits.train->size() + named.splits.valid->size(), 100);
    EXPECT_EQ(named.splits.test, nullptr);
    const at::Tensor labels = named.splits.valid->targets();
    samples += labels.numel();
    for (int64_t k = 0; k < labels.numel(); ++k)
      ++classes[static_cast<size_t>(labels[k].item<int64_t>())];
  }
  EXPECT_EQ(samples, 100);
  for (const int64_t count : classes) EXPECT_EQ(count, 10);
}

TEST_F(Datasets, FoldsThatContradictOtherOptionsAreRefused) {
  const auto refused = [](DataOptions options) {
    options.name = "generated_digits";
    options.count = 100;
    EXPECT_THROW(datasets::check(options), ConfigError);
  };
  refused({.folds = 1});
  refused({.fold = 1});
  refused({.folds = 3, .fold = 3});
  refused({.train = 0.5, .folds = 3});
  refused({.test = 0.1, .folds = 3});
  EXPECT_THROW((void)datasets::make({.name = "generated_digits", .count = 100, .folds = 101}),
               ConfigError);
}

TEST_F(Datasets, SizeAndTransformsAreApplied) {
  place(folder_ / "home/data/mnist10k", 60);
  const Transforms transforms{Normalise{{0.13}, {0.31}}, Shift{2}};
  const DatasetPtr resized =
      datasets::make({.size = 40, .transforms = transforms, .download = false}).splits.train;
  EXPECT_EQ(resized->sample_shape(), (std::vector<int64_t>{1, 40, 40}));
  EXPECT_EQ(resized->transforms()->steps().front(), Transform(Resize{40, 40}));
  EXPECT_EQ(resized->labels().size(), 10U);
  const DatasetPtr same =
      datasets::make({.size = 28, .transforms = transforms, .download = false}).splits.train;
  EXPECT_EQ(*same->transforms(), transforms);
  const DatasetPtr drawn =
      datasets::make({.name = "generated_digits", .size = 40, .count = 100}).splits.train;
  EXPECT_EQ(*drawn->transforms(), Transforms());
  EXPECT_EQ(drawn->sample_shape(), (std::vector<int64_t>{1, 40, 40}));
}

TEST_F(Datasets, TheFitIsInTheTransformsSoThatABundleHasIt) {
  place(folder_ / "home/data/mnist10k", 60);
  const auto steps = [](const DataOptions& options) {
    return datasets::make(options).splits.train->transforms()->steps();
  };
  const Transform crop = Resize{.height = 28, .width = 28, .fit = "crop"};
  EXPECT_EQ(steps({.size = 28, .fit = "crop", .download = false}), std::vector{crop})
      << "whatever the size of the images";
  const std::string pictures = (folder_ / "pictures").string();
  (void)datasets::make_png_files("generated_digits", pictures, {.count = 20, .size = 28});
  const Transform pad = Resize{.height = 20, .width = 20, .round = true, .fit = "pad"};
  EXPECT_EQ(steps({.name = "image_folder", .size = 20, .fit = "pad", .folder = pictures}),
            std::vector{pad})
      << "once, by the reader";
}

TEST_F(Datasets, AFitWithoutASizeOrImagesIsRefused) {
  const auto refusal = [](const DataOptions& options) -> std::string {
    try {
      datasets::check(options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal({.name = "image_folder", .fit = "crop", .folder = "pictures"}),
              HasSubstr("fit needs the size to which images are brought"));
  EXPECT_THAT(refusal({.name = "csv", .size = 8, .fit = "crop", .file = "a.csv", .target = "a"}),
              HasSubstr("is not taken by the data set csv"));
  EXPECT_THAT(refusal({.name = "csv", .fit = "crop", .file = "a.csv", .target = "a"}),
              HasSubstr("fit is not taken by the data set csv"));
  EXPECT_THAT(refusal({.name = "image_folder", .size = 8, .fit = "squash", .folder = "pictures"}),
              HasSubstr("stretch"));
  EXPECT_EQ(refusal({.name = "image_folder", .size = 8, .fit = "pad", .folder = "pictures"}),
            "accepted");
}

TEST_F(Datasets, CountTakesOfEachClassItsShare) {
  (void)datasets::make_png_files("generated_digits", folder_ / "pictures",
                                 {.count = 200, .size = 12});
  DataOptions options{.name = "image_folder",
                      .count = 40,
                      .folder = (folder_ / "pictures").string(),
                      .train = 1,
                      .valid = 0};
  const datasets::Named some = datasets::make(options);
  EXPECT_EQ(at::bincount(some.splits.train->targets()).min().item<int64_t>(), 4);
  EXPECT_THAT(some.description, HasSubstr("40 of 200 images of"));
  options.stratify = false;
  EXPECT_EQ(at::bincount(datasets::make(options).splits.train->targets()).max().item<int64_t>(),
            20);
  options.count = 200;
  EXPECT_THAT(datasets::make(options).description, Not(HasSubstr("200 of")));
}

TEST_F(Datasets, CountTakesTheFirstSamples) {
  place(folder_ / "home/data/mnist10k", 60);
  const datasets::Named named =
      datasets::make({.name = "mnist10k", .count = 30, .train = 1, .valid = 0, .download = false});
  EXPECT_EQ(named.splits.train->size(), 30);
  EXPECT_EQ(named.splits.test, nullptr);
}

TEST_F(Datasets, OwnFilesAreRead) {
  const auto paths = datasets::make_files("generated_digits", folder_ / "made",
                                          {.count = 100, .size = 16, .seed = 9});
  ASSERT_EQ(paths.size(), 2U);
  const DataOptions options{.name = "idx",
                            .images = paths[0].string(),
                            .labels = paths[1].string(),
                            .train = 1,
                            .valid = 0};
  const DatasetPtr data = datasets::make(options).splits.train;
  const at::Tensor counts = at::bincount(data->targets());
  EXPECT_TRUE((counts == 10).all().item<bool>());
  EXPECT_EQ(data->sample_shape(), (std::vector<int64_t>{1, 16, 16}));

  io::make_directories(folder_ / "images/one");
  write_png(folder_ / "images/one/1.png", generate_digits({.count = 1}).images[0]);
  const DataOptions folder{.name = "image_folder",
                           .size = 20,
                           .folder = (folder_ / "images").string(),
                           .channels = 3,
                           .train = 1,
                           .valid = 0};
  EXPECT_EQ(datasets::make(folder).splits.train->sample_shape(), (std::vector<int64_t>{3, 20, 20}));
}

TEST_F(Datasets, GeneratedImagesAreMadeForAFolderOfImages) {
  const GeneratedDigits options{.count = 20, .size = 16, .seed = 3};
  const auto paths = datasets::make_png_files("generated_digits", folder_ / "made", options);
  const DigitImages digits = generate_digits(options);
  ASSERT_EQ(paths.size(), 20U);
  EXPECT_TRUE(at::equal(read_png(paths[7]), digits.images[7]));
  const DataOptions read{
      .name = "image_folder", .folder = (folder_ / "made").string(), .train = 1, .valid = 0};
  const DatasetPtr data = datasets::make(read).splits.train;
  EXPECT_TRUE((at::bincount(data->targets()) == 2).all().item<bool>());
  EXPECT_EQ(paths[7].parent_path().filename(), std::to_string(digits.labels[7].item<int64_t>()));
}

TEST_F(Datasets, TheFormerNameOfAFolderOfImagesIsAnsweredWithTheNewOne) {
  try {
    (void)datasets::make({.name = "png_folder"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("image_folder reads PNG files, as well as JPEG and WebP"));
  }
}

TEST_F(Datasets, TheCacheIsANumberOfBytes) {
  const auto read = [](const char* text) {
    return config::read<DataOptions>(config::parse_text(text, "data")).cache;
  };
  EXPECT_EQ(read("cache: 2GiB"), int64_t{2} << 30);
  EXPECT_EQ(read("cache: 0"), 0);
  EXPECT_EQ(read("cache: null"), std::nullopt);
  EXPECT_THROW((void)read("cache: much"), ConfigError);
  const DataOptions options{.cache = 4096};
  EXPECT_EQ(config::read<DataOptions>(config::to_node(options)), options);
}

TEST_F(Datasets, WrongOptionsAreRefusedByName) {
  const auto field = [](const DataOptions& options) {
    try {
      (void)datasets::make(options);
    } catch (const ConfigError& error) {
      return error.field();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(field({.name = "digts"}), "name");
  EXPECT_EQ(field({.name = "png_folder"}), "name");
  EXPECT_EQ(field({.name = "idx"}), "images");
  EXPECT_EQ(field({.name = "image_folder"}), "folder");
  EXPECT_EQ(field({.name = "generated_digits", .folder = "x"}), "folder");
  EXPECT_EQ(field({.name = "generated_digits", .download = false}), "download");
  EXPECT_EQ(field({.name = "mnist10k", .style = "printed"}), "style");
  EXPECT_EQ(field({.name = "generated_digits", .count = 10, .train = 11}), "train");
  EXPECT_EQ(field({.name = "generated_digits", .count = -1}), "count");
  EXPECT_THROW((void)datasets::fetch("idx"), ConfigError);
  EXPECT_THROW((void)datasets::make_files("mnist", folder_ / "x"), ConfigError);
  EXPECT_THROW((void)datasets::make_png_files("mnist", folder_ / "x"), ConfigError);
  try {
    (void)datasets::make({.name = "generated_digts"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("generated_digits"));
  }
  try {
    (void)datasets::make({.name = "generated_digits", .count = 10, .train = 1.5});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.got(), "1.5");
  }
}

TEST(DataOptions, AreReadFromYaml) {
  const auto read = config::read<DataOptions>(
      config::parse_text("{name: idx, images: a, labels: b, size: 32, seed: 5, train: 8000, valid: "
                         "2000, transforms: [{shift: {pixels: 2}}]}",
                         "t"));
  EXPECT_EQ(read.transforms, Transforms{Shift{2}});
  EXPECT_EQ(read.train, 8000);
  EXPECT_EQ(config::read<DataOptions>(config::to_node(read)), read);
}

TEST(DatasetNames, AreSortedAndDescribed) {
  const std::vector<std::string> names = datasets::names();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (const config::EntryInfo& info : datasets::registry().infos())
    EXPECT_FALSE(info.summary.empty()) << info.name;
}

TEST(RealDigits, SplitIntoEightAndTwoThousand) {
  const char* source = std::getenv("TARE_SOURCE_DIR");
  const std::filesystem::path folder =
      std::filesystem::path(source ? source : ".") / "../shared/data/mnist10k";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no MNIST files in " << folder;
  const ScopedVariable data("TARE_DATA_DIR", folder.string());
  const datasets::Named named = datasets::make({.name = "digits", .download = false});
  EXPECT_EQ(named.splits.train->size(), 8000);
  EXPECT_EQ(named.splits.valid->size(), 2000);
  EXPECT_THAT(named.description, HasSubstr("MNIST"));
  // Published: 980 zeros, 1,135 ones, ... 1,009 nines.
  at::Tensor counts =
      at::bincount(named.splits.train->targets()) + at::bincount(named.splits.valid->targets());
  EXPECT_EQ(counts[0].item<int64_t>(), 980);
  EXPECT_EQ(counts[1].item<int64_t>(), 1135);
  EXPECT_EQ(counts[9].item<int64_t>(), 1009);
}

TEST_F(Datasets, ShowTheValueOfAFieldThatTheyDoNotTake) {
  DataOptions options{.name = "digits"};
  options.collate = config::Choice{.name = "pad"};
  EXPECT_THAT(
      outcome_of([&] { datasets::check(options); }),
      HasSubstr("collate is not taken by the data set digits, got pad; allowed: omit it, or "
                "in data.name one of "));
  options.collate->options.set("with", config::Node::string("mask"));
  EXPECT_THAT(outcome_of([&] { datasets::check(options); }), HasSubstr("got {pad: {with: mask}}"));
}

}  // namespace
}  // namespace tare
