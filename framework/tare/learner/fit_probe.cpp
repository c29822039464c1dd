#include "tare/learner/fit_probe.h"

#include <algorithm>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/memory/backend.h"
#include "tare/model/generators.h"

namespace tare {
namespace {

using Point = plan::AffineTrace::Point;

int64_t rest_of(const SplitShape& shape) { return shape.size % shape.batch; }

/// Samples in a whole batch and in the last one of the training split; in the only one of a
/// validation split that is smaller than a batch, or in its last one.
Point point_of(const FitShape& shape) {
  Point point{shape.train.batch, rest_of(shape.train), 0, 0};
  if (!shape.valid) return point;
  if (shape.valid->batch != shape.train.batch) point[2] = shape.valid->batch;
  point[3] = rest_of(*shape.valid);
  return point;
}

SplitShape resized(SplitShape shape, int64_t batch, int64_t rest) {
  shape.size = shape.size / shape.batch * batch + rest;
  shape.batch = batch;
  return shape;
}

FitShape shape_at(FitShape shape, const Point& point) {
  shape.train = resized(shape.train, point[0], point[1]);
  if (shape.valid)
    shape.valid = resized(*shape.valid, point[2] > 0 ? point[2] : point[0], point[3]);
  return shape;
}

/// So few samples are probed as they are: kernels often change at a few, so that what was seen with
/// more says nothing of them.
constexpr int64_t kFew = 19;

/// Numbers of samples to probe with: `whole` in whole batches, `rest` in the last. The rests are
/// below the wholes at any two points that are probed.
Point small(const FitShape& shape, int64_t whole, int64_t rest) {
  const auto given = [](int64_t wanted, int64_t now) { return now > kFew ? wanted : now; };
  const Point now = point_of(shape);
  return {given(whole, now[0]), given(rest, now[1]), given(rest + 1, now[2]), given(rest, now[3])};
}

bool same_parts(const SplitShape& a, const SplitShape& b) {
  return a.size / a.batch == b.size / b.batch && a.ahead == b.ahead;
}

/// Whether one's probe tells of the other.
bool same_parts(const FitShape& a, const FitShape& b) {
  const auto told = [](int64_t x, int64_t y) { return x == y || (x > kFew && y > kFew); };
  return same_parts(a.train, b.train) && a.valid.has_value() == b.valid.has_value() &&
         (!a.valid || same_parts(*a.valid, *b.valid)) &&
         std::ranges::equal(point_of(a), point_of(b), told);
}

}  // namespace

// Weights, gradients and two states of an optimizer.
void require_room(const FitSubject& subject) {
  int64_t bytes = 0;
  {
    const plan::MetaScope meta;
    const Model model = subject.model();
    for (const auto& p : model.parameters())
      bytes += int64_t{4} * static_cast<int64_t>(p.tensor.nbytes());
  }
  const int64_t available = memory::backend(c10::kCPU).memory_info().available_bytes;
  if (bytes > available / 2)
    throw plan::CannotTell("a probe",
                           "would take " + format_bytes(bytes) + " and more of " +
                               format_bytes(available) + " that are free here",
                           "plan where there is more memory");
}

FitProbe::FitProbe(const FitSubject& subject) : subject_(subject) { require_room(subject); }

FitProbe::Known FitProbe::probe(const FitShape& shape) const {
  const GeneratorScope keep(c10::kCPU);
  plan::Section counted;
  const auto at = [&](const Point& point) {
    FitTrace real = trace_real_fit(subject_, shape_at(shape, point));
    counted = real.counted;
    return std::move(real.trace);
  };
  const Point few = small(shape, 20, 12), more = small(shape, 24, 14), third = small(shape, 31, 17);
  (void)at(few);  // what the first one sets up must not count
  plan::AffineTrace trace(at, few, more, third);
  return {.shape = shape, .counted = counted, .trace = std::move(trace)};
}

FitTrace FitProbe::of(int64_t batch) {
  const FitShape shape = shape_of(subject_, batch);
  auto known =
      std::ranges::find_if(known_, [&](const Known& k) { return same_parts(k.shape, shape); });
  if (known == known_.end()) {
    known_.push_back(probe(shape));
    known = std::prev(known_.end());
  }
  return {known->trace.at(point_of(shape)), known->counted};
}

}  // namespace tare
