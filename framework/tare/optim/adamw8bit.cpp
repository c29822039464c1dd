// The optimizer AdamW with state of 8 bits: Dettmers et al., "8-bit Optimizers via Block-wise
// Quantization", ICLR 2022, with the dynamic tree quantization of its section 2.2. The moments of a
// small parameter stay float32.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/pow.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tare/memory/pinned_copy.h"
#include "tare/optim/adam.h"

namespace tare {
namespace {

using at::Tensor;

/// Options of `adamw8bit` alone.
struct AdamW8BitOptions {
  int64_t min_elements = 4096;  ///< a parameter with fewer has moments of float32, >= 0
};
void visit_fields(auto& visit, AdamW8BitOptions& o) {
  visit("min_elements", o.min_elements, config::at_least(0));
}

constexpr int64_t kCodes = 256;

/// Holds the numbers in [-1, 1] that a code may stand for, ascending, and between each two the
/// number from which on the upper one is nearer.
struct CodeBook {
  explicit CodeBook(bool is_signed) {
    constexpr int kDecades = 7;
    size_t next = 0;
    for (int decade = 0; decade < kDecades; ++decade) {
      const int count = 1 << (is_signed ? decade : decade + 1);
      for (int i = 0; i < count; ++i) {
        const double mean = 0.1 + 0.9 * (i + 0.5) / count;
        const auto value = static_cast<float>(mean * std::pow(10.0, decade + 1 - kDecades));
        values[next++] = value;
        if (is_signed) values[next++] = -value;
      }
    }
    values[next++] = 0;
    values[next] = 1;
    std::ranges::sort(values);
    for (size_t i = 0; i < middles.size(); ++i) middles[i] = (values[i] + values[i + 1]) / 2;
  }
  /// Returns the code of the nearest number; in the middle of two, that of the lower one.
  [[nodiscard]] uint8_t code(float value) const {
    size_t below = 0;  // a search without branches, which no processor could predict
    for (size_t step = 128; step > 0; step /= 2)
      below += middles[below + step - 1] < value ? step : 0;
    return static_cast<uint8_t>(below);
  }

  std::array<float, kCodes> values{};
  std::array<float, kCodes - 1> middles{};
};

const CodeBook& means() {
  static const CodeBook book(true);
  return book;
}
const CodeBook& squares() {
  static const CodeBook book(false);
  return book;
}

constexpr float kTiny = 1e-38F;  // a scale of 0 divides nothing
/// A mean square that is not 0 keeps the least number above 0: a step divides by its root.
constexpr uint8_t kLeast = 1;

/// The numbers of a step of one parameter.
struct Numbers {
  double lr, beta1, beta2, eps, decay, first_correction, second_correction;
};

/// Steps the elements of a block on the host; the moments are float32. Allocates nothing.
template <class Scalar>
void walk_block(const Numbers& n, Scalar* p, const Scalar* g, uint8_t* mean_codes,
                uint8_t* square_codes, float& mean_scale, float& square_scale, int64_t count) {
  using Number = at::opmath_type<Scalar>;
  const CodeBook &mean_book = means(), &square_book = squares();
  std::array<float, kStateBlock> mean{}, square{};
  const auto beta1 = static_cast<float>(n.beta1), rest1 = static_cast<float>(1 - n.beta1);
  const auto beta2 = static_cast<float>(n.beta2), rest2 = static_cast<float>(1 - n.beta2);
  const auto eps = static_cast<float>(n.eps);
  const auto rate = static_cast<float>(n.lr / n.first_correction);
  const auto root = static_cast<float>(std::sqrt(n.second_correction));
  const auto keep = static_cast<Number>(1 - n.lr * n.decay);
  float highest_mean = 0, highest_square = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto gradient = static_cast<float>(g[i]);
    mean[at] = mean_book.values[mean_codes[i]] * mean_scale * beta1 + rest1 * gradient;
    square[at] =
        square_book.values[square_codes[i]] * square_scale * beta2 + rest2 * gradient * gradient;
    // NaN stays: a comparison that asks for greater ones would drop it.
    const float size = std::abs(mean[at]);
    highest_mean = size <= highest_mean ? highest_mean : size;
    highest_square = square[at] <= highest_square ? highest_square : square[at];
    const float update = rate * (mean[at] / (std::sqrt(square[at]) / root + eps));
    p[i] = static_cast<Scalar>(static_cast<Number>(p[i]) * keep - static_cast<Number>(update));
  }
  mean_scale = highest_mean;
  square_scale = highest_square;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    mean_codes[i] = mean_book.code(mean[at] / std::max(mean_scale, kTiny));
    const uint8_t code = square_book.code(square[at] / std::max(square_scale, kTiny));
    square_codes[i] = std::max(code, square[at] > 0 ? kLeast : uint8_t{0});
  }
}

