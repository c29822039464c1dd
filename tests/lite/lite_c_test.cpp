// The C interface of libtare_lite.so, against the Predictor.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/temp_dir.h"
#include "tare/c/tare.h"
#include "tare/inference/predictor.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr double kNear = 1e-6;  // of probabilities

std::filesystem::path written(const std::filesystem::path& path, const char* name,
                              const ModelOptions& options, BundleManifest manifest) {
  const Model model = models::make(name, options);
  manifest.model = *model.spec();
  write_bundle(path, manifest, stored_state(model));
  return path;
}

std::filesystem::path pictures_bundle(const TempDir& folder) {
  return written(folder / "pictures.tare", "resnet9",
                 {.classes = 3, .sample_shape = {1, 8, 8}, .weights = "", .width = 2},
                 {.sample_shape = {1, 8, 8},
                  .transforms = Transforms{Normalise{.mean = {0.5}, .std = {0.25}}},
                  .labels = {"zero", "one", "two"},
                  .activation = "softmax"});
}

/// Closes a model at the end.
struct Open {
  explicit Open(const std::filesystem::path& path, const tare_options* options = nullptr)
      : code(tare_open(path.c_str(), options, &model)) {}
  ~Open() { tare_close(model); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  tare_model* model = nullptr;
  int code;
};

DLTensor view_of(const at::Tensor& tensor) {
  const uint8_t code = tensor.is_floating_point() ? 2 : tensor.scalar_type() == at::kByte ? 1 : 0;
  return {.data = const_cast<void*>(tensor.const_data_ptr()),
          .device = {1, 0},
          .ndim = static_cast<int32_t>(tensor.dim()),
          .dtype = {code, static_cast<uint8_t>(8 * tensor.element_size()), 1},
          .shape = const_cast<int64_t*>(tensor.sizes().data()),
          .strides = const_cast<int64_t*>(tensor.strides().data()),
          .byte_offset = 0};
}

at::Tensor copy_of(const DLTensor& tensor) {
  return at::from_blob(tensor.data, at::IntArrayRef(tensor.shape, static_cast<size_t>(tensor.ndim)),
                       at::TensorOptions().dtype(tensor.dtype.code == 2 ? at::kFloat : at::kByte))
      .clone();
}

at::Tensor predicted(tare_model* model, const at::Tensor& input) {
  const DLTensor view = view_of(input);
  const DLTensor* inputs[] = {&view};
  DLManagedTensorVersioned* output = nullptr;
  size_t made = 0;
  EXPECT_EQ(tare_predict(model, inputs, 1, &output, 1, &made), TARE_OK) << tare_last_error();
  if (!output) return {};
  EXPECT_EQ(made, 1U);
  EXPECT_EQ(output->version.major, 1U);
  const at::Tensor result = copy_of(output->dl_tensor);
  tare_release(output);
  return result;
}

TEST(LiteCInterface, PredictsAsThePredictorDoes) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const tare_options options{.size = sizeof options, .threads = 2, .device = "cpu"};
  const Open open(path, &options);
  ASSERT_EQ(open.code, TARE_OK) << tare_last_error();
  Predictor predictor(path);
  const at::Tensor turned = at::rand({8, 8, 1, 5}).permute({3, 2, 1, 0});
  for (const at::Tensor& input : {at::rand({5, 1, 8, 8}), at::randint(256, {2, 1, 8, 8}, at::kByte),
                                  turned, at::rand({3, 1, 8, 16}).slice(3, 0, 16, 2)})
    EXPECT_TRUE(
        predicted(open.model, input).allclose(predictor.predict(input.contiguous()), kNear, kNear));
  EXPECT_EQ(predicted(open.model, at::rand({0, 1, 8, 8})).size(0), 0);
  // From the last column to the first, as NumPy has them.
  const at::Tensor floats = at::rand({2, 1, 8, 8});
  DLTensor reversed = view_of(floats);
  int64_t strides[] = {64, 64, 8, -1};
  reversed.strides = strides;
  reversed.byte_offset = 7 * sizeof(float);
  const DLTensor* inputs[] = {&reversed};
  DLManagedTensorVersioned* output = nullptr;
  size_t made = 0;
  ASSERT_EQ(tare_predict(open.model, inputs, 1, &output, 1, &made), TARE_OK) << tare_last_error();
  EXPECT_TRUE(
      copy_of(output->dl_tensor).allclose(predictor.predict(floats.flip({3})), kNear, kNear));
  tare_release(output);
  strides[0] = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(tare_predict(open.model, inputs, 1, &output, 1, &made), TARE_BAD_INPUT);
  EXPECT_THAT(tare_last_error(), HasSubstr("stride out of range"));
}

TEST(LiteCInterface, PredictsTokens) {
  const TempDir folder;
  const auto path = written(
      folder / "gpt.tare", "gpt",
      {.classes = 9, .sample_shape = {8}, .weights = "", .width = 16, .layers = 1, .heads = 2},
      {.sample_shape = {8}, .input = "int64", .activation = "softmax"});
  const Open open(path);
  ASSERT_EQ(open.code, TARE_OK) << tare_last_error();
  const at::Tensor tokens = at::randint(9, {2, 5}, at::kLong);
  EXPECT_TRUE(
      predicted(open.model, tokens).allclose(Predictor(path).predict(tokens), kNear, kNear));
}

