// Compares the devices of ranks, and says what prevents a direct exchange between them.
#include "tare/parallel/exchange_choice.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/parallel/where.h"

namespace tare::parallel {
namespace {

/// Returns the first ranks that share hardware; empty: each has its own.
std::vector<int64_t> sharing(const std::vector<RankPlace>& ranks) {
  std::map<std::pair<std::string, std::string>, std::vector<int64_t>> by_hardware;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    by_hardware[{ranks[rank].host, ranks[rank].hardware}].push_back(static_cast<int64_t>(rank));
  std::vector<int64_t> first;
  for (const auto& [hardware, some] : by_hardware)
    if (some.size() > 1 && (first.empty() || some.front() < first.front())) first = some;
  return first;
}

/// Returns what keeps `library` from connecting the ranks; empty: nothing does.
std::string obstacle(const std::vector<RankPlace>& ranks, const std::string& library) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankPlace& one = ranks[i];
    const std::string rank = "rank " + std::to_string(i);
    if (one.device == "cpu")
      return rank + " trains on the host, and " + library + " exchanges tensors of cards";
    if (one.library != library)
      return rank + " has no " + library + " for " + printable(one.device) +
             ": the library of its cards was built without it";
    if (one.hardware.empty())
      return "the driver does not say which card " + printable(one.device) + " of " + rank + " is";
  }
  const std::vector<int64_t> some = sharing(ranks);
  if (some.empty()) return {};
  const RankPlace& one = ranks[static_cast<size_t>(some.front())];
  return named(some) + " are on one card, " + printable(one.hardware) + " of " +
         printable(one.host) + ": " + library + " takes one rank per card";
}

}  // namespace

std::string named(const std::vector<int64_t>& ranks) {
  constexpr int kMost = 8;  // numbers, or spans of them
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t at = 0;
  for (int spans = 0; at < ranks.size() && spans < kMost; ++spans) {
    const size_t first = at++;
    while (at < ranks.size() && ranks[at] == ranks[at - 1] + 1) ++at;
    text += (spans > 0 ? ", " : "") + std::to_string(ranks[first]);
    if (at - first > 1) text += (at - first == 2 ? ", " : " to ") + std::to_string(ranks[at - 1]);
  }
  return at == ranks.size() ? text : text + " and " + std::to_string(ranks.size() - at) + " others";
}

ExchangeChoice choose_exchange(const std::vector<RankPlace>& ranks) {
  const std::string& wanted = ranks.front().backend;
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    if (ranks[rank].backend != wanted)
      throw ConfigError(kWhere, "rank " + std::to_string(rank) + " asks for the backend " +
                                    printable(ranks[rank].backend) + ", and rank 0 for " +
                                    printable(wanted) + ": start all ranks alike");
  if (wanted == "gloo") return {.direct = false, .why = "the backend gloo is asked for"};
  const std::string& library = wanted == "auto" ? ranks.front().library : wanted;
  if (library.empty()) return {.direct = false, .why = "rank 0 has no library for its device"};
  const std::string why = obstacle(ranks, library);
  if (why.empty()) return {.direct = true};
  if (wanted == "auto") return {.direct = false, .why = why};
  throw ConfigError(kWhere, why + "; take --backend gloo, or give each rank a card of its own");
}

std::string to_text(const RankPlace& place) {
  return nlohmann::json{place.backend, place.host, place.device, place.library, place.hardware}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankPlace parse_place(const std::string& text) {
  const auto all = nlohmann::json::parse(text).get<std::array<std::string, 5>>();
  return {
      .backend = all[0], .host = all[1], .device = all[2], .library = all[3], .hardware = all[4]};
}

}  // namespace tare::parallel
