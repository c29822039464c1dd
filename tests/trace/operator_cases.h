// Single operators and layers, each to be done for real and traced.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace tare::plan {

using at::Tensor;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct Case {
  std::string name{};
  std::function<void()> work{};
};

inline void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

/// A leaf that asks for its gradient.
inline at::Tensor in(at::IntArrayRef sizes) { return torch::rand(sizes).requires_grad_(); }

inline at::Tensor classes(at::IntArrayRef sizes) { return torch::zeros(sizes, torch::kLong); }

inline const std::vector<int64_t> kRows{7, 12}, kSeries{3, 5, 12}, kImages{2, 8, 6, 6},
    kVolumes{2, 3, 4, 4, 4};

/// With a gradient of its own memory.
inline void back(const at::Tensor& y) { y.backward(torch::rand_like(y)); }

class Cases {
 public:
  using Function = std::function<at::Tensor(at::Tensor)>;

  void add(std::string name, std::function<void()> work) {
    all_.push_back({std::move(name), std::move(work)});
  }
  /// Three cases: backward with a gradient of its own memory, with the expanded one that a sum
  /// gives, and forward alone.
  void function(const std::string& name, const std::vector<int64_t>& sizes, const Function& f) {
    add(name, [=] { back(f(in(sizes))); });
    add(name + "_of_a_sum", [=] { f(in(sizes)).sum().backward(); });
    add(name + "_without_gradient", [=] {
      const torch::NoGradGuard no_grad;
      const at::Tensor y = f(torch::rand(sizes));
    });
  }
  [[nodiscard]] const std::vector<Case>& all() const { return all_; }

 private:
  std::vector<Case> all_;
};

void add_elementwise(Cases& each);
void add_products(Cases& each);
void add_layers(Cases& each);
void add_recurrent(Cases& each);
void add_resizing(Cases& each);
void add_shapes(Cases& each);
void add_losses(Cases& each);

/// Returns the cases of all families.
const std::vector<Case>& all_cases();

}  // namespace tare::plan
