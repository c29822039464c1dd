// The C interface: as a program in C sees it, against the Predictor.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/temp_dir.h"
#include "tare/base/base64.h"
#include "tare/base/io.h"
#include "tare/c/tare.h"
#include "tare/inference/predictor.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace tare {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TempDir;

/// Writes a bundle of a model of the registry with random weights.
std::filesystem::path written(const std::filesystem::path& path, const char* name,
                              const ModelOptions& options, BundleManifest manifest) {
  const Model model = models::make(name, options);
  manifest.model = *model.spec();
  write_bundle(path, manifest, stored_state(model));
  return path;
}

std::filesystem::path pictures_bundle(const TempDir& folder) {
  return written(folder / "pictures.tare", "mlp",
                 {.classes = 3, .sample_shape = {1, 4, 4}, .weights = "", .hidden = {8}},
                 {.sample_shape = {1, 4, 4},
                  .transforms = Transforms{Normalise{.mean = {0.5}, .std = {0.25}}},
                  .labels = {"zero", "one", "two"},
                  .activation = "softmax"});
}

std::filesystem::path rows_bundle(const TempDir& folder) {
  const RowCoding coding{.columns = {{.name = "sex", .kind = "category", .texts = {"f", "m"}},
                                     {.name = "age", .mean = 40, .deviation = 10, .missing = 40}},
                         .target = "price"};
  return written(folder / "rows.tare", "mlp",
                 {.classes = 1, .sample_shape = {2}, .weights = "", .hidden = {8}},
                 {.sample_shape = {2}, .rows = coding});
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
  const bool is_float = tensor.is_floating_point();
  const auto bits = static_cast<uint8_t>(8 * tensor.element_size());
  return {.data = const_cast<void*>(tensor.const_data_ptr()),
          .device = {1, 0},
          .ndim = static_cast<int32_t>(tensor.dim()),
          .dtype = {static_cast<uint8_t>(is_float                            ? 2
                                         : tensor.scalar_type() == at::kByte ? 1
                                                                             : 0),
                    bits, 1},
          .shape = const_cast<int64_t*>(tensor.sizes().data()),
          .strides = const_cast<int64_t*>(tensor.strides().data()),
          .byte_offset = 0};
}

at::Tensor copy_of(const DLTensor& tensor) {
  return at::from_blob(tensor.data, at::IntArrayRef(tensor.shape, static_cast<size_t>(tensor.ndim)),
                       at::TensorOptions().dtype(tensor.dtype.code == 2 ? at::kFloat : at::kByte))
      .clone();
}

/// Predicts with one input; returns a copy of the only output.
at::Tensor predicted(tare_model* model, const at::Tensor& input) {
  const DLTensor view = view_of(input);
  const DLTensor* inputs[] = {&view};
  DLManagedTensorVersioned* output = nullptr;
  size_t made = 0;
  EXPECT_EQ(tare_predict(model, inputs, 1, &output, 1, &made), TARE_OK) << tare_last_error();
  EXPECT_EQ(made, 1U);
  if (!output) return {};
  EXPECT_EQ(output->version.major, 1U);
  const at::Tensor result = copy_of(output->dl_tensor);
  tare_release(output);
  return result;
}

/// Returns the response to a JSON text, or the error.
std::string answer(tare_model* model, const std::string& request) {
  char* response = nullptr;
  if (tare_predict_json(model, request.c_str(), &response) != TARE_OK) return tare_last_error();
  const std::string text = response;
  tare_free(response);
  return text;
}

TEST(CInterface, PredictsAsThePredictorDoes) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const Open open(path);
  ASSERT_EQ(open.code, TARE_OK) << tare_last_error();
  Predictor predictor(path);
  const at::Tensor floats = at::rand({5, 1, 4, 4});
  const at::Tensor bytes = at::randint(256, {2, 1, 4, 4}, at::kByte);
  EXPECT_TRUE(at::equal(predicted(open.model, floats), predictor.predict(floats)));
  EXPECT_TRUE(at::equal(predicted(open.model, bytes), predictor.predict(bytes)));
  const at::Tensor turned = at::rand({4, 4, 1, 5}).permute({3, 2, 1, 0});
  EXPECT_TRUE(at::equal(predicted(open.model, turned), predictor.predict(turned)));
  EXPECT_EQ(predicted(open.model, at::rand({0, 1, 4, 4})).size(0), 0);
  // Columns and samples from the last to the first, as NumPy has them.
  DLTensor reversed = view_of(floats);
  int64_t strides[] = {-16, 16, 4, -1};
  reversed.strides = strides;
  reversed.byte_offset = (4 * 16 + 3) * sizeof(float);
  const DLTensor* inputs[] = {&reversed};
  DLManagedTensorVersioned* output = nullptr;
  size_t made = 0;
  ASSERT_EQ(tare_predict(open.model, inputs, 1, &output, 1, &made), TARE_OK) << tare_last_error();
  EXPECT_TRUE(at::equal(copy_of(output->dl_tensor), predictor.predict(floats.flip({0, 3}))));
  tare_release(output);
  strides[0] = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(tare_predict(open.model, inputs, 1, &output, 1, &made), TARE_BAD_INPUT);
  EXPECT_THAT(tare_last_error(), HasSubstr("stride out of range"));
}

