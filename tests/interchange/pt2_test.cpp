// Looks into `.pt2` files; readers_test.py opens them with PyTorch.
#include "tare/interchange/pt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "interchange/modules.h"
#include "support/files.h"
#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/zip_archive.h"

namespace tare::interchange {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::outcome_of;
using testing::TempDir;

/// Holds the bytes of a file, and the entries that lie in them.
struct Archive {
  explicit Archive(const std::filesystem::path& path) : bytes(content_of(path)) {
    entries = checkpoint::read_zip(std::as_writable_bytes(std::span(bytes)), path);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto entry = entries.at("model/" + name);
    return {reinterpret_cast<const char*>(entry.data()), entry.size()};
  }
  [[nodiscard]] nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(text(name));
  }
  std::string bytes;
  checkpoint::ZipEntries entries;
};

TEST(Pt2, HoldsEveryWeightAsItsBytes) {
  const TempDir folder;
  Model model = models::make("resnet9", {.sample_shape = {3, 32, 32}});
  const Graph graph = graph_of(model, {{.sample_shape = {3, 32, 32}}});
  write_pt2(folder / "net.pt2", graph, {.extra = {{"tare.json", "{\"a\": 1}"}}});
  const Archive archive(folder / "net.pt2");
  const auto config = archive.json("data/weights/model_weights_config.json")["config"];
  ASSERT_EQ(config.size(), graph.weights.size());
  for (const Weight& weight : graph.weights) {
    const auto& payload = config[weight.name];
    const std::string bytes =
        archive.text("data/weights/" + payload["path_name"].get<std::string>());
    ASSERT_EQ(bytes.size(), weight.tensor.nbytes()) << weight.name;
    EXPECT_EQ(std::memcmp(bytes.data(), weight.tensor.data_ptr(), bytes.size()), 0) << weight.name;
    EXPECT_EQ(payload["is_param"], weight.kind == Weight::Kind::parameter);
  }
  for (const auto& [name, bytes] : archive.entries)
    EXPECT_EQ((reinterpret_cast<const char*>(bytes.data()) - archive.bytes.data()) % 64, 0) << name;
  EXPECT_EQ(archive.text("extra/tare.json"), "{\"a\": 1}");
  EXPECT_EQ(archive.text("archive_format"), "pt2");
  EXPECT_EQ(archive.text("archive_version"), "0");
  EXPECT_EQ(archive.text("byteorder"), "little");
}

TEST(Pt2, HasANodeForEachOperatorAndSymbolsForSizes) {
  const TempDir folder;
  const GraphInput tokens{.type = torch::kLong, .sample_shape = {16}, .length = 0};
  Model model = models::make(
      "gpt", {.classes = 20, .sample_shape = {16}, .width = 16, .layers = 1, .heads = 2});
  Graph graph = graph_of(model, {tokens});
  EXPECT_EQ(graph.longest, 16) << "a GPT has as many positions";
  write_pt2(folder / "gpt.pt2", graph);
  const auto program = Archive(folder / "gpt.pt2").json("models/model.json");
  const auto& parts = program["graph_module"]["graph"];
  size_t calls = 0;
  for (const auto& node : parts["nodes"])
    calls += node["target"].get<std::string>().starts_with("torch.ops.aten.sym_size") ? 0 : 1;
  EXPECT_EQ(calls, graph.nodes.size());
  EXPECT_EQ(parts["tensor_values"].size(), graph.values.size());
  EXPECT_EQ(program["range_constraints"]["s1"]["max_val"], 16);
  EXPECT_EQ(program["range_constraints"]["s0"]["min_val"], 1);
  EXPECT_THAT(parts["tensor_values"]["input"]["sizes"][1].dump(), HasSubstr("Symbol('s1'"));
}

TEST(Pt2, IsTheSameForTheSameModel) {
  const TempDir folder;
  Model model =
      models::make("vit", {.sample_shape = {3, 32, 32}, .width = 16, .layers = 1, .heads = 2});
  for (const char* name : {"a.pt2", "b.pt2"})
    write_pt2(folder / name, graph_of(model, {{.sample_shape = {3, 32, 32}}}));
  EXPECT_EQ(content_of(folder / "a.pt2"), content_of(folder / "b.pt2"));
}

TEST(Pt2, LeavesTheOldFileOnAnError) {
  const TempDir folder;
  Model model(Function([](const torch::Tensor& x) { return x.clamp_max(INFINITY); }));
  Graph graph = graph_of(model, {{.sample_shape = {4}}});
  std::ofstream(folder / "net.pt2") << "old";
  EXPECT_THAT(outcome_of([&] { write_pt2(folder / "net.pt2", graph); }),
              HasSubstr("takes a number that JSON cannot hold"));
  EXPECT_EQ(content_of(folder / "net.pt2"), "old");
}

}  // namespace
}  // namespace tare::interchange
