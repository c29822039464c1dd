// The line of code that an allocation is ascribed to.
#include "tare/memory/call_site.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "support/program.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/host_allocator.h"

namespace tare::memory {
namespace {

constexpr int kLineOfUser = __LINE__ + 1;
at::Tensor made_by_user() { return at::ones({16}); }

uint32_t stack_of(const at::Tensor& tensor) {
  for (const auto& block : host_allocator::live_blocks())
    if (block.data == tensor.data_ptr()) return block.stack;
  return ~0U;
}

std::string file_name(const CallSite& site) {
  return site.file.substr(site.file.find_last_of('/') + 1);
}

TEST(CallSite, NamesTheLineOfTheUser) {
  const CallSites gather;
  const auto tensor = made_by_user();
  const auto site = site_of(stack_of(tensor));
  EXPECT_EQ(file_name(site), "call_site_test.cpp");
  EXPECT_EQ(site.line, kLineOfUser) << site.str();
  EXPECT_NE(site.function.find("made_by_user"), std::string::npos) << site.function;
  EXPECT_EQ(site.str(), site.file + ':' + std::to_string(kLineOfUser) + " (" + site.function + ')');
}

TEST(CallSite, NamesTheLineOfALambda) {
  const CallSites gather;
  const auto make = [] { return at::empty({100}); };
  const int line = __LINE__ - 1;
  const auto tensor = make();
  EXPECT_EQ(site_of(stack_of(tensor)).line, line);
}

TEST(CallSite, IsTheUsersFunctionWhereOnlyTheLibrariesHaveLines) {
  const auto result = testing::run_program("memory_lineless_probe", {});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "user::first_batch\n");
}

TEST(CallSite, NamesTheLineThatCalledBackward) {
  const auto weight = at::ones({8}).set_requires_grad(true);
  const auto loss = weight.mul(weight).sum();
  const CallSites gather;
  loss.backward();
  const int line = __LINE__ - 1;
  const auto site = site_of(stack_of(weight.grad()));
  EXPECT_EQ(file_name(site), "call_site_test.cpp");
  EXPECT_EQ(site.line, line) << site.str();
}

TEST(CallSite, IsGatheredInItsScopeOnly) {
  const auto before = made_by_user();
  uint32_t inside = 0;
  {
    const CallSites outer;
    { const CallSites inner; }
    inside = stack_of(made_by_user().clone());
    const auto tensor = made_by_user();
    inside = stack_of(tensor);
  }
  const auto after = made_by_user();
  EXPECT_EQ(stack_of(before), 0U);
  EXPECT_NE(inside, 0U);
  EXPECT_EQ(stack_of(after), 0U);
  EXPECT_EQ(capture_stack(), 0U);
  EXPECT_TRUE(frames_of(0).empty());
  EXPECT_TRUE(frames_of(~0U).empty());
  EXPECT_EQ(site_of(0).str(), "unknown");
}

TEST(CallSite, OfTheSameStackHasTheSameNumber) {
  const CallSites gather;
  std::vector<at::Tensor> kept;
  for (int i = 0; i < 3; ++i) kept.push_back(made_by_user());
  kept.push_back(made_by_user());
  EXPECT_EQ(stack_of(kept[0]), stack_of(kept[2]));
  EXPECT_NE(stack_of(kept[0]), stack_of(kept[3]));
  EXPECT_EQ(site_of(stack_of(kept[0])), site_of(stack_of(kept[3])));
  EXPECT_EQ(frames_of(stack_of(kept[0])).size(), frames_of(stack_of(kept[3])).size());
}

TEST(CallSite, IsKnownForEveryThread) {
  const CallSites gather;
  at::Tensor a, b;
  std::thread first([&] { a = made_by_user(); }), second([&] { b = made_by_user(); });
  first.join();
  second.join();
  EXPECT_EQ(site_of(stack_of(a)).line, kLineOfUser);
  EXPECT_EQ(site_of(stack_of(b)).line, kLineOfUser);
}

TEST(CallSite, PrintsWhatIsKnown) {
  EXPECT_EQ((CallSite{"f", "/a/b.cpp", 7}).str(), "/a/b.cpp:7 (f)");
  EXPECT_EQ((CallSite{"f", "", 0}).str(), "f");
  EXPECT_EQ((CallSite{"", "/a/b.cpp", 7}).str(), "/a/b.cpp:7");
}

}  // namespace
}  // namespace tare::memory
