// Operators and layers allocate on the host, event by event, what their traces say; and a trace
// knows which of its operators have been compared so.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "tare/base/io.h"
#include "tare/trace/verified_operators.h"
#include "trace/operator_cases.h"
#include "trace/support.h"

namespace tare::plan {
namespace {

class Operators : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(Operators, AllocateAsPlanned) {
  const Trace trace = plan::trace(GetParam().work);
  ASSERT_FALSE(trace.events.empty());
  EXPECT_EQ(difference(host_sequence(GetParam().work), trace), "");
  EXPECT_THAT(unverified(trace), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, Operators, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(OperatorCases, AreAsManyAsThePageOfPlansSays) {
  std::string count = std::to_string(all_cases().size());
  count.insert(count.size() - 3, ",");
  const std::filesystem::path page = std::getenv("TARE_SOURCE_DIR");
  EXPECT_THAT(io::read_text(page / "docs/planning.md"), ::testing::HasSubstr(count + " cases"));
}

TEST(Verified, AreTheOperatorsThatAreComparedHere) {
  std::set<std::string> called;
  for (const Case& each : all_cases())
    for (const std::string& name : plan::trace(each.work).called) called.insert(name);
  for (const std::string_view name : verified_operators())
    EXPECT_TRUE(called.contains(std::string(name))) << name << " is in the list and not compared";
}

TEST(Unverified, AreOperatorsThatNobodyCompared) {
  const Trace trace = plan::trace([] {
    const auto t = torch::rand({3, 4});
    const auto y = torch::erfinv(t).sum();
  });
  EXPECT_THAT(unverified(trace), ::testing::ElementsAre("aten::erfinv"));
}

/// Tests that a plan refuses operators that differ on the host, even if LibTorch has a meta kernel.
TEST(Refused, BySayingWhatCannotBeTold) {
  const auto rows = [] { return in({7, 12}); };
  const std::vector<Case> refused{
      {"aten::max", [&] { rows().max().backward(); }},
      {"aten::prod", [&] { rows().prod(1).sum().backward(); }},
      {"aten::cumprod", [&] { rows().cumprod(1).sum().backward(); }},
      {"aten::group_norm",
       [] {
         const at::Tensor x = in({2, 8, 6, 6}).contiguous(torch::MemoryFormat::ChannelsLast);
         torch::nn::GroupNorm(4, 8)(x).sum().backward();
       }},
      {"aten::lstm",
       [] {
         torch::nn::LSTM lstm(12, 7);
         lstm->to(torch::kDouble);
         lstm(torch::rand({5, 3, 12}, torch::kDouble));
       }},
      {"aten::lstm",
       [] {
         torch::nn::LSTM lstm(torch::nn::LSTMOptions(12, 7).proj_size(4));
         lstm(torch::rand({5, 3, 12}));
       }},
      {"a packed sequence",
       [] {
         torch::nn::GRU gru(12, 7);
         torch::gru(torch::rand({8, 12}), torch::empty({5}, torch::kLong), torch::rand({1, 3, 7}),
                    gru->all_weights(), true, 1, 0.0, true, false);
       }},
      {"aten::one_hot", [] { torch::one_hot(classes({7})); }},
      {"aten::equal", [] { torch::equal(torch::rand({3}), torch::rand({3})); }},
      {"aten::_embedding_bag",
       [] {
         torch::nn::EmbeddingBag(10, 6)(classes({3, 5}));
       }},
  };
  for (const Case& each : refused) {
    try {
      const Trace trace = plan::trace(each.work);
      ADD_FAILURE() << each.name << " was planned";
    } catch (const NotPlannable& error) {
      EXPECT_EQ(error.op(), each.name);
    }
  }
}

TEST(Composites, AreLibTorchsOwnOutsideOfAPlan) {
  const auto meta = torch::TensorOptions().device(torch::kMeta);
  const auto out = std::get<0>(torch::nn::LSTM(12, 7)->forward(torch::rand({5, 3, 12})));
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{5, 3, 7}));
  EXPECT_EQ(torch::max_pool1d(torch::empty({3, 5, 12}, meta), 2).sizes(),
            (std::vector<int64_t>{3, 5, 6}));
}

}  // namespace
}  // namespace tare::plan
