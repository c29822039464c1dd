// Reads files for other programs back, whole and damaged.
#include "tare/interchange/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <random>

#include "interchange/exported.h"
#include "support/deep.h"
#include "support/files.h"
#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/interchange/onnx.h"

namespace tare::interchange {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::outcome_of;
using testing::TempDir;

Exported gpt() {
  torch::manual_seed(6);
  return Exported("gpt", {.classes = 32, .sample_shape = {8}, .width = 32, .layers = 1, .heads = 2},
                  {.sample_shape = {8}, .input = "int64", .activation = "softmax"});
}

class ReadFile : public ::testing::TestWithParam<std::string> {
 protected:
  ReadFile() {
    const Exported net = GetParam() == "gguf" ? gpt() : small();
    export_file(path(), GetParam(), net.manifest, net.tensors);
    for (const NamedTensor& one : net.tensors) names_.push_back(one.name);
  }
  static Exported small() {
    torch::manual_seed(4);
    return Exported(
        "convnet", {.classes = 3, .sample_shape = {1, 8, 8}, .width = 4},
        {.sample_shape = {1, 8, 8}, .labels = {"a", "b", "c"}, .activation = "softmax"});
  }
  [[nodiscard]] std::filesystem::path path() const {
    return folder_ / ("net" + file_format(GetParam()).extension);
  }
  TempDir folder_;
  std::vector<std::string> names_;
};

TEST_P(ReadFile, FindsWhatWasWritten) {
  EXPECT_EQ(format_of(path()), GetParam());
  const FileParts parts = read_parts(path());
  EXPECT_EQ(parts.kind, GetParam());
  EXPECT_EQ(parts.verified, true) << parts.problem;
  ASSERT_TRUE(parts.manifest);
  EXPECT_EQ(parts.manifest->activation, "softmax");
  EXPECT_GT(parts.tensors.size(), 3U);
  int64_t bytes = 0;
  for (const TensorPart& tensor : parts.tensors) bytes += tensor.bytes;
  EXPECT_LT(bytes, parts.bytes);
  EXPECT_GT(2 * bytes, parts.bytes / 3);
  EXPECT_THAT(describe(path(), parts).text, HasSubstr(GetParam() + " file, "));
  EXPECT_THAT(describe(path(), parts).text, HasSubstr(", verified"));
  EXPECT_THAT(describe_json(path(), parts).text, HasSubstr("\"verified\": true"));
}

/// Returns the place of the bytes of a tensor in the file.
size_t place_of(const std::string& content, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return content.find(
      std::string_view(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()));
}

TEST_P(ReadFile, NamesTheTensorThatIsNotAsItWasWritten) {
  const bool is_gguf = GetParam() == "gguf";  // where other matrices are transposed
  const Exported net = is_gguf ? gpt() : small();
  const std::map<std::string, std::string> names{{"wte.weight", "token_embd.weight"},
                                                 {"wpe.weight", "position_embd.weight"}};
  const std::string content = content_of(path());
  int found = 0;
  for (const auto& [name, tensor] : net.tensors) {
    const size_t at = place_of(content, tensor);
    if (tensor.dim() < 2 || at == std::string::npos) continue;  // ones and zeros are anywhere
    if (is_gguf && !names.contains(name)) continue;
    const std::string own = is_gguf ? names.at(name) : name;
    std::string damaged = content;
    damaged[at + tensor.nbytes() / 2] ^= 1;
    io::write_atomically(path(), damaged);
    EXPECT_EQ(read_parts(path()).problem, "these tensors are not as they were written: " + own);
    EXPECT_THAT(outcome_of([&] { verify_file(path()); }), HasSubstr(own));
    ++found;
  }
  EXPECT_GT(found, 1);
}

TEST_P(ReadFile, FindsAnyByteThatHasChanged) {
  const std::string content = content_of(path());
  const std::string whole = describe(path(), read_parts(path())).text;
  std::mt19937 random(3);
  for (int i = 0; i < testing::reduced(300, 10'000); ++i) {
    std::string damaged = content;
    const size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    io::write_atomically(path(), damaged);
    if (format_of(path()).empty()) continue;  // it is of no known format any more
    const FileParts parts = read_parts(path());
    if (parts.verified != true) continue;
    EXPECT_EQ(describe(path(), parts).text, whole) << "byte " << at << " is no gap";
  }
}

TEST_P(ReadFile, SaysThatAFileIsCutOff) {
  const std::string content = content_of(path());
  for (const size_t size :
       {content.size() - 1, content.size() / 2, content.size() / 9, size_t{20}}) {
    io::write_atomically(path(), content.substr(0, size));
    if (format_of(path()).empty()) continue;
    const FileParts parts = read_parts(path());
    EXPECT_EQ(parts.verified, false) << size;
    EXPECT_FALSE(parts.problem.empty());
    EXPECT_TRUE(describe(path(), parts).is_damaged);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ReadFile, ::testing::Values("gguf", "onnx", "pt2", "safetensors"),
                         [](const auto& one) { return one.param; });

TEST(ReadOtherFiles, FindsAnotherDtypeOfWeights) {
  const TempDir folder;
  const Exported net = gpt();
  export_file(folder / "w", "safetensors", net.manifest, net.tensors);
  std::string content = content_of(folder / "w");
  const std::string from = "\"F32\"";
  const size_t at = content.find(from);
  ASSERT_NE(at, std::string::npos);
  io::write_atomically(folder / "w", content.replace(at, from.size(), "\"I32\""));
  EXPECT_EQ(read_parts(folder / "w").problem,
            "what is beside the tensors is not as it was written");
  content.replace(at, from.size(), from);
  content.replace(content.find("tare.manifest"), 13, "tare.manifesu");
  io::write_atomically(folder / "w", content);
  EXPECT_EQ(read_parts(folder / "w").verified, false);
}

TEST(ReadOtherFiles, FindsTextBehindTheTensors) {
  const TempDir folder;
  const Exported net = gpt();
  export_file(folder / "w", "gguf", net.manifest, net.tensors);
  io::write_atomically(folder / "w", content_of(folder / "w") + "more");
  EXPECT_EQ(read_parts(folder / "w").problem,
            "what is beside the tensors is not as it was written");
}

TEST(ReadOtherFiles, FindsWeightsInASecondFile) {
  const TempDir folder;
  torch::manual_seed(1);
  Model model = models::make("mlp", {.classes = 2, .sample_shape = {4}, .hidden = {8}});
  const Graph graph = trace_graph(model, {{.sample_shape = {4}}});
  const auto path = folder / "net.onnx", second = write_onnx(path, graph, {.most_inside_bytes = 8});
  EXPECT_EQ(read_parts(path).verified, true) << read_parts(path).problem;
  std::string data = content_of(second);
  data[5] ^= 4;
  io::write_atomically(second, data);
  EXPECT_THAT(read_parts(path).problem, HasSubstr("these tensors are not as they were written: "));
  io::write_atomically(second, data.substr(0, 10));
  EXPECT_THAT(read_parts(path).problem, HasSubstr("does not fit into 'net.onnx.data'"));
  io::remove_all(second);
  EXPECT_THROW((void)read_parts(path), IoError);
}

TEST(ReadOtherFiles, KnowsNoOtherFiles) {
  const TempDir folder;
  for (const char* text : {"", "x", "PK\x03\x04 is no archive", "{\"a\": 1}"}) {
    io::write_atomically(folder / "file", text);
    EXPECT_EQ(format_of(folder / "file"), "") << text;
  }
  EXPECT_EQ(format_of(folder.path()), "");
  const auto model = models::make("mlp", {.classes = 2, .sample_shape = {4}, .hidden = {8}});
  checkpoint::write(folder / "w.safetensors", stored_state(model));
  EXPECT_EQ(format_of(folder / "w.safetensors"), "") << "no manifest";
}

}  // namespace
}  // namespace tare::interchange
