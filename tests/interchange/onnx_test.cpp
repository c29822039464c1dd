// Looks into ONNX models; readers_test.py opens them with ONNX Runtime.
#include "tare/interchange/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interchange/modules.h"
#include "support/files.h"
#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/data/protobuf.h"

namespace tare::interchange {
namespace {

using ::testing::AllOf;
using testing::content_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::outcome_of;
using testing::TempDir;

TEST(Protobuf, IsTheWireFormat) {
  EXPECT_EQ(ProtobufWriter().integer(1, 150).text(), std::string("\x08\x96\x01"));
  EXPECT_EQ(ProtobufWriter().bytes(2, "testing").text(), std::string("\x12\x07testing"));
  EXPECT_EQ(ProtobufWriter().message(3, ProtobufWriter().integer(1, 150)).text(),
            std::string("\x1a\x03\x08\x96\x01"));
  EXPECT_EQ(ProtobufWriter().integer(1, -1).text(), "\x08" + std::string(9, '\xff') + "\x01");
  EXPECT_EQ(ProtobufWriter().real(2, 1.0F).text(), std::string("\x15\x00\x00\x80\x3f", 5));
  EXPECT_EQ(ProtobufWriter().integer(20, 2).text(), std::string("\xa0\x01\x02"));
}

TEST(Onnx, HasTheWeightsThatAreReadUnderTheirNames) {
  const TempDir folder;
  Model model = models::make("resnet9", {.sample_shape = {3, 32, 32}});
  write_onnx(folder / "net.onnx", graph_of(model, {{.sample_shape = {3, 32, 32}}}),
             {.metadata = {{"tare", "manifest"}}});
  const std::string bytes = content_of(folder / "net.onnx");
  for (const Parameter& parameter : model.parameters()) {
    EXPECT_THAT(bytes, HasSubstr(parameter.name));
    const std::string raw(static_cast<const char*>(parameter.tensor.data_ptr()),
                          parameter.tensor.nbytes());
    EXPECT_NE(bytes.find(raw), std::string::npos) << parameter.name;
  }
  EXPECT_THAT(bytes, AllOf(Not(HasSubstr("num_batches_tracked")), HasSubstr("manifest")));
}

TEST(Onnx, IsTheSameForTheSameModel) {
  const TempDir folder;
  Model model = models::make("mlp", {.sample_shape = {12}});
  for (const char* name : {"a.onnx", "b.onnx"})
    EXPECT_EQ(write_onnx(folder / name, graph_of(model, {{.sample_shape = {12}}})), "");
  EXPECT_EQ(content_of(folder / "a.onnx"), content_of(folder / "b.onnx"));
}

TEST(Onnx, OfManyBytesHasASecondFile) {
  const TempDir folder;
  Model model = models::make("mlp", {.sample_shape = {12}, .hidden = {64}});
  const auto second = write_onnx(folder / "net.onnx", graph_of(model, {{.sample_shape = {12}}}),
                                 {.most_inside_bytes = 100});
  EXPECT_EQ(second, folder / "net.onnx.data");
  const std::string data = content_of(second), model_bytes = content_of(folder / "net.onnx");
  EXPECT_THAT(model_bytes, AllOf(HasSubstr("net.onnx.data"), HasSubstr("location")));
  EXPECT_LT(model_bytes.size(), 2000U);
  for (const Parameter& parameter : model.parameters()) {
    const std::string raw(static_cast<const char*>(parameter.tensor.data_ptr()),
                          parameter.tensor.nbytes());
    EXPECT_EQ(data.find(raw) % 4096, 0U) << parameter.name;
  }
}

TEST(Onnx, RefusesOperatorsThatItLacks) {
  const TempDir folder;
  const auto refusal = [&](std::function<torch::Tensor(const torch::Tensor&)> function) {
    Model model(Function(std::move(function)));
    const Graph graph = graph_of(model, {{.sample_shape = {4}}});
    return outcome_of([&] { write_onnx(folder / "net.onnx", graph); });
  };
  EXPECT_THAT(refusal([](const torch::Tensor& x) { return x.cumsum(1); }),
              HasSubstr("ConfigError: [export.onnx] operator cumsum has no translation to ONNX"));
  EXPECT_THAT(refusal([](const torch::Tensor& x) { return torch::elu(x, 1, 2); }),
              HasSubstr("operator elu has a scale"));
  EXPECT_FALSE(std::filesystem::exists(folder / "net.onnx"));
}

}  // namespace
}  // namespace tare::interchange
