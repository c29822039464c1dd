// The category of each block of a history.
#include "tare/memory/block_categories.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "memory/bytes_of.h"
#include "tare/memory/event_log.h"
#include "tare/memory/phase.h"

namespace tare::memory {
namespace {

using tare::testing::bytes_of;

/// Allocated in `born`, freed in `died` or, if that is unset, never.
std::string category(uint32_t born, std::optional<uint32_t> died) {
  EventHistory history;
  history.events = {{0, 8, 1, born, born, EventKind::allocation}};
  if (died) history.events.push_back({0, 8, 1, *died, born, EventKind::free});
  if (!died) history.alive = {{nullptr, 8, 1, born, 0}};
  assign_categories(history, {});
  return category_name(history, 1);
}

TEST(BlockCategories, GoByThePhasesOfBirthAndDeath) {
  const auto id = [](PhaseKind kind) { return static_cast<uint32_t>(kind); };
  const auto forward = id(PhaseKind::forward), backward = id(PhaseKind::backward),
             step = id(PhaseKind::step), data = id(PhaseKind::data);
  EXPECT_EQ(category(data, step), "batch");
  EXPECT_EQ(category(forward, backward), "activations");
  EXPECT_EQ(category(forward, {}), "activations");
  EXPECT_EQ(category(forward, forward), "workspace");
  EXPECT_EQ(category(backward, step), "gradients");
  EXPECT_EQ(category(backward, backward), "workspace");
  EXPECT_EQ(category(step, step), "workspace");
  EXPECT_EQ(category(id(PhaseKind::validate), {}), "workspace");
  EXPECT_EQ(category(0, 0), "unknown");
  EXPECT_EQ(category(phase_id("of my own"), {}), "unknown");
}

TEST(BlockCategories, WhatALibraryKeepsIsWorkspaceWhereverItWasAllocated) {
  const auto forward = static_cast<uint32_t>(PhaseKind::forward);
  EventHistory history;
  history.events = {{0, 8, 1, forward, forward, EventKind::allocation},
                    {0, 8, 2, forward, 0, EventKind::allocation},
                    {1, 8, 2, forward, 0, EventKind::free, /*library_workspace=*/true}};
  history.alive = {{nullptr, 8, 1, forward, 0, 0, /*library_workspace=*/true}};
  assign_categories(history, {});
  EXPECT_STREQ(category_name(history, 1), "workspace") << "alive";
  EXPECT_STREQ(category_name(history, 2), "workspace") << "freed";
}

TEST(BlockCategories, OfALedgerComeFirst) {
  const EventLog log;
  const Phase forward(PhaseKind::forward);
  const auto weight = bytes_of(100);
  auto other = bytes_of(50);
  Ledger ledger;
  ledger.add(Category::parameters, "weight", weight);
  const auto known = categories_now(c10::kCPU, ledger);
  EXPECT_EQ(known.size(), 1U);
  other.reset();
  auto history = log.history();
  assign_categories(history, known);
  EXPECT_STREQ(category_name(history, history.events[0].block), "parameters");
  EXPECT_STREQ(category_name(history, history.events[1].block), "workspace");
  EXPECT_STREQ(category_name(history, 0), "unknown");
}

}  // namespace
}  // namespace tare::memory
