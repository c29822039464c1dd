// The marks by which a trace says where its events belong.
#pragma once

namespace tare::plan {

/// Names the mark with which a trace has an attempt at a training step begin.
inline constexpr const char* kAttemptBegins = "an attempt begins";
/// Names the mark with which the attempt ends.
inline constexpr const char* kAttemptEnds = "it ends";

/// Names the mark at which the allocator of a card returns the segments that hold nothing.
inline constexpr const char* kCacheReturned = "the cache is returned";

/// Names the mark from which on allocations come from the cache of the stream that is about to
/// record a step.
inline constexpr const char* kRecordPrepared = "a recorded step is prepared";
/// Names the mark from which on they are those of a recorded step, which keeps the memory.
inline constexpr const char* kRecordBegins = "a recorded step begins";
/// Names the mark with which the recorded step ends.
inline constexpr const char* kRecordEnds = "a recorded step ends";

}  // namespace tare::plan
