// Makes batches ahead in threads, and hands them out in order.
#include "tare/data/prefetch.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <utility>

#include "tare/memory/phase.h"

namespace tare {
namespace {

// at::set_num_threads() would change the number for the whole process; OpenMP's own call is for
// this thread only. It is looked up because the OpenMP library is LibTorch's, which has no header.
void use_one_thread() {
  (void)at::get_num_threads();  // LibTorch's first call in a thread sets the number and would undo
                                // ours
  using SetThreads = void (*)(int);
  static const auto set_threads =
      reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_threads) set_threads(1);
}

}  // namespace

Prefetch::Prefetch(std::function<Batch(int64_t)> make, int64_t begin, int64_t end, int64_t capacity)
    : make_(std::move(make)),
      places_(static_cast<size_t>(capacity)),
      given_(begin),
      taken_(begin),
      end_(end) {}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetch::run(int64_t workers) {
  threads_.reserve(static_cast<size_t>(workers));
  for (int64_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
}

Prefetch::Place& Prefetch::place(int64_t index) {
  return places_[static_cast<size_t>(index) % places_.size()];
}

bool Prefetch::may_make() const {
  return taken_ < end_ && taken_ - given_ < static_cast<int64_t>(places_.size());
}

void Prefetch::work() {
  use_one_thread();
  const memory::ThreadPhase phase(memory::PhaseKind::data);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || taken_ == end_ || may_make(); });
    if (stop_ || taken_ == end_) return;
    const int64_t index = taken_++;
    ++busy_;
    lock.unlock();
    Place made;
    try {
      made.batch = make_(index);
    } catch (...) {
      made.error = std::current_exception();
    }
    made.ready = true;
    lock.lock();
    place(index) = std::move(made);
    --busy_;
    ready_.notify_all();
  }
}

Batch Prefetch::next() {
  Place taken;
  {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return place(given_).ready; });
    taken = std::exchange(place(given_), {});
    ++given_;
  }
  changed_.notify_one();
  if (taken.error) std::rethrow_exception(taken.error);
  return std::move(taken.batch);
}

std::vector<Batch> Prefetch::settled() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [this] { return busy_ == 0 && !may_make(); });
  std::vector<Batch> batches;
  for (const Place& p : places_)
    if (p.ready && !p.error) batches.push_back(p.batch);
  return batches;
}

}  // namespace tare
