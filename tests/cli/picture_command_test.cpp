// The commands with pictures of several shapes: `data.fit` in training and in predictions.
#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/tare_folder.h"
#include "tare/base/io.h"
#include "tare/data/image_folder.h"
#include "tare/transform/image.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

class PicturesOfSeveralShapes : public ::testing::Test, protected TareFolder {
 protected:
  /// Wide pictures that are bright on the right, and tall ones that are bright below.
  void SetUp() override {
    for (const char* label : {"right", "below"}) {
      const bool right = label == std::string("right");
      io::make_directories(folder_ / "pictures" / label);
      for (int i = 0; i < 20; ++i) {
        at::Tensor picture =
            at::randint(0, 100, right ? at::IntArrayRef{1, 12, 21} : at::IntArrayRef{1, 23, 10});
        picture.narrow(right ? 2 : 1, 9, 9).fill_(200 + i);
        write_png(folder_ / "pictures" / label / (std::to_string(i) + ".png"),
                  picture.to(at::kByte));
      }
    }
    write("own.yaml",
          "name: own\ndevice: cpu\nmodel: mlp\n"
          "data: {name: image_folder, folder: pictures, size: 8, transforms: [{normalise: {mean: "
          "[0.5], std: [0.25]}}]}\nphases: [{epochs: 2}]\nexport: m.tare\n");
  }
  [[nodiscard]] nlohmann::json predicted(const std::string& file) const {
    const auto result = tare({"predict", "runs/own", file, "--json", "--top", "2"});
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out).at(0).at("predictions");
  }
};

TEST_F(PicturesOfSeveralShapes, ArePredictedAsTheyWereTrained) {
  write_png(folder_ / "other.png", at::randint(256, {1, 30, 17}).to(at::kByte));
  for (const std::string fit : {"crop", "pad", "stretch"}) {
    const auto run = tare({"run", "own.yaml", "--overwrite", "data.fit=" + fit});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("(planned "));
    // The data set gives these pixels, which need no resizing any more.
    const auto data = image_folder(folder_ / "pictures", {.height = 8, .width = 8, .fit = fit});
    const std::vector<int64_t> last{39};
    write_png(folder_ / "sample.png", data->get({last}).input()[0]);
    EXPECT_EQ(predicted("pictures/" + data->sample_name(39)), predicted("sample.png")) << fit;
    const at::Tensor other = read_image(folder_ / "other.png");
    write_png(folder_ / "fitted.png", resize_image(other, 8, 8, true, fit));
    EXPECT_EQ(predicted("other.png"), predicted("fitted.png")) << fit;
    if (fit == "stretch") continue;
    write_png(folder_ / "fitted.png", resize_image(other, 8, 8));
    EXPECT_NE(predicted("other.png"), predicted("fitted.png")) << "stretched for " << fit;
  }
}

TEST_F(PicturesOfSeveralShapes, AFitIsCheckedBeforeAnyWork) {
  EXPECT_EQ(tare({"validate", "own.yaml", "data.fit=pad"}).status, 0);
  const auto without = tare({"validate", "own.yaml", "data.fit=pad", "data.size=0"});
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, HasSubstr("data.fit needs the size"));
  const auto unknown = tare({"validate", "own.yaml", "data.fit=squash"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("stretch"));
  const auto texts =
      tare({"validate", "own.yaml", "data={name: generated_texts, fit: crop}", "model=lstm"});
  EXPECT_EQ(texts.status, 2);
  EXPECT_THAT(texts.err, HasSubstr("data.fit is not taken by the data set generated_texts"));
  const auto plain = tare({"plan", "own.yaml", "--json", "data.fit=stretch"});
  EXPECT_EQ(plain.status, 0) << plain.err;
  for (const char* fit : {"crop", "pad"})
    EXPECT_EQ(tare({"plan", "own.yaml", "--json", std::string("data.fit=") + fit}).out, plain.out)
        << fit;
  const auto check = tare({"data", "check", "pictures"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("`fit` stretches, crops or pads"));
}

}  // namespace
}  // namespace tare::testing
