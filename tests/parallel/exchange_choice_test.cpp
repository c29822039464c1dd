// Tests the choice of what exchanges the tensors of the ranks' devices.
#include "tare/parallel/exchange_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/outcome.h"

namespace tare::parallel {
namespace {

using ::testing::HasSubstr;
using testing::outcome_of;

RankPlace place(int64_t card, const std::string& host = "n1") {
  return {.backend = "auto",
          .host = host,
          .device = "cuda:" + std::to_string(card),
          .library = "nccl",
          .hardware = "0000:0" + std::to_string(card + 1) + ":00.0"};
}

std::vector<RankPlace> with(std::vector<RankPlace> all, const std::string& backend) {
  for (RankPlace& one : all) one.backend = backend;
  return all;
}

std::string refusal(const std::vector<RankPlace>& all) {
  return outcome_of([&] { (void)choose_exchange(all); });
}

TEST(ExchangeChoice, IsDirectWhereEachRankHasItsOwnCard) {
  EXPECT_TRUE(choose_exchange({place(0)}).direct);
  EXPECT_TRUE(choose_exchange({place(0), place(1)}).direct);
  EXPECT_TRUE(choose_exchange({place(0), place(0, "n2")}).direct);
  EXPECT_TRUE(choose_exchange(with({place(0), place(1)}, "nccl")).direct);
  EXPECT_FALSE(choose_exchange(with({place(0), place(1)}, "gloo")).direct);
}

TEST(ExchangeChoice, GoesThroughTheHostWhereItIsNot) {
  const auto shared = choose_exchange({place(0), place(1), place(1), place(0)});
  EXPECT_FALSE(shared.direct);
  EXPECT_EQ(shared.why,
            "ranks 0, 3 are on one card, 0000:01:00.0 of n1: nccl takes one rank per "
            "card");
  RankPlace host = place(1);
  host.device = "cpu";
  host.library = host.hardware = "";
  EXPECT_FALSE(choose_exchange({place(0), host}).direct);
  EXPECT_FALSE(choose_exchange({host, place(0)}).direct);
  RankPlace without = place(1);
  without.library = "";
  EXPECT_FALSE(choose_exchange({place(0), without}).direct);
  RankPlace unknown = place(1);
  unknown.hardware = "";
  EXPECT_FALSE(choose_exchange({place(0), unknown}).direct);
}

TEST(ExchangeChoice, RefusesALibraryThatCannotConnectTheRanks) {
  EXPECT_THAT(refusal(with({place(0), place(0)}, "nccl")),
              HasSubstr("ranks 0, 1 are on one card, 0000:01:00.0 of n1: nccl takes one rank per "
                        "card; take --backend gloo, or give each rank a card of its own"));
  RankPlace host{.backend = "nccl", .host = "n1", .device = "cpu"};
  EXPECT_THAT(refusal({host}), HasSubstr("rank 0 trains on the host"));
  RankPlace without = with({place(1)}, "nccl").front();
  without.library = "";
  EXPECT_THAT(refusal({with({place(0)}, "nccl").front(), without}),
              HasSubstr("rank 1 has no nccl for cuda:1"));
  EXPECT_THAT(refusal({place(0), with({place(1)}, "gloo").front()}),
              HasSubstr("rank 1 asks for the backend gloo, and rank 0 for auto"));
}

TEST(ExchangeChoice, ComesBackFromItsText) {
  const RankPlace one = parse_place(to_text(place(1, "a \"name\"")));
  EXPECT_EQ(one.backend, "auto");
  EXPECT_EQ(one.host, "a \"name\"");
  EXPECT_EQ(one.device, "cuda:1");
  EXPECT_EQ(one.library, "nccl");
  EXPECT_EQ(one.hardware, "0000:02:00.0");
}

}  // namespace
}  // namespace tare::parallel