TEST(CInterface, LeavesTheRandomNumbersAndTheThreadsOfTheHost) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const auto drawn = [] { return at::rand({3}); };
  at::manual_seed(5);
  const at::Tensor expected = drawn();
  at::manual_seed(5);
  const int threads = at::get_num_threads();
  const tare_options options{.size = sizeof options, .threads = 3, .device = nullptr};
  const Open open(path, &options);
  (void)predicted(open.model, at::rand({1, 1, 4, 4}));
  at::manual_seed(5);
  { const Open again(path); }
  EXPECT_TRUE(at::equal(drawn(), expected));
  EXPECT_EQ(at::get_num_threads(), threads);
  int in_new_thread = 0;
  std::thread([&] { in_new_thread = at::get_num_threads(); }).join();
  EXPECT_EQ(in_new_thread, threads);
}

TEST(CInterface, DescribesTheBundleAndItsPredictions) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const Open open(path);
  const char* info = nullptr;
  ASSERT_EQ(tare_info(open.model, &info), TARE_OK);
  EXPECT_EQ(json::parse(info)["labels"], json({"zero", "one", "two"}));
  EXPECT_EQ(json::parse(info)["input"]["shape"], json({1, 4, 4}));
  const at::Tensor output = Predictor(path).predict(at::rand({3, 1, 4, 4}));
  const DLTensor view = view_of(output);
  char* text = nullptr;
  ASSERT_EQ(tare_describe(open.model, &view, 2, &text), TARE_OK) << tare_last_error();
  const json described = json::parse(text);
  tare_free(text);
  ASSERT_EQ(described.size(), 3U);
  for (int64_t i = 0; i < 3; ++i) {
    const json& best = described[static_cast<size_t>(i)]["predictions"];
    ASSERT_EQ(best.size(), 2U);
    EXPECT_EQ(best[0]["index"], output[i].argmax().item<int64_t>());
    EXPECT_EQ(best[0]["probability"].get<float>(), output[i].max().item<float>());
  }
  EXPECT_EQ(tare_describe(open.model, &view, 0, &text), TARE_BAD_INPUT);
  EXPECT_STREQ(tare_version(), "tare 0.1.0, LibTorch " TEST_LIBTORCH);
  EXPECT_EQ(tare_abi_version(), TARE_ABI_VERSION);
}

TEST(CInterface, ReadsPicturesOfAnySize) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const Open open(path);
  // A PNG of 2 x 3 pixels, by Pillow.
  const auto png = bytes_of_base64(
      "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAAAAACcgYFdAAAAEUlEQVR4nGNgMGJMMWI48QsABrMCjBE9EOEAAAAASUVO"
      "RK5CYII=");
  ASSERT_TRUE(png);
  io::write_atomically(folder / "a.png", *png);
  DLManagedTensorVersioned *read = nullptr, *decoded = nullptr;
  const int code = tare_read_picture(open.model, (folder / "a.png").c_str(), &read);
  if (code != TARE_OK) GTEST_FAIL() << tare_last_error();
  ASSERT_EQ(tare_decode_picture(open.model, png->data(), png->size(), &decoded), TARE_OK);
  EXPECT_EQ(copy_of(read->dl_tensor).sizes(), (at::IntArrayRef{1, 1, 4, 4}));
  EXPECT_TRUE(at::equal(copy_of(read->dl_tensor), copy_of(decoded->dl_tensor)));
  tare_release(read);
  tare_release(decoded);
  EXPECT_EQ(tare_read_picture(open.model, (folder / "none.png").c_str(), &read), TARE_BAD_INPUT);
  EXPECT_EQ(tare_decode_picture(open.model, "no picture", 10, &read), TARE_BAD_INPUT);
}

