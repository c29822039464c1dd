// The streams of the stand-in. What the default stream is given is done at once. The others are
// late where STAND_IN_LAG is set: what is queued on them is done when something waits for it. Work
// that waits for other processes is done by a thread beside.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <future>

namespace stand_in {

/// How often an event is asked for before it is through: STAND_IN_LAG.
[[nodiscard]] int lag();

/// Names all that was queued on a stream up to some moment.
struct Place {
  cudaStream_t stream = nullptr;
  uint64_t count = 0;
  std::shared_future<void>
      beside{};  ///< of the last work of the stream that a thread does; or none
};

/// Does the work at once and returns its error, or, on a late stream, when somebody waits for it:
/// then an error is the last one of the thread that waits, as with the driver.
cudaError_t queue(cudaStream_t stream, std::function<cudaError_t()> work);
/// Does the work on a thread of its own, behind what such threads do for the stream already.
void run_beside(cudaStream_t stream, std::function<void()> work);
/// Whether a thread still does work that is before the place.
[[nodiscard]] bool is_running(const Place& place);
/// Counts a kernel, which is done at once, behind all that its stream was given before.
void note_launch(cudaStream_t stream);
/// Whether a late stream has not been told to wait for all that the default stream was given: it
/// might come first.
[[nodiscard]] bool is_early(cudaStream_t stream);
/// Returns the place behind all that is queued on a stream so far.
[[nodiscard]] Place place_on(cudaStream_t stream);
/// Whether all before the place is done.
[[nodiscard]] bool is_done(const Place& place);
/// Does what is queued before the place, and waits for threads, for a caller that waits.
void wait_for(const Place& place);
/// Lets what is queued on a stream from now on come behind the place. Where the default stream
/// waits, what is queued before the place is done at once. Waits for threads.
void wait_on(cudaStream_t stream, const Place& place);
/// Does what is queued on all streams.
void wait_for_all();

}  // namespace stand_in
