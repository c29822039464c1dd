// Probes: real fits of few samples, and their extrapolation to more samples.
#include "tare/plan/fit_probe.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/model/generators.h"
#include "tare/plan/no_budget.h"

namespace tare {
namespace {

using Point = plan::AffineTrace::Point;

/// The numbers that a probe varies: for the whole and the last batches of the training split, then
/// of the validation split, the samples and those in the smallest part, 0 where that is the batch.
/// Whole batches of the validation split have 0 samples where they are as large as the training
/// split's.
enum Number : size_t {
  kSamples,
  kPart,
  kRest,
  kRestPart,
  kValid,
  kValidPart,
  kValidRest,
  kValidRestPart,
  kNumbers
};

void put(Point& point, size_t at, const BatchShape& batch) {
  point[at] = batch.samples;
  point[at + 1] = batch.parts > 1 ? batch.smallest : 0;
}

Point point_of(const FitShape& shape) {
  Point point(kNumbers, 0);
  put(point, kSamples, shape.train.whole);
  put(point, kRest, shape.train.last);
  if (!shape.valid) return point;
  put(point, kValid, shape.valid->whole);
  put(point, kValidRest, shape.valid->last);
  if (point[kValid] == point[kSamples]) point[kValid] = 0;
  return point;
}

/// The most samples in a part of a probe; see small().
constexpr int64_t kLargestPart = 60;

BatchShape resized(BatchShape shape, int64_t samples, int64_t part) {
  shape.samples = samples;
  shape.smallest = part > 0 ? part : samples;
  return shape;
}

FitShape shape_at(FitShape shape, const Point& point) {
  // Fewer samples than each batch in parts has, and not so few that a last batch is skipped.
  shape.micro_batch = std::min({shape.micro_batch, kLargestPart, point[kSamples]});
  shape.train.whole = resized(shape.train.whole, point[kSamples], point[kPart]);
  shape.train.last = resized(shape.train.last, point[kRest], point[kRestPart]);
  if (!shape.valid) return shape;
  const int64_t whole = point[kValid] > 0 ? point[kValid] : point[kSamples];
  shape.valid->whole = resized(shape.valid->whole, whole, point[kValidPart]);
  shape.valid->last = resized(shape.valid->last, point[kValidRest], point[kValidRestPart]);
  return shape;
}

/// So few samples are probed as they are: kernels often change at a few, so that what was seen with
/// more says nothing of them.
constexpr int64_t kFew = 19;

/// Numbers of samples to probe with. A batch in parts has more samples than its parts that a trace
/// goes through, and a last batch fewer than the whole ones before it, at any two points. Products
/// of 16-bit types take scratch memory in tiles of 32 samples on some processors: with 40 samples
/// more than the first point the third one sees that.
Point small(const FitShape& shape, int64_t more) {
  static constexpr std::array<int64_t, kNumbers> kWhole{20, 0, 12, 0, 13, 0, 12, 0},
      kInParts{200, 20, 120, 12, 130, 13, 121, 12};
  Point point = point_of(shape);
  for (size_t i = 0; i < kNumbers; ++i) {
    const auto& base = point[i / 2 * 2 + 1] > 0 ? kInParts : kWhole;
    const int64_t step = i < kRest ? more : (more + 1) / 2;
    if (point[i] > kFew) point[i] = base[i] + step;
  }
  return point;
}

bool cut_alike(const BatchShape& a, const BatchShape& b) {
  return a.parts == b.parts && a.larger == b.larger && a.repeats == b.repeats;
}
bool cut_alike(const SplitShape& a, const SplitShape& b) {
  return a.count == b.count && a.ahead == b.ahead && cut_alike(a.whole, b.whole) &&
         cut_alike(a.last, b.last);
}

/// Whether a probe for one of them also predicts the other.
bool cut_alike(const FitShape& a, const FitShape& b) {
  const auto predicts = [](int64_t x, int64_t y) { return x == y || (x > kFew && y > kFew); };
  return a.validates_inside == b.validates_inside && cut_alike(a.train, b.train) &&
         a.valid.has_value() == b.valid.has_value() &&
         (!a.valid || cut_alike(*a.valid, *b.valid)) &&
         std::ranges::equal(point_of(a), point_of(b), predicts);
}

/// Returns the highest bytes alive at once in a trace.
int64_t peak_of(const plan::Trace& trace) {
  std::unordered_map<int64_t, int64_t> alive;
  int64_t now = 0, peak = 0;
  for (const plan::Event& event : trace.events) {
    int64_t& bytes = alive[event.block];
    now += event.bytes - bytes;
    bytes = event.bytes;
    peak = std::max(peak, now);
  }
  return peak;
}

int64_t free_bytes() { return memory::backend(c10::kCPU).memory_info().available_bytes; }

}  // namespace

// Weights, gradients and two states of an optimizer.
void require_memory_for(const PlanRequest& request) {
  int64_t bytes = 0;
  {
    const plan::MetaScope meta;
    const Model model = request.model();
    for (const auto& p : model.parameters())
      bytes += int64_t{4} * static_cast<int64_t>(p.tensor.nbytes());
  }
  const int64_t available = free_bytes();
  if (bytes > available / 2)
    throw plan::NotPlannable("a probe",
                             "would take " + format_bytes(bytes) + " and more of " +
                                 format_bytes(available) + " that are free here",
                             "plan where there is more memory");
}

FitProbe::FitProbe(const PlanRequest& request) : request_(request) { require_memory_for(request); }

FitProbe::Known FitProbe::probe(const FitShape& shape) const {
  Known known{.shape = shape};
  const auto at = [&](const Point& point) {
    FitTrace real = as_refused([&] { return trace_real_fit(request_, shape_at(shape, point)); });
    known.counted = real.counted;
    return std::move(real.trace);
  };
  const Point few = small(shape, 0), more = small(shape, 4), third = small(shape, 40);
  known.probed_bytes = peak_of(at(few));  // what the first one sets up must not count below
  try {
    known.trace.emplace(at, few, more, third);
  } catch (const plan::NotPlannable& error) {
    log::debug(std::string("the whole fit is probed: ") + error.what());
  }
  return known;
}

// The bytes of a fit are taken to rise at most with the square of the numbers of samples.
FitTrace FitProbe::whole_fit(const FitShape& shape, const Known& known) const {
  double times = 1;
  const Point few = small(shape, 0), point = point_of(shape);
  for (size_t i = 0; i < few.size(); ++i) {
    if (few[i] == 0) continue;
    times = std::max(times, static_cast<double>(point[i]) / static_cast<double>(few[i]));
  }
  const auto bytes = static_cast<int64_t>(times * times * static_cast<double>(known.probed_bytes));
  if (const int64_t available = free_bytes(); bytes > available / 2)
    throw plan::NotPlannable("a probe",
                             "takes memory that is not affine in the number of samples, and all of "
                             "them may take " +
                                 format_bytes(bytes) + " of " + format_bytes(available) +
                                 " that are free here",
                             "measure it by a run");
  return as_refused([&] { return trace_real_fit(request_, shape); });
}

FitTrace FitProbe::of(int64_t batch, const PartSizes& parts) {
  const GeneratorScope keep(c10::kCPU);
  const NoBudget unbounded;
  const FitShape shape = shape_of(request_, batch, parts);
  auto known =
      std::ranges::find_if(known_, [&](const Known& k) { return cut_alike(k.shape, shape); });
  if (known == known_.end()) {
    known_.push_back(probe(shape));
    known = std::prev(known_.end());
  }
  if (known->trace) {
    if (auto trace = known->trace->at(point_of(shape))) return {*std::move(trace), known->counted};
  }
  return whole_fit(shape, *known);
}

std::optional<std::string> refusal_of(const PlanRequest& given) {
  PlanRequest request = given;
  if (!request.on_host()) {
    request.options.precision = "fp32";
    request.options.graph = false;
  }
  request.machine = plan::Machine::host;
  const GeneratorScope keep(c10::kCPU);
  const NoBudget unbounded;
  const int64_t batch = request.options.batch;
  const FitShape shape = shape_of(request, batch, {batch, batch});
  std::optional<std::string> refused;
  try {
    require_memory_for(request);
    for (const FitShape& tried : {shape_at(shape, small(shape, 0)), shape}) {
      try {
        (void)trace_real_fit(request, tried);
        return std::nullopt;
      } catch (const ComputeError& error) {
        refused = error.what();
      }
    }
  } catch (const plan::NotPlannable& error) {
    log::debug(std::string("the fit is not tried: ") + error.what());
    return std::nullopt;
  } catch (const OutOfMemory& error) {
    log::debug(std::string("the fit is not tried whole: ") + error.what());
  }
  return refused;
}

}  // namespace tare
