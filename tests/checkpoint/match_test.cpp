// Named tensors that are compared and copied.
#include "tare/checkpoint/match.h"

#include <ATen/ops/zeros.h>

#include "checkpoint/support.h"

namespace tare::checkpoint {
namespace {

TEST(Compare, ListsMissingUnexpectedAndDifferent) {
  const Match match =
      compare({{"a", at::zeros({2})}, {"b", at::zeros({2})}, {"c", at::zeros({2})}},
              {{"a", at::zeros({2})}, {"b", at::zeros({3})}, {"d", at::zeros({2})}});
  EXPECT_FALSE(match.complete());
  EXPECT_EQ(match.missing, std::vector<std::string>{"c"});
  EXPECT_EQ(match.unexpected, std::vector<std::string>{"d"});
  ASSERT_EQ(match.different.size(), 1U);
  EXPECT_EQ(match.different[0].name, "b");
  EXPECT_EQ(match.different[0].expected, "float32 [2]");
  EXPECT_EQ(match.different[0].got, "float32 [3]");
}

TEST(Compare, SaysSoInOneLine) {
  EXPECT_EQ(compare({{"a", at::zeros({2})}}, {{"a", at::zeros({2})}}).str(), "all tensors fit");
  const Match match = compare({{"head.weight", at::zeros({2})}, {"x", at::zeros({2}, at::kLong)}},
                              {{"head.weigth", at::zeros({2})}, {"x", at::zeros({2})}});
  EXPECT_EQ(match.str(),
            "missing: head.weight (nearest: head.weigth); unexpected: head.weigth; different: x "
            "needs int64 [2], got "
            "float32 [2]");
}

TEST(Compare, Float8DoesNotStandForItsValues) {
  const at::Tensor eight = at::zeros({2, 2}).to(at::kFloat8_e4m3fn);
  EXPECT_FALSE(compare({{"a", at::zeros({2, 2})}}, {{"a", eight}}).complete());
  EXPECT_FALSE(compare({{"a", eight}}, {{"a", at::zeros({2, 2})}}).complete());
  EXPECT_TRUE(compare({{"a", eight}}, {{"a", eight}}).complete());
}

TEST(Compare, ListsAtMostEightOfAKind) {
  Match match;
  for (int i = 0; i < 11; ++i) match.missing.push_back("n" + std::to_string(i));
  EXPECT_NE(match.str().find("n7 and 3 more"), std::string::npos) << match.str();
}

TEST(CopyInto, CopiesInPlaceOutsideOfAutograd) {
  const at::Tensor target = at::zeros({2, 2}).requires_grad_();
  const void* data = target.const_data_ptr();
  const CopyReport report =
      copy_into({{"a", target}}, {{"a", counting({2, 2})}}, true, "test", "file");
  EXPECT_TRUE(same(target, counting({2, 2})));
  EXPECT_EQ(target.const_data_ptr(), data);
  EXPECT_TRUE(target.is_leaf());
  EXPECT_TRUE(report.fresh.empty() && report.ignored.empty());
}

TEST(CopyInto, StrictChangesNothingWhenAnythingDoesNotFit) {
  const at::Tensor first = at::zeros({2}), second = at::zeros({2});
  const std::vector<NamedTensor> targets = {{"a", first}, {"b", second}};
  const auto part = [&](const std::vector<NamedTensor>& source) {
    return refused_part([&] { copy_into(targets, source, true, "test", "file"); });
  };
  const at::Tensor good = counting({2}).add(1);
  EXPECT_EQ(part({{"a", good}}), "b");
  EXPECT_EQ(part({{"a", good}, {"b", counting({3})}}), "b");
  EXPECT_EQ(part({{"a", good}, {"b", good.to(at::kDouble)}}), "b");
  EXPECT_EQ(part({{"a", good}, {"b", good}, {"c", good}}), "c");
  EXPECT_TRUE(same(first, at::zeros({2})));
  EXPECT_TRUE(same(second, at::zeros({2})));
}

TEST(CopyInto, NotStrictTakesWhatFitsAndReportsTheRest) {
  const at::Tensor body = at::zeros({2}), head = at::zeros({3});
  const CopyReport report =
      copy_into({{"body", body}, {"head", head}, {"extra", at::zeros({1})}},
                {{"body", counting({2})}, {"head", counting({10})}, {"old", counting({1})}}, false,
                "test", "file");
  EXPECT_TRUE(same(body, counting({2})));
  EXPECT_TRUE(same(head, at::zeros({3})));
  EXPECT_EQ(report.fresh, (std::vector<std::string>{"extra", "head"}));
  EXPECT_EQ(report.ignored, (std::vector<std::string>{"old", "head"}));
}

std::vector<NamedTensor> named(const std::vector<std::string>& names) {
  std::vector<NamedTensor> all;
  for (const auto& name : names) all.push_back({name, counting({1})});
  return all;
}

TEST(SurplusPrefix, IsWhatAllNamesOfTheSourceHaveBeyondTheTargets) {
  const auto net = named({"conv.weight", "fc.bias"});
  EXPECT_EQ(surplus_prefix(net, named({"module.conv.weight", "module.fc.bias"})), "module.");
  EXPECT_EQ(surplus_prefix(net, named({"a.module.conv.weight", "a.module.fc.bias"})), "a.module.");
  EXPECT_EQ(surplus_prefix(net, net), "");
  EXPECT_EQ(surplus_prefix(net, named({"module.conv.weight", "fc.bias"})), "");
  // Not one that is a module of the model, whose tensors alone are in the file.
  EXPECT_EQ(surplus_prefix(net, named({"conv.weight", "conv.bias"})), "");
  EXPECT_EQ(surplus_prefix(net, {}), "");
  EXPECT_EQ(surplus_prefix({}, net), "");
}

TEST(SurplusPrefix, LeavesAPrefixOfTheTargets) {
  const auto net = named({"model.a", "model.b"});
  EXPECT_EQ(surplus_prefix(net, net), "");
  EXPECT_EQ(surplus_prefix(net, named({"model.model.a", "model.model.b"})), "model.");
  EXPECT_EQ(surplus_prefix(net, named({"supermodel.a", "supermodel.b"})), "");
  EXPECT_EQ(surplus_prefix(net, named({"a", "b"})), "");
}

}  // namespace
}  // namespace tare::checkpoint
