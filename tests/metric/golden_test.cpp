// Every metric against the figures of scikit-learn in tests/golden/metrics.json.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tare/base/io.h"
#include "tare/metric/metric.h"

namespace tare {
namespace {

using at::Tensor;
using nlohmann::json;

// Outputs are float32, and the figures of scikit-learn are computed in float64.
constexpr double kGoldenTolerance = 1e-6;

json golden() { return json::parse(io::read_text(std::string(TARE_GOLDEN) + "/metrics.json")); }

void flatten(const json& value, std::vector<double>& into) {
  if (value.is_number()) return into.push_back(value.get<double>());
  for (const json& each : value) flatten(each, into);
}

/// Returns lists of lists as a tensor: of int64 where all numbers are.
Tensor tensor_of(const json& lists) {
  std::vector<int64_t> sizes;
  const json* part = &lists;
  for (; part->is_array(); part = &part->front()) sizes.push_back(std::ssize(*part));
  std::vector<double> numbers;
  flatten(lists, numbers);
  return at::tensor(numbers, at::kDouble)
      .view(sizes)
      .to(part->is_number_integer() ? at::kLong : at::kFloat);
}

Metric metric_of(const json& one) {
  const std::string name = one["metric"], options = one["options"];
  return metrics::from_text(options.empty() ? name : "{" + name + ": " + options + "}");
}

/// Returns the value over uneven batches, each in parts that are merged, as a validation does.
double in_parts(const Metric& metric, const Tensor& output, const Tensor& target) {
  MetricState all(metric);
  const MetricState fresh = all;
  all.expect(output.size(0));
  for (int64_t from = 0, size = 1; from < output.size(0); from += size, size = size % 17 + 4) {
    MetricState batch = fresh;
    const int64_t to = std::min(output.size(0), from + size), half = (from + to) / 2;
    for (const auto& [start, end] : {std::pair(from, half), std::pair(half, to)})
      if (start < end) batch.update(output.slice(0, start, end), target.slice(0, start, end));
    all.merge(batch);
  }
  return all.value();
}

TEST(GoldenMetrics, AreThoseOfScikitLearn) {
  const json numbers = golden();
  std::set<std::string> tested;
  for (const json& one : numbers["cases"]) {
    const json& data = numbers["inputs"][one["data"].get<std::string>()];
    const Tensor output = tensor_of(data["output"]), target = tensor_of(data["target"]);
    MetricState whole(metric_of(one));
    whole.update(output, target);
    const auto value = one["value"].get<double>();
    EXPECT_NEAR(whole.value(), value, kGoldenTolerance) << one;
    EXPECT_NEAR(in_parts(metric_of(one), output, target), value, kGoldenTolerance) << one;
    tested.insert(one["metric"]);
  }
  for (const auto& name : metric_names())
    EXPECT_TRUE(tested.contains(name) || name == "top_5_accuracy") << name;
}

// Far from 0 the squares alone would have lost the variance: 1e10 and a variance of 4.
TEST(GoldenMetrics, R2KeepsItsDigitsFarFromZero) {
  const json numbers = golden();
  const json& data = numbers["inputs"]["values"];
  const Tensor output = tensor_of(data["output"]).to(at::kDouble).slice(1, 0, 2),
               target = tensor_of(data["target"]).to(at::kDouble).slice(1, 0, 2);
  MetricState near("r2");
  near.update(output, target);
  EXPECT_NEAR(in_parts("r2", output.add(1e8), target.add(1e8)), near.value(), 1e-7);
}

}  // namespace
}  // namespace tare
