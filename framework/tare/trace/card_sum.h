// The buffers in which a card adds up the parts of long sums, and of other reductions. Internal.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "tare/memory/device_traits.h"
#include "tare/trace/trace_events.h"

namespace tare::plan {

/// Describes one dimension of a tensor that is added up.
struct SummedDim {
  int64_t size = 0;
  int64_t stride = 0;    ///< of the tensor, in elements
  bool is_gone = false;  ///< added up; else a dimension of the result, which has no gaps
};

/// Says in what the kernel of a reduction differs from that of a sum of float32.
struct ReductionForm {
  int64_t part_bytes = 4;  ///< of what is known of the elements so far
  int64_t vector = 4;      ///< elements that a thread reads at once
};

/// Returns how LibTorch lays out a sum, or another reduction, over the threads of a card; `dims`
/// are those of the tensor, outermost first, without an empty one. CardSum::event stays 0. The
/// rules are those of LibTorch 2.11 (ATen/native/cuda/Reduce.cuh, setReduceConfig).
[[nodiscard]] CardSum card_sum(std::vector<SummedDim> dims, const ReductionForm& form = {});

/// Gives the memory that a sum takes meanwhile, in bytes; 0: it needs no parts.
struct SumBuffers {
  int64_t parts = 0;
  int64_t semaphores = 0;
};
/// Returns the buffers of a sum on a card; none for a card whose multiprocessors are not known.
[[nodiscard]] SumBuffers buffers_of(const CardSum& sum, const memory::Multiprocessors& card);

}  // namespace tare::plan