TEST(CInterface, PredictsTheRowsOfATableFromJson) {
  const TempDir folder;
  const auto path = rows_bundle(folder);
  const Open open(path);
  ASSERT_EQ(open.code, TARE_OK) << tare_last_error();
  const json response = json::parse(
      answer(open.model, R"({"samples": [{"age": 50, "sex": "m"}, {"sex": "f", "age": null}]})"));
  Predictor predictor(path);
  const float rows[] = {3, 1, 2, 0};
  const at::Tensor expected =
      predictor.predict(at::from_blob(const_cast<float*>(rows), {2, 2}, at::kFloat));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(response["samples"][i]["values"][0].get<float>(),
              expected[static_cast<int64_t>(i)].item<float>());
    EXPECT_EQ(response["samples"][i]["targets"], json({"price"}));
  }
  for (const auto& [request, why] :
       {std::pair("no json", "is not JSON of the form"), std::pair("{}", "is not JSON of the form"),
        std::pair(R"({"samples": []})", "without a sample"),
        std::pair(R"({"samples": [{"age": 1, "sex": "m"}, {"age": 3}]})",
                  "sample 1: lacks the column 'sex'"),
        std::pair(R"({"samples": [{"age": 1, "sex": "m"}, {"age": "x", "sex": "m"}]})",
                  "sample 1: cannot be read"),
        std::pair(R"({"samples": [[1, 2]]})", "object"),
        std::pair(R"({"samples": [{"age": [1], "sex": "m"}]})", "where a field should be"),
        std::pair(R"({"samples": [{"age": 1, "sex": "m"}], "top": 2})", "are values"),
        std::pair(R"({"samples": [{"age": 1, "sex": "m"}], "tops": 2})", "tops': is not known")})
    EXPECT_THAT(answer(open.model, request), HasSubstr(why)) << request;
}

TEST(CInterface, PredictsNumbersTextsAndPicturesFromJson) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const Open open(path);
  const std::string levels = "[[[0,1,2,3],[4,5,6,7],[8,9,10,11],[12,13,14,255]]]";
  const json one = json::parse(answer(open.model, R"({"top": 3, "samples": [)" + levels + "]}"));
  EXPECT_EQ(one["samples"][0]["predictions"].size(), 3U);
  for (const auto& [sample, why] :
       {std::pair("[[[0.5]]]", "no level"), std::pair("[[1],[1,2]]", "arrays of different sizes"),
        std::pair("[]", "array without numbers"), std::pair("3", "takes arrays of numbers"),
        std::pair("[[\"a\"]]", "has a string where a number should be"),
        std::pair(R"({"b64": "?"})", "not Base64"), std::pair(R"({"b64": "Zm9v"})", "PNG"),
        std::pair(R"({"file": "a"})", "b64"),
        std::pair("[[[[[[[[[[1]]]]]]]]]]", "too many arrays")})
    EXPECT_THAT(answer(open.model, std::string(R"({"samples": [)") + levels + "," + sample + "]}"),
                HasSubstr(why))
        << sample;

  const auto tokens = written(
      folder / "gpt.tare", "gpt",
      {.classes = 3, .sample_shape = {8}, .weights = "", .width = 8, .layers = 1, .heads = 2},
      {.sample_shape = {8}, .input = "int64", .labels = {"a", "b", "c"}, .activation = "softmax"});
  const Open texts(tokens);
  ASSERT_EQ(texts.code, TARE_OK) << tare_last_error();
  // Samples of three lengths, two of which are predicted together.
  const json lengths = json::parse(answer(
      texts.model, R"({"samples": ["abc", [0, 1, 2], "a", [2, 1], [0]], "top": 3})"))["samples"];
  EXPECT_EQ(lengths[0], lengths[1]);
  EXPECT_EQ(lengths[2], lengths[4]);
  EXPECT_NE(lengths[0], lengths[3]);
  EXPECT_THAT(answer(texts.model, R"({"samples": ["abd"]})"), HasSubstr("'d'"));
  EXPECT_THAT(answer(texts.model, R"({"samples": [[0, 3]]})"), HasSubstr("must be in [0, 3)"));
  EXPECT_THAT(answer(texts.model, R"({"samples": [[0.5]]})"), HasSubstr("no whole one"));
}