TEST(LiteCInterface, DescribesTheBundleAndItsPredictions) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const Open open(path);
  const char* info = nullptr;
  ASSERT_EQ(tare_info(open.model, &info), TARE_OK);
  EXPECT_EQ(json::parse(info)["labels"], json({"zero", "one", "two"}));
  EXPECT_EQ(json::parse(info)["input"]["shape"], json({1, 8, 8}));
  EXPECT_EQ(json::parse(info)["transforms"],
            json::parse(R"([{"normalise": {"mean": [0.5], "std": [0.25]}}])"));
  const at::Tensor output = Predictor(path).predict(at::rand({3, 1, 8, 8}));
  const DLTensor view = view_of(output);
  char* text = nullptr;
  ASSERT_EQ(tare_describe(open.model, &view, 2, &text), TARE_OK) << tare_last_error();
  const json described = json::parse(text);
  tare_free(text);
  ASSERT_EQ(described.size(), 3U);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(described[static_cast<size_t>(i)]["predictions"][0]["index"],
              output[i].argmax().item<int64_t>());
  EXPECT_EQ(tare_describe(open.model, &view, 0, &text), TARE_BAD_INPUT);
  EXPECT_STREQ(tare_version(), "tare 0.1.0, without LibTorch");
  EXPECT_EQ(tare_abi_version(), TARE_ABI_VERSION);
}

TEST(LiteCInterface, ReadsPicturesOfAnySize) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const Open open(path);
  const at::Tensor pixels = at::randint(256, {1, 20, 13}, at::kByte);
  write_png(folder / "a.png", pixels);
  DLManagedTensorVersioned* read = nullptr;
  ASSERT_EQ(tare_read_picture(open.model, (folder / "a.png").c_str(), &read), TARE_OK)
      << tare_last_error();
  EXPECT_TRUE(copy_of(read->dl_tensor).equal(Predictor(path).picture_input(pixels)));
  tare_release(read);
  EXPECT_EQ(tare_read_picture(open.model, (folder / "none.png").c_str(), &read), TARE_BAD_INPUT);
  EXPECT_EQ(tare_decode_picture(open.model, "no picture", 10, &read), TARE_BAD_INPUT);
}

TEST(LiteCInterface, SaysWhatIsWrong) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  tare_model* model = nullptr;
  EXPECT_EQ(tare_open((folder / "none").c_str(), nullptr, &model), TARE_BAD_INPUT);
  EXPECT_EQ(tare_open(nullptr, nullptr, &model), TARE_BAD_INPUT);
  std::ofstream(folder / "damaged") << "no bundle";
  EXPECT_EQ(tare_open((folder / "damaged").c_str(), nullptr, &model), TARE_BAD_INPUT);
  const tare_options on_card{.size = sizeof on_card, .threads = 0, .device = "cuda"};
  EXPECT_EQ(tare_open(path.c_str(), &on_card, &model), TARE_BAD_INPUT);
  EXPECT_THAT(tare_last_error(), HasSubstr("device must be cpu"));
  const auto other = written(folder / "unet.tare", "unet",
                             {.classes = 3, .sample_shape = {1, 8, 8}, .weights = ""},
                             {.sample_shape = {1, 8, 8}});
  EXPECT_EQ(tare_open(other.c_str(), nullptr, &model), TARE_BAD_INPUT);
  EXPECT_THAT(tare_last_error(), HasSubstr("has no model 'unet'"));
  EXPECT_EQ(model, nullptr);
  const Open open(path);
  const at::Tensor wrong = at::rand({1, 2}), tokens = at::randint(3, {1, 1, 8, 8}, at::kLong);
  for (const at::Tensor& input : {wrong, tokens}) {
    const DLTensor view = view_of(input);
    const DLTensor* inputs[] = {&view};
    DLManagedTensorVersioned* output = nullptr;
    size_t made = 0;
    EXPECT_EQ(tare_predict(open.model, inputs, 1, &output, 1, &made), TARE_BAD_INPUT);
    EXPECT_EQ(tare_predict(open.model, inputs, 2, &output, 1, &made), TARE_BAD_INPUT);
    EXPECT_EQ(tare_predict(open.model, inputs, 1, &output, 0, &made), TARE_BAD_INPUT);
    EXPECT_EQ(output, nullptr);
  }
  tare_close(nullptr);
  tare_release(nullptr);
}

int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "RssAnon:") {
      int64_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

TEST(LiteCInterface, TakesNoMemoryByOpeningAgainAndAgain) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const auto cycles = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Open open(path);
      ASSERT_EQ(open.code, TARE_OK);
    }
  };
  cycles(200);
  const int64_t before = resident_kib();
  cycles(3000);
  EXPECT_LT(resident_kib() - before, 512);
}

TEST(LiteCInterface, PredictsFromSeveralThreads) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const at::Tensor input = at::rand({2, 1, 8, 8}), expected = Predictor(path).predict(input);
  const Open shared(path);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const Open own(path);
      for (int round = 0; round < 50; ++round)
        for (tare_model* model : {shared.model, own.model})
          EXPECT_TRUE(predicted(model, input).allclose(expected, kNear, kNear));
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tare
