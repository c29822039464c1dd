// Reads what work allocated on the host, and extrapolates it to other sizes.
#include "tare/trace/allocation_trace.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tare/base/error.h"
#include "tare/memory/event_log.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/phase.h"
#include "tare/trace/blocks.h"

namespace tare::plan {
namespace {

using at::Tensor;

/// Returns what was allocated in the phase, freed or not, and which blocks hold the results.
AllocationTrace read(const memory::EventHistory& history, uint32_t phase,
                     const std::vector<Tensor>& results) {
  AllocationTrace work;
  std::unordered_map<uint64_t, size_t> births;  // by the allocator's number of the block: its step
  for (const memory::MemoryEvent& event : history.events) {
    if (event.allocated_in != phase) continue;
    if (event.kind == memory::EventKind::allocation) {
      births[event.block] = work.steps.size();
      work.steps.push_back({.block = births.size() - 1, .bytes = event.bytes});
    } else if (const auto at = births.find(event.block); at != births.end()) {
      work.steps.push_back({.block = work.steps[at->second].block});
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    work.results.push_back(Layout::of(results[i]));
    if (!results[i].defined()) continue;
    const auto block =
        std::ranges::find(history.alive, results[i].storage().data(), &memory::LiveBlock::data);
    if (block == history.alive.end()) continue;
    if (const auto at = births.find(block->sequence); at != births.end())
      work.steps[at->second].result = static_cast<int64_t>(i);
  }
  return work;
}

Tensor make(const Layout& layout, c10::DeviceType device) {
  return at::empty_strided(layout.sizes, layout.strides,
                           at::TensorOptions(layout.type).device(device));
}

}  // namespace

Layout Layout::of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

void append(std::vector<int64_t>& numbers, const std::vector<int64_t>& list) {
  numbers.push_back(static_cast<int64_t>(list.size()));
  numbers.insert(numbers.end(), list.begin(), list.end());
}

void append(std::vector<int64_t>& numbers, const Layout& layout) {
  append(numbers, layout.sizes);
  append(numbers, layout.strides);
  numbers.push_back(static_cast<int64_t>(layout.type));
}

AllocationTrace record(const std::function<std::vector<Tensor>()>& work, size_t capacity) {
  if (!memory::host_allocator::installed()) {
    throw StateError("plan.record", "without Tare's host allocator",
                     "let no other library replace LibTorch's allocator");
  }
  const OnTheHost on_the_host;
  // Distinguishes its blocks from those of threads in a phase of their own, such as loader workers.
  const memory::Phase phase("plan");
  const memory::EventLog log({.capacity = capacity});
  const std::vector<Tensor> results = work();
  const memory::EventHistory history = log.history();
  if (history.dropped > 0)
    throw StateError("plan.record", "in more than " + std::to_string(capacity) + " allocations",
                     "plan a smaller part");
  return read(history, memory::current_phase(), results);
}

bool same_steps(const AllocationTrace& a, const AllocationTrace& b) {
  return std::ranges::equal(a.steps, b.steps, [](const HostStep& x, const HostStep& y) {
    return x.block == y.block && x.result == y.result && (x.bytes > 0) == (y.bytes > 0);
  });
}

AllocationTrace extrapolate(const AllocationTrace& at_a, int64_t a, const AllocationTrace& at_b,
                            int64_t b, int64_t n) {
  AllocationTrace work = at_a;
  const auto affine = [=](int64_t x, int64_t y) { return x + (y - x) / (b - a) * (n - a); };
  for (size_t i = 0; i < work.steps.size(); ++i)
    work.steps[i].bytes = affine(at_a.steps[i].bytes, at_b.steps[i].bytes);
  for (size_t i = 0; i < work.results.size(); ++i) {
    auto& [sizes, strides, type] = work.results[i];
    for (size_t d = 0; d < sizes.size(); ++d) {
      sizes[d] = affine(sizes[d], at_b.results[i].sizes[d]);
      strides[d] = affine(strides[d], at_b.results[i].strides[d]);
    }
  }
  return work;
}

int64_t peak_above_results(const AllocationTrace& work) {
  std::unordered_map<size_t, int64_t> sizes;  // of the live blocks
  int64_t live = 0, peak = 0, results = 0;
  for (const HostStep& step : work.steps) {
    live += step.bytes > 0 ? step.bytes : -std::exchange(sizes[step.block], 0);
    if (step.bytes > 0) sizes[step.block] = step.bytes;
    if (step.result >= 0) results += step.bytes;
    peak = std::max(peak, live);
  }
  return std::max<int64_t>(peak - results, 0);
}

std::vector<Tensor> play(const AllocationTrace& work, std::vector<c10::DataPtr>& held,
                         c10::DeviceType device) {
  std::vector<Tensor> results(work.results.size());
  std::vector<c10::DataPtr> blocks;
  for (const auto& [block, bytes, result] : work.steps) {
    if (bytes == 0) {
      blocks[block].clear();
    } else if (result >= 0) {
      results[static_cast<size_t>(result)] =
          make(work.results[static_cast<size_t>(result)], device);
      blocks.emplace_back();
    } else {
      blocks.push_back(hold(bytes, device));
    }
  }
  for (auto& block : blocks) {
    if (block.get_context()) held.push_back(std::move(block));
  }
  return results;
}

}  // namespace tare::plan