TEST(CInterface, PredictsTextsOfAClassifierThatTakesLengths) {
  const TempDir folder;
  const auto path = written(folder / "texts.tare", "lstm",
                            {.classes = 2, .sample_shape = {9}, .weights = "", .width = 4},
                            {.sample_shape = {9},
                             .any_size = {0},
                             .input = "int64",
                             .more_inputs = {{.name = "lengths", .dtype = "int64"}},
                             .labels = {"good", "bad"},
                             .activation = "softmax"});
  const Open open(path);
  ASSERT_EQ(open.code, TARE_OK) << tare_last_error();
  const json all = json::parse(
      answer(open.model, R"({"samples": ["so good", "bad", [98, 97, 100]], "top": 2})"));
  const json& samples = all["samples"];
  ASSERT_EQ(samples.size(), 3U) << all;
  EXPECT_EQ(samples[1], samples[2]);
  EXPECT_NE(samples[0], samples[1]);
  EXPECT_THAT(answer(open.model, R"({"samples": ["a", ""]})"), HasSubstr("sample 1: is an empty"));
}

TEST(CInterface, TakesTextsOfAnyDepth) {
  const TempDir folder;
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const auto& path : {pictures_bundle(folder), rows_bundle(folder)}) {
    const Open open(path);
    for (const std::string& request :
         {R"({"samples": [)" + deep + "]}", deep, R"({"samples": [{"age": )" + deep + "}]}"})
      EXPECT_THAT(answer(open.model, request), HasSubstr("request"));
  }
}

TEST(CInterface, SaysWhatIsWrong) {
  const TempDir folder;
  tare_model* model = nullptr;
  EXPECT_EQ(tare_open((folder / "none").c_str(), nullptr, &model), TARE_BAD_INPUT);
  EXPECT_THAT(tare_last_error(), HasSubstr("none"));
  io::write_atomically(folder / "damaged", "no bundle");
  EXPECT_EQ(tare_open((folder / "damaged").c_str(), nullptr, &model), TARE_BAD_INPUT);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(tare_open(nullptr, nullptr, &model), TARE_BAD_INPUT);
  EXPECT_THAT(tare_last_error(), HasSubstr("path is null"));

  const auto path = pictures_bundle(folder);
  const auto refused = [&](tare_options options) {
    const Open open(path, &options);
    return open.code == TARE_BAD_INPUT ? tare_last_error() : "accepted";
  };
  EXPECT_THAT(refused({.size = 999, .threads = 0, .device = nullptr}), HasSubstr("options.size"));
  EXPECT_THAT(refused({.size = sizeof(tare_options), .threads = -1, .device = nullptr}),
              HasSubstr("threads must be >= 0"));
  EXPECT_THAT(refused({.size = sizeof(tare_options), .threads = 1 << 30, .device = nullptr}),
              HasSubstr("at most 4096"));
  EXPECT_THAT(refused({.size = sizeof(tare_options), .threads = 1, .device = "gpu"}),
              HasSubstr("gpu"));
  EXPECT_STREQ(refused({.size = 4, .threads = -1, .device = "gpu"}), "accepted");  // an old header

  const Open open(path);
  const at::Tensor input = at::rand({2, 1, 4, 4});
  const auto changed = [&](const auto& change) {
    DLTensor view = view_of(input);
    change(view);
    const DLTensor* inputs[] = {&view};
    DLManagedTensorVersioned* output = nullptr;
    size_t made = 7;
    EXPECT_EQ(tare_predict(open.model, inputs, 1, &output, 1, &made), TARE_BAD_INPUT);
    EXPECT_EQ(output, nullptr);
    EXPECT_EQ(made, 7U);
    return std::string(tare_last_error());
  };
  EXPECT_THAT(changed([](DLTensor& t) { t.device.device_type = 2; }), HasSubstr("on a device"));
  EXPECT_THAT(changed([](DLTensor& t) { t.dtype.bits = 16; }), HasSubstr("float64"));
  EXPECT_THAT(changed([](DLTensor& t) { t.dtype.lanes = 4; }), HasSubstr("allowed"));
  EXPECT_THAT(changed([](DLTensor& t) { t.ndim = 40; }), HasSubstr("40 dimensions"));
  EXPECT_THAT(changed([](DLTensor& t) { t.ndim = 2; }), HasSubstr("got float32 [2, 1]"));
  EXPECT_THAT(changed([](DLTensor& t) { t.data = nullptr; }),
              HasSubstr("data of a tensor is null"));
  EXPECT_THAT(changed([](DLTensor& t) { t.shape = nullptr; }), HasSubstr("shape"));
  const DLTensor view = view_of(input);
  const DLTensor* inputs[] = {&view, &view};
  DLManagedTensorVersioned* output = nullptr;
  size_t made = 0;
  EXPECT_EQ(tare_predict(open.model, inputs, 2, &output, 1, &made), TARE_BAD_INPUT);
  EXPECT_EQ(tare_predict(open.model, inputs, 1, &output, 0, &made), TARE_BAD_INPUT);
  EXPECT_THAT(tare_last_error(), HasSubstr("capacity is 0"));
  EXPECT_EQ(tare_predict(nullptr, inputs, 1, &output, 1, &made), TARE_BAD_INPUT);
  EXPECT_EQ(output, nullptr);
  tare_release(nullptr);
  tare_free(nullptr);
  tare_close(nullptr);
}

