// Keeps what is queued on the late streams of the stand-in.
#include "streams.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "cards.h"
#include "graphs.h"

namespace stand_in {
namespace {

struct Queue {
  std::deque<std::function<cudaError_t()>> works;
  uint64_t done = 0;
  uint64_t behind = 0;  // so many works of the default stream
};

std::mutex mutex;
/// Works of the default stream where the others are late, and those that somebody has waited for.
uint64_t given = 0, settled = 0;
/// Never destroyed: streams are used until the last destructor of the process.
auto& queues = *new std::unordered_map<cudaStream_t, Queue>;
auto& threads = *new std::unordered_map<cudaStream_t, std::shared_future<void>>;

/// Waits for the threads, without the lock.
void wait_for_thread(const Place& place) {
  if (place.beside.valid()) place.beside.wait();
}

/// The default stream has no address but a number, or none.
bool is_late(cudaStream_t stream) {
  return lag() > 0 && reinterpret_cast<uintptr_t>(stream) > 2;  // cudaStreamPerThread
}

/// The lock must be held.
Place end_of(cudaStream_t stream) {
  if (!is_late(stream)) return {nullptr, given};
  const Queue& queue = queues[stream];
  return {stream, queue.done + queue.works.size()};
}

/// Work may wait for places of other streams, which are always earlier. The lock must be held.
void advance(const Place& place) {
  const auto found = queues.find(place.stream);
  if (found == queues.end()) return;
  Queue& queue = found->second;
  while (queue.done < place.count && !queue.works.empty()) {
    const auto work = std::move(queue.works.front());
    queue.works.pop_front();
    ++queue.done;
    static_cast<void>(work());
  }
}

}  // namespace

int lag() {
  static const auto questions = static_cast<int>(setting("STAND_IN_LAG", 0));
  return questions;
}

cudaError_t queue(cudaStream_t stream, std::function<cudaError_t()> work) {
  if (keep(stream, work)) return cudaSuccess;
  if (!is_late(stream)) {
    note_launch(stream);
    return work();
  }
  const std::lock_guard lock(mutex);
  queues[stream].works.push_back(std::move(work));
  return cudaSuccess;
}

void note_launch(cudaStream_t stream) {
  if (lag() == 0) return;
  const std::lock_guard lock(mutex);
  if (is_late(stream)) return advance(end_of(stream));
  ++given;
}

bool is_early(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  return is_late(stream) && std::max(queues[stream].behind, settled) < given;
}

Place place_on(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  Place place = end_of(stream);
  if (const auto found = threads.find(stream); found != threads.end()) place.beside = found->second;
  return place;
}

void run_beside(cudaStream_t stream, std::function<void()> work) {
  const Place before = place_on(stream);
  wait_for({before.stream, before.count});
  auto done = std::make_shared<std::promise<void>>();
  {
    const std::lock_guard lock(mutex);
    threads[stream] = done->get_future().share();
  }
  std::thread([before, done, work = std::move(work)] {
    wait_for_thread(before);
    work();
    done->set_value();
  }).detach();
}

bool is_running(const Place& place) {
  return place.beside.valid() &&
         place.beside.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

bool is_done(const Place& place) {
  const std::lock_guard lock(mutex);
  const auto found = queues.find(place.stream);
  return found == queues.end() || found->second.done >= place.count;
}

void wait_for(const Place& place) {
  wait_for_thread(place);
  const std::lock_guard lock(mutex);
  if (is_late(place.stream)) return advance(place);
  settled = std::max(settled, place.count);
}

void wait_on(cudaStream_t stream, const Place& place) {
  wait_for_thread(place);
  const std::lock_guard lock(mutex);
  if (!is_late(stream)) return advance(place);
  Queue& queue = queues[stream];
  if (!is_late(place.stream)) {
    queue.behind = std::max(queue.behind, place.count);
    return;
  }
  queue.behind = std::max(queue.behind, queues[place.stream].behind);
  queue.works.emplace_back([place] {
    advance(place);
    return cudaSuccess;
  });
}

void wait_for_all() {
  std::unique_lock lock(mutex);
  const auto running = threads;
  lock.unlock();
  for (const auto& [stream, done] : running) done.wait();
  lock.lock();
  for (const auto& [stream, queue] : queues) advance(end_of(stream));
  settled = given;
}

}  // namespace stand_in