/// Returns the numbers of both code books, one behind the other.
const std::vector<float>& all_numbers() {
  static const std::vector<float> numbers = [] {
    std::vector<float> all;
    for (const CodeBook* const book : {&means(), &squares()}) {
      all.insert(all.end(), book->values.begin(), book->values.end());
      all.insert(all.end(), book->middles.begin(), book->middles.end());
    }
    return all;
  }();
  return numbers;
}

/// The code books on the device of a step with tensors; nothing waits for their copy.
struct Books {
  explicit Books(c10::Device device) {
    auto* const data = const_cast<float*>(all_numbers().data());  // NOLINT: it is read only
    const auto count = static_cast<int64_t>(all_numbers().size());
    const Tensor all = memory::pinned_copy(at::from_blob(data, {count}, at::kFloat), device);
    mean_values = all.narrow(0, 0, kCodes);
    mean_middles = all.narrow(0, kCodes, kCodes - 1);
    square_values = all.narrow(0, 2 * kCodes - 1, kCodes);
    square_middles = all.narrow(0, 3 * kCodes - 1, kCodes - 1);
  }
  Tensor mean_values, mean_middles, square_values, square_middles;
};

constexpr int64_t kChunk = kStateBlock * 16384;  // elements that a step with tensors takes at once

/// Returns `count` elements from `from` on, in the order of the memory.
Tensor run_of(const Tensor& tensor, int64_t from, int64_t count) {
  return tensor.as_strided({count}, {1}, tensor.storage_offset() + from);
}

/// Steps elements `from` to `from + count` of a parameter with tensors, on any device. `from` is a
/// multiple of kStateBlock.
void compute_chunk(const ParameterGroup& g, const Numbers& n, const Books& books,
                   const FusedLists& lists, size_t at, int64_t from, int64_t count) {
  const int64_t blocks = (count + kStateBlock - 1) / kStateBlock;
  const int64_t missing = blocks * kStateBlock - count;
  const auto in_blocks = [&](Tensor flat) {
    if (missing > 0) flat = at::constant_pad_nd(flat, {0, missing}, 0);
    return flat.view({blocks, kStateBlock});
  };
  const auto scales = [&](size_t which) {
    return lists.scales[which][at].narrow(0, from / kStateBlock, blocks);
  };
  const auto read = [&](size_t which, const Tensor& values) {
    const Tensor codes = run_of(lists.buffers[which][at], from, count).to(at::kInt);
    return in_blocks(values.index_select(0, codes)).mul(scales(which).unsqueeze(1));
  };
  const auto without = [](const Tensor& part) { return part.neg().add_(1); };
  const Tensor p = run_of(lists.parameters[at], from, count);
  const Tensor gradient = in_blocks(run_of(lists.gradients[at], from, count).to(at::kFloat));
  const Tensor mean = read(0, books.mean_values).mul_(n.beta1).add_(gradient, 1 - n.beta1);
  const Tensor square =
      read(1, books.square_values).mul_(n.beta2).addcmul_(gradient, gradient, 1 - n.beta2);
  const Tensor& step = lists.steps[at];
  const Tensor rate = without(at::pow(n.beta1, step)).reciprocal_().mul_(g.lr);
  const Tensor root = without(at::pow(n.beta2, step)).sqrt_();
  const Tensor update = mean.div(square.sqrt().div_(root).add_(n.eps)).mul_(rate);
  p.mul_(1 - n.lr * n.decay).sub_(update.flatten().narrow(0, 0, count).to(p.scalar_type()));
  const auto write = [&](size_t which, const Tensor& numbers, const Tensor& middles) {
    const Tensor highest = numbers.abs().amax(1);
    scales(which).copy_(highest);
    const Tensor shares = numbers.div(highest.clamp_min_(kTiny).unsqueeze(1));
    Tensor codes = at::bucketize(shares, middles, /*out_int32=*/true);
    if (which == 1) codes = codes.maximum(numbers.gt(0).to(at::kInt));
    run_of(lists.buffers[which][at], from, count).copy_(codes.flatten().narrow(0, 0, count));
  };
  write(0, mean, books.mean_middles);
  write(1, square, books.square_middles);
}