/// Holds bytes on pages of their own, which writing kills the process.
class ReadOnly {
 public:
  explicit ReadOnly(const at::Tensor& tensor) : size_(tensor.nbytes()) {
    place_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(place_, tensor.const_data_ptr(), size_);
    ::mprotect(place_, size_, PROT_READ);
  }
  ~ReadOnly() { ::munmap(place_, size_); }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;
  [[nodiscard]] void* data() const { return place_; }

 private:
  size_t size_;
  void* place_;
};

class EveryFamilyOfPictures : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamilyOfPictures, DoesNotWriteItsInput) {
  const TempDir folder;
  const auto path = written(folder / "net.tare", GetParam(),
                            {.classes = 2, .sample_shape = {3, 32, 32}, .weights = ""},
                            {.sample_shape = {3, 32, 32}});
  const Open open(path);
  ASSERT_EQ(open.code, TARE_OK) << tare_last_error();
  const at::Tensor input = at::rand({1, 3, 32, 32});
  const ReadOnly pages(input);
  DLTensor view = view_of(input);
  view.data = pages.data();
  const DLTensor* inputs[] = {&view};
  DLManagedTensorVersioned* output = nullptr;
  size_t made = 0;
  ASSERT_EQ(tare_predict(open.model, inputs, 1, &output, 1, &made), TARE_OK) << tare_last_error();
  tare_release(output);
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryFamilyOfPictures,
                         ::testing::Values("convnet", "mlp", "mobilenet_v3_small", "resnet18",
                                           "resnet9", "unet"));

int64_t resident_kib(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::stoll(line.substr(std::strlen(field) + 1));
  return 0;
}

TEST(CInterface, ThousandsOfOpenModelsOneAfterTheOtherLeaveNothing) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const at::Tensor input = at::rand({1, 1, 4, 4});
  const auto cycle = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Open open(path);
      (void)predicted(open.model, input);
      tare_model* none = nullptr;
      ASSERT_EQ(tare_open((folder / "none").c_str(), nullptr, &none), TARE_BAD_INPUT);
    }
  };
  const bool deep = std::getenv("TARE_DEEP") != nullptr;
  cycle(200);
  const int64_t before = resident_kib("VmRSS:");
  cycle(deep ? 10'000 : 1'000);
  EXPECT_LE(resident_kib("VmRSS:") - before, 512);
}

TEST(CInterface, TwoThreadsOnTwoModelsHoldTheWeightsOnce) {
  const TempDir folder;
  // 64 MiB of weights.
  const auto path =
      written(folder / "large.tare", "mlp",
              {.classes = 4, .sample_shape = {1, 64, 64}, .weights = "", .hidden = {4096}},
              {.sample_shape = {1, 64, 64}});
  const at::Tensor input = at::rand({2, 1, 64, 64});
  const at::Tensor expected = Predictor(path).predict(input);
  const Open first(path);
  (void)predicted(first.model, input);
  const int64_t before = resident_kib("VmRSS:");
  const Open second(path);
  const auto work = [&](tare_model* model) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(at::equal(predicted(model, input), expected));
  };
  std::thread other(work, second.model);
  work(first.model);
  other.join();
  EXPECT_LE(resident_kib("VmRSS:") - before, 16 * 1024);
}

TEST(CInterface, OneModelServesSeveralThreads) {
  const TempDir folder;
  const auto path = pictures_bundle(folder);
  const Open open(path);
  const at::Tensor input = at::rand({3, 1, 4, 4});
  const at::Tensor expected = Predictor(path).predict(input);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(at::equal(predicted(open.model, input), expected));
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tare
