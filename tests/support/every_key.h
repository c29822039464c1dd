// The common part of the tests of every key of a recipe and of a sweep: another value changes what
// can be observed.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tare/config/registry.h"

namespace tare::testing {

/// A key with another value, and the settings of both files that make the key matter.
struct KeyRow {
  std::string setting{};            ///< "batch=16"
  std::vector<std::string> both{};  ///< settings of the file with the key and of that without it
};
using KeyRows = std::map<std::string, KeyRow>;

/// Returns "KIND.ENTRY.OPTION" for each option of the entries.
inline std::set<std::string> options_of(const std::string& kind,
                                        const std::vector<config::EntryInfo>& infos) {
  std::set<std::string> options;
  for (const auto& info : infos)
    for (const auto& option : info.defaults.entries)
      options.insert(kind + '.' + info.name + '.' + option.key);
  return options;
}

/// Expects that the setting of each row changes what is observed, or, where `may_be_refused`, that
/// it is refused. Refusals begin with "refused".
inline void expect_effects(
    const KeyRows& rows,
    const std::function<std::string(const std::vector<std::string>& settings)>& observed,
    const std::function<bool(const std::string& key)>& may_be_refused) {
  std::map<std::vector<std::string>, std::string> without;
  for (const auto& [key, row] : rows) {
    SCOPED_TRACE(key);
    const auto [place, is_new] = without.try_emplace(row.both);
    if (is_new) {
      place->second = observed(row.both);
      EXPECT_FALSE(place->second.starts_with("refused")) << place->second;
      EXPECT_EQ(place->second, observed(row.both)) << "what is without it is not repeatable";
    }
    std::vector<std::string> settings = row.both;
    settings.push_back(row.setting);
    const std::string with = observed(settings);
    EXPECT_NE(with, place->second) << row.setting << " changes nothing";
    if (!may_be_refused(key)) {
      EXPECT_FALSE(with.starts_with("refused")) << with;
    }
  }
}

}  // namespace tare::testing