class AdamW8Bit final : public FusedOptimizer {
 public:
  AdamW8Bit(const OptimizerOptions& options, const AdamW8BitOptions& own,
            std::vector<ParameterGroup> groups, bool with_tensors)
      : FusedOptimizer(std::move(groups), adam_state()),
        min_elements_(own.min_elements),
        beta2_(beta2_of(options)),
        eps_(eps_of(options)),
        with_tensors_(with_tensors),
        wide_(adam_state()),
        narrow_(adam_state()) {
    narrow_.eight_bit = true;
  }
  [[nodiscard]] std::string kind() const override { return "adamw8bit"; }
  [[nodiscard]] bool steps_atomically() const override {
    return std::ranges::all_of(groups_, [this](const ParameterGroup& group) {
      return std::ranges::all_of(group.parameters, [this](const Parameter& p) {
        return !kept_of(p).eight_bit || !with_tensors_of(p.tensor);
      });
    });
  }

 protected:
  [[nodiscard]] const FusedState& kept_of(const Parameter& p) const override {
    return p.tensor.numel() < min_elements_ ? wide_ : narrow_;
  }
  [[nodiscard]] std::vector<FusedState> all_kept() const override { return {wide_, narrow_}; }

  void launch(const ParameterGroup& g, FusedLists& lists) override {
    if (lists.scales[0].empty())
      return step_adamw({g.lr, g.momentum, g.beta2.value_or(beta2_), eps_, g.weight_decay}, lists);
    const Tensor& first = lists.parameters.front();
    if (with_tensors_of(first)) return compute(g, lists);
    if (first.is_meta()) return;  // the plan of a step on the host, which allocates nothing
    for (size_t i = 0; i < lists.parameters.size(); ++i) walk(g, lists, i);
  }

 private:
  [[nodiscard]] bool with_tensors_of(const Tensor& tensor) const {
    return with_tensors_ || !(tensor.is_cpu() || tensor.is_meta());
  }
  [[nodiscard]] Numbers numbers(const ParameterGroup& g) const {
    return {.lr = g.lr,
            .beta1 = g.momentum,
            .beta2 = g.beta2.value_or(beta2_),
            .eps = eps_,
            .decay = g.weight_decay,
            .first_correction = 1,
            .second_correction = 1};
  }

  void walk(const ParameterGroup& g, const FusedLists& lists, size_t at) const {
    const double step = *lists.steps[at].const_data_ptr<float>();
    Numbers n = numbers(g);
    n.first_correction = 1 - std::pow(n.beta1, step);
    n.second_correction = 1 - std::pow(n.beta2, step);
    const Tensor& parameter = lists.parameters[at];
    auto* mean_codes = lists.buffers[0][at].mutable_data_ptr<uint8_t>();
    auto* square_codes = lists.buffers[1][at].mutable_data_ptr<uint8_t>();
    auto* mean_scales = lists.scales[0][at].mutable_data_ptr<float>();
    auto* square_scales = lists.scales[1][at].mutable_data_ptr<float>();
    constexpr int64_t kGrain = 64;  // blocks for each thread at least
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, parameter.scalar_type(), "optimizer.step", [&] {
          auto* p = parameter.mutable_data_ptr<scalar_t>();
          const auto* gradient = lists.gradients[at].const_data_ptr<scalar_t>();
          at::parallel_for(0, lists.scales[0][at].numel(), kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t block = begin; block < end; ++block) {
              const int64_t from = block * kStateBlock;
              walk_block(n, p + from, gradient + from, mean_codes + from, square_codes + from,
                         mean_scales[block], square_scales[block],
                         std::min(kStateBlock, parameter.numel() - from));
            }
          });
        });
  }

  void compute(const ParameterGroup& g, const FusedLists& lists) const {
    const Books books(lists.parameters.front().device());
    for (size_t i = 0; i < lists.parameters.size(); ++i)
      for (int64_t from = 0; from < lists.parameters[i].numel(); from += kChunk)
        compute_chunk(g, numbers(g), books, lists, i, from,
                      std::min(kChunk, lists.parameters[i].numel() - from));
  }

  int64_t min_elements_;
  double beta2_, eps_;
  bool with_tensors_;
  FusedState wide_, narrow_;
};

}  // namespace

namespace optimizers {
void add_adamw8bit(Registry& all) {
  all.add<AdamW8BitOptions>(
      "adamw8bit", "steps as AdamW, with moments of 8 bits", [](const AdamW8BitOptions& own) {
        return OptimizerKind{.momentum = 0.9,
                             .beta2 = 0.999,
                             .eps = 1e-8,
                             .weight_decay = true,
                             .make = [own](const OptimizerOptions& options,
                                           std::vector<ParameterGroup> groups, bool with_tensors) {
                               return std::make_unique<AdamW8Bit>(options, own, std::move(groups),
                                                                  with_tensors);
                             }};
      });
}
}  // namespace optimizers

}  // namespace tare
