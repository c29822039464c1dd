// Operators beyond the cases of traces, and operators of 16-bit types, give on a card the numbers
// of the host in float32, in the forward and the backward pass: linear algebra, Fourier transforms,
// results whose size depends on values, attention by each kernel, recurrent cells, kernels in place
// of cuDNN's.
#include <ATen/SDPBackend.h>

#include <optional>

#include "trace/on_card.h"
#include "trace/operator_cases.h"

namespace tare::plan {
namespace {

using Inputs = std::vector<Tensor>;
using Sizes = std::vector<std::vector<int64_t>>;

struct Numeric {
  std::string name{};
  Sizes sizes{};  ///< of inputs, which are normal
  std::function<Tensor(const Inputs&)> compute{};
  c10::ScalarType type = at::kFloat;
  bool by_cudnn = true;
  std::optional<at::SDPBackend> attention{};  ///< the card's only kernel of attention
};
void PrintTo(const Numeric& each, std::ostream* out) { *out << each.name; }

using Numerics = std::vector<Numeric>;

/// In float32 and in both 16-bit types.
void add_narrow(Numerics& all, const Numeric& each) {
  all.push_back(each);
  for (const auto& [type, name] : {std::pair{at::kHalf, "_half"}, {at::kBFloat16, "_bfloat16"}}) {
    all.push_back(each);
    all.back().type = type;
    all.back().name += name;
  }
}

/// Whole numbers on the device of a tensor.
Tensor whole(const Tensor& like, std::vector<int64_t> values) {
  return torch::tensor(values, like.device());
}
/// A well-conditioned symmetric matrix.
Tensor definite(const Tensor& t) {
  return t.matmul(t.mT()) + t.size(-1) * torch::eye(t.size(-1), t.options());
}
/// The real and the imaginary parts.
Tensor parts(const Tensor& t) { return at::view_as_real(t.resolve_conj()); }

void add_linear_algebra(Numerics& all) {
  const Sizes square{{5, 5}}, squares{{2, 4, 4}}, tall{{6, 3}}, system{{5, 5}, {5, 2}};
  const auto add = [&](const char* name, const Sizes& sizes, const auto& compute) {
    all.push_back({name, sizes, compute});
  };
  add("inverse", squares, [](const Inputs& t) { return at::linalg_inv(definite(t[0])); });
  add("det", squares, [](const Inputs& t) { return at::linalg_det(t[0]); });
  add("slogdet", square, [](const Inputs& t) { return std::get<1>(at::linalg_slogdet(t[0])); });
  add("cholesky", squares, [](const Inputs& t) { return at::linalg_cholesky(definite(t[0])); });
  add("cholesky_solve", system, [](const Inputs& t) {
    return at::cholesky_solve(t[1], at::linalg_cholesky(definite(t[0])));
  });
  add("cholesky_inverse", square,
      [](const Inputs& t) { return at::cholesky_inverse(at::linalg_cholesky(definite(t[0]))); });
  add("solve", system, [](const Inputs& t) { return at::linalg_solve(definite(t[0]), t[1]); });
  add("solve_triangular", system, [](const Inputs& t) {
    return at::linalg_solve_triangular(definite(t[0]).tril(), t[1], /*upper=*/false);
  });
  add("triangular_solve", system, [](const Inputs& t) {
    return std::get<0>(at::triangular_solve(t[1], definite(t[0]).triu()));
  });
  add("lstsq", {{6, 3}, {6, 2}},
      [](const Inputs& t) { return std::get<0>(at::linalg_lstsq(t[0], t[1])); });
  add("qr", tall, [](const Inputs& t) { return std::get<1>(at::linalg_qr(t[0])).abs(); });
  add("svdvals", tall, [](const Inputs& t) { return at::linalg_svdvals(t[0]); });
  add("svd", tall, [](const Inputs& t) {  // vectors have any sign
    const auto [u, s, v] = at::linalg_svd(t[0], /*full_matrices=*/false);
    return (u * s.square()).matmul(v);
  });
  add("eigvalsh", square, [](const Inputs& t) { return at::linalg_eigvalsh(definite(t[0])); });
  add("eigh", square, [](const Inputs& t) {
    const auto [w, v] = at::linalg_eigh(definite(t[0]));
    return (v * w.log()).matmul(v.mT());
  });
  add("eigvals", square, [](const Inputs& t) { return at::linalg_eigvals(t[0]).abs().sum(); });
  add("eig", square,
      [](const Inputs& t) { return std::get<0>(at::linalg_eig(t[0])).abs().square().sum(); });
  add("pinv", tall, [](const Inputs& t) { return at::linalg_pinv(t[0]); });
  add("matrix_exp", squares, [](const Inputs& t) { return at::linalg_matrix_exp(t[0] * 0.3); });
  add("matrix_power", square, [](const Inputs& t) { return at::linalg_matrix_power(t[0], 3); });
  add("nuclear_norm", tall, [](const Inputs& t) { return at::linalg_matrix_norm(t[0], "nuc"); });
  add("lu_factor", square,
      [](const Inputs& t) { return std::get<0>(at::linalg_lu_factor(definite(t[0]))); });
  add("lu_solve", system, [](const Inputs& t) {
    const auto [lu, pivots] = at::linalg_lu_factor(definite(t[0]));
    return at::linalg_lu_solve(lu, pivots, t[1]);
  });
  add("ldl_factor", square,
      [](const Inputs& t) { return std::get<0>(at::linalg_ldl_factor(definite(t[0].detach()))); });
  add("householder_product", tall, [](const Inputs& t) {
    const auto [a, tau] = at::geqrf(t[0].detach());
    return at::linalg_householder_product(a, tau).abs();
  });
  add("ormqr", {{6, 3}, {6, 2}}, [](const Inputs& t) {
    const auto [a, tau] = at::geqrf(t[0].detach());
    return at::ormqr(a, tau, t[1].detach()).abs();
  });
}

void add_fourier(Numerics& all) {
  const auto add = [&](const char* name, const auto& compute) {
    all.push_back({name, {{3, 6, 8}}, compute});
  };
  add("fft", [](const Inputs& t) { return parts(at::fft_fft(t[0])); });
  add("ifft", [](const Inputs& t) { return parts(at::fft_ifft(t[0])); });
  add("rfft", [](const Inputs& t) { return parts(at::fft_rfft(t[0])); });
  add("irfft", [](const Inputs& t) { return at::fft_irfft(at::fft_rfft(t[0])); });
  add("fft2", [](const Inputs& t) { return parts(at::fft_fft2(t[0])); });
  add("irfft2", [](const Inputs& t) { return at::fft_irfft2(at::fft_rfft2(t[0])); });
  add("fftn", [](const Inputs& t) { return parts(at::fft_fftn(t[0])); });
  add("hfft", [](const Inputs& t) { return at::fft_hfft(at::fft_ihfft(t[0])); });
  add("stft", [](const Inputs& t) {
    const Tensor window = torch::ones({8}, t[0].options().requires_grad(false));
    return parts(at::stft(t[0].flatten(), 8, 4, 8, window, false, true, true));
  });
}

void add_sized_by_values(Numerics& all) {
  const auto add = [&](const char* name, const auto& compute) {
    all.push_back({name, {{6, 8}}, compute});
  };
  const auto groups = [](const Tensor& t) { return whole(t, {3, 1, 3, 3, 2, 2, 1, 0}); };
  add("nonzero", [](const Inputs& t) { return (t[0] > 0).nonzero(); });
  add("nonzero_static", [](const Inputs& t) { return at::nonzero_static(t[0] > 0, 50); });
  add("argwhere", [](const Inputs& t) { return at::argwhere(t[0] > 0); });
  add("count_nonzero",
      [](const Inputs& t) { return (t[0] > 0).count_nonzero(std::optional<int64_t>(1)); });
  add("masked_select", [](const Inputs& t) { return t[0].masked_select(t[0] > 0.5); });
  add("masked_scatter",
      [](const Inputs& t) { return t[0].masked_scatter(t[0] > 0.5, t[0].flatten().flip(0)); });
  add("index_by_mask", [](const Inputs& t) { return t[0].index({t[0] < 0}); });
  add("index_put_by_mask", [](const Inputs& t) { return t[0].index_put({t[0] < 0}, t[0].sum()); });
  add("unique", [=](const Inputs& t) { return std::get<0>(at::_unique2(groups(t[0]), true)); });
  add("unique_inverse",
      [=](const Inputs& t) { return std::get<1>(at::_unique2(groups(t[0]), true, true)); });
  add("unique_counts",
      [=](const Inputs& t) { return std::get<2>(at::_unique2(groups(t[0]), true, true, true)); });
  add("unique_dim", [](const Inputs& t) {
    return std::get<0>(at::unique_dim(torch::cat({t[0], t[0]}).detach(), 0));
  });
  add("unique_consecutive",
      [=](const Inputs& t) { return std::get<0>(at::unique_consecutive(groups(t[0]))); });
  add("unique_dim_consecutive", [](const Inputs& t) {
    return std::get<0>(at::unique_dim_consecutive(t[0].detach().repeat_interleave(2, 0), 0));
  });
  add("bincount", [=](const Inputs& t) { return groups(t[0]).bincount(); });
  add("histc", [](const Inputs& t) { return t[0].detach().histc(7, -2, 2); });
  add("repeat_interleave",
      [=](const Inputs& t) { return t[0].repeat_interleave(groups(t[0]).slice(0, 0, 6), 0); });
  add("searchsorted", [](const Inputs& t) {
    return at::searchsorted(std::get<0>(t[0].detach().sort(1)), t[0].detach());
  });
}

void add_ctc(Numerics& all) {
  const auto add = [&](const char* name, const auto& compute) {
    all.push_back({name, {{8, 2, 5}}, compute});
  };
  const std::vector<int64_t> steps{8, 7}, length{2, 3};
  const auto padded = [](const Tensor& t) { return whole(t, {1, 2, 0, 1, 3, 3}).view({2, 3}); };
  add("ctc", [=](const Inputs& t) {
    return at::ctc_loss(t[0].log_softmax(2), padded(t[0]), steps, length);
  });
  add("ctc_of_concatenated_targets", [=](const Inputs& t) {
    return at::ctc_loss(t[0].log_softmax(2), whole(t[0], {1, 2, 1, 3, 3}), steps, length, 0, 0);
  });
  add("ctc_without_a_path", [=](const Inputs& t) {
    return at::ctc_loss(t[0].log_softmax(2), padded(t[0]), {8, 2}, length, 0, 1, true);
  });
}

void add_attention(Numerics& all) {
  const Sizes heads{{2, 4, 9, 8}, {2, 4, 9, 8}, {2, 4, 9, 8}};
  const auto plain = [](const Inputs& t) {
    return at::scaled_dot_product_attention(t[0], t[1], t[2]);
  };
  const auto causal = [](const Inputs& t) {
    return at::scaled_dot_product_attention(t[0], t[1], t[2], {}, 0, true);
  };
  const auto biased = [](const Inputs& t) {
    return at::scaled_dot_product_attention(t[0], t[1], t[2], t[3]);
  };
  const auto masked = [](const Inputs& t) {
    const Tensor mask = torch::ones({9, 9}, t[0].options().requires_grad(false)).tril().log();
    return at::scaled_dot_product_attention(t[0], t[1], t[2], mask);
  };
  Sizes with_bias = heads, with_wide_values = heads;
  with_bias.push_back({2, 4, 9, 9});
  with_wide_values[2].back() = 16;
  using Kernel = at::SDPBackend;
  for (const auto& [kernel, name] : {std::pair{Kernel::math, "attention_by_products"},
                                     {Kernel::efficient_attention, "efficient_attention"},
                                     {Kernel::flash_attention, "flash_attention"},
                                     {Kernel::cudnn_attention, "cudnn_attention"}}) {
    const auto add = [&, kernel = kernel, name = name](const char* form, const Sizes& sizes,
                                                       const auto& compute) {
      Numerics made;
      add_narrow(made, {name + std::string(form), sizes, compute, at::kFloat, true, kernel});
      const bool is_narrow = kernel == Kernel::flash_attention || kernel == Kernel::cudnn_attention;
      all.insert(all.end(), made.begin() + is_narrow, made.end());
    };
    add("", heads, plain);
    add("_causal", heads, causal);
    if (kernel == Kernel::flash_attention) continue;
    add("_masked", heads, masked);
    if (kernel == Kernel::cudnn_attention) continue;
    add("_biased", with_bias, biased);
    add("_of_wide_values", with_wide_values, plain);
  }
}

void add_recurrent_cells(Numerics& all) {
  const auto sizes = [](int64_t gates) {
    return Sizes{{2, 4}, {2, 3}, {2, 3}, {gates, 4}, {gates, 3}, {gates}, {gates}};
  };
  add_narrow(all, {"lstm_cell", sizes(12), [](const Inputs& t) {
                     const auto [h, c] = at::lstm_cell(t[0], {t[1], t[2]}, t[3], t[4], t[5], t[6]);
                     return torch::cat({h, c}, 1);
                   }});
  add_narrow(all, {"lstm_cell_without_bias", sizes(12), [](const Inputs& t) {
                     return std::get<0>(at::lstm_cell(t[0], {t[1], t[2]}, t[3], t[4]));
                   }});
  add_narrow(all, {"gru_cell", sizes(9), [](const Inputs& t) {
                     return at::gru_cell(t[0], t[1], t[3], t[4], t[5], t[6]);
                   }});
  add_narrow(all, {"rnn_cell", sizes(3), [](const Inputs& t) {
                     return at::rnn_tanh_cell(t[0], t[1], t[3], t[4], t[5], t[6]);
                   }});
  const auto layer = [](int64_t gates) {
    return Sizes{{5, 2, 4}, {1, 2, 3}, {1, 2, 3}, {gates, 4}, {gates, 3}, {gates}, {gates}};
  };
  for (const bool by_cudnn : {true, false}) {
    const std::string how = by_cudnn ? "" : "_without_cudnn";
    const auto add = [&](const char* name, int64_t gates, const auto& compute) {
      add_narrow(all, {name + how, layer(gates), compute, at::kFloat, by_cudnn});
    };
    add("lstm", 12, [](const Inputs& t) {
      return std::get<0>(
          at::lstm(t[0], {t[1], t[2]}, {t[3], t[4], t[5], t[6]}, true, 1, 0, true, false, false));
    });
    add("gru", 9, [](const Inputs& t) {
      return std::get<0>(
          at::gru(t[0], t[1], {t[3], t[4], t[5], t[6]}, true, 1, 0, true, false, false));
    });
  }
}

void add_narrow_layers(Numerics& all) {
  const Sizes images{{4, 6, 8, 8}};
  const auto add = [&](const char* name, const Sizes& sizes, const auto& compute) {
    add_narrow(all, {name, sizes, compute});
  };
  add("product", {{6, 8}, {8, 5}}, [](const Inputs& t) { return t[0].mm(t[1]); });
  add("batched_product", {{3, 4, 5}, {3, 5, 6}}, [](const Inputs& t) { return t[0].bmm(t[1]); });
  add("linear", {{2, 7, 16}, {5, 16}, {5}},
      [](const Inputs& t) { return F::linear(t[0], t[1], t[2]); });
  add("softmax", {{6, 8}}, [](const Inputs& t) { return t[0].softmax(1); });
  add("gelu", {{6, 8}}, [](const Inputs& t) { return F::gelu(t[0]); });
  add("mean", {{6, 8}}, [](const Inputs& t) { return t[0].mean(1); });
  add("variance", {{6, 8}}, [](const Inputs& t) { return t[0].var(1); });
  add("layer_norm", {{6, 8}, {8}, {8}},
      [](const Inputs& t) { return at::layer_norm(t[0], {8}, t[1], t[2]); });
  add("group_norm", images, [](const Inputs& t) { return at::group_norm(t[0], 3); });
  add("batch_norm", images,
      [](const Inputs& t) { return at::batch_norm(t[0], {}, {}, {}, {}, true, 0.1, 1e-5, true); });
  add("convolution", {{4, 6, 8, 8}, {4, 6, 3, 3}},
      [](const Inputs& t) { return torch::conv2d(t[0], t[1]) / 8; });
  add("embedding_bag", {{6, 8}}, [](const Inputs& t) {
    return std::get<0>(
        at::embedding_bag(t[0], whole(t[0], {0, 5, 2, 2, 3, 1}), whole(t[0], {0, 4})));
  });
  add("cross_entropy", {{6, 8}}, [](const Inputs& t) {
    return F::cross_entropy(t[0], whole(t[0], {0, 7, 3, 1, 3, 2}),
                            F::CrossEntropyFuncOptions().label_smoothing(0.1).ignore_index(3));
  });
}

void add_without_cudnn(Numerics& all) {
  const auto add = [&](const char* name, const Sizes& sizes, const auto& compute) {
    all.push_back({name, sizes, compute, at::kFloat, /*by_cudnn=*/false});
  };
  add("convolution_without_cudnn", {{4, 3, 9, 9}, {6, 3, 3, 3}, {6}},
      [](const Inputs& t) { return torch::conv2d(t[0], t[1], t[2], 2, 1); });
  add("depthwise_without_cudnn", {{2, 6, 9, 9}, {6, 1, 3, 3}, {6}},
      [](const Inputs& t) { return torch::conv2d(t[0], t[1], t[2], 1, 1, 1, 6); });
  add("dilated_without_cudnn", {{2, 3, 9, 9}, {4, 3, 3, 3}, {4}}, [](const Inputs& t) {
    return at::conv2d(t[0], t[1], t[2], at::IntArrayRef{1}, at::IntArrayRef{0}, 2);
  });
  add("transposed_without_cudnn", {{2, 6, 5, 5}, {6, 4, 3, 3}, {4}},
      [](const Inputs& t) { return torch::conv_transpose2d(t[0], t[1], t[2], 2, 1, 1); });
  add("volumes_without_cudnn", {{1, 2, 5, 5, 5}, {3, 2, 3, 3, 3}},
      [](const Inputs& t) { return torch::conv3d(t[0], t[1]); });
  add("batch_norm_without_cudnn", {{4, 6, 5, 5}, {6}, {6}}, [](const Inputs& t) {
    return at::batch_norm(t[0], t[1], t[2], {}, {}, true, 0.1, 1e-5, true);
  });
}

void add_others(Numerics& all) {
  const auto add = [&](const char* name, const Sizes& sizes, const auto& compute) {
    all.push_back({name, sizes, compute});
  };
  add("channels_last", {{4, 3, 9, 9}, {6, 3, 3, 3}}, [](const Inputs& t) {
    return torch::conv2d(t[0].contiguous(at::MemoryFormat::ChannelsLast), t[1]);
  });
  add("grid_sample", {{2, 3, 6, 6}, {2, 5, 5, 2}}, [](const Inputs& t) {
    return F::grid_sample(t[0], t[1].tanh(), F::GridSampleFuncOptions().align_corners(false));
  });
  add("cdist", {{6, 8}, {5, 8}}, [](const Inputs& t) { return torch::cdist(t[0], t[1]); });
  add("weight_norm", {{6, 8}, {6, 1}},
      [](const Inputs& t) { return at::_weight_norm(t[0], t[1], 0); });
  add("embedding_of_many", {{50, 8}}, [](const Inputs& t) {
    return torch::embedding(t[0], torch::arange(5000, t[0].device()).remainder(50)) / 50;
  });
  add("index_put_added", {{6, 8}}, [](const Inputs& t) {
    const Tensor rows = whole(t[0], {0, 2, 2, 5, 2, 1});
    return torch::zeros_like(t[0]).index_put({rows}, t[0], /*accumulate=*/true);
  });
  add("prod", {{4, 5}}, [](const Inputs& t) { return t[0].prod(1); });
  add("cumprod", {{4, 5}}, [](const Inputs& t) { return t[0].cumprod(1); });
  add("sort", {{6, 8}}, [](const Inputs& t) { return std::get<0>(t[0].sort(1)); });
  add("kthvalue", {{6, 8}}, [](const Inputs& t) { return std::get<0>(t[0].kthvalue(3, 1)); });
  add("median", {{6, 7}}, [](const Inputs& t) { return std::get<0>(t[0].median(1)); });
  add("erfinv", {{6, 8}}, [](const Inputs& t) { return t[0].tanh().mul(0.9).erfinv(); });
}

const Numerics& all_numerics() {
  static const Numerics all = [] {
    Numerics made;
    for (const auto add :
         {&add_linear_algebra, &add_fourier, &add_sized_by_values, &add_ctc, &add_attention,
          &add_recurrent_cells, &add_narrow_layers, &add_without_cudnn, &add_others})
      add(made);
    return made;
  }();
  return all;
}

/// Sets what a case wants of LibTorch's kernels for its life.
class KernelChoice {
 public:
  explicit KernelChoice(const Numeric& each) {
    auto& context = at::globalContext();
    context.setUserEnabledCuDNN(each.by_cudnn);
    if (each.attention) choose([&](at::SDPBackend kernel) { return kernel == *each.attention; });
  }
  ~KernelChoice() {
    at::globalContext().setUserEnabledCuDNN(true);
    choose([](at::SDPBackend) { return true; });
  }
  KernelChoice(const KernelChoice&) = delete;
  KernelChoice& operator=(const KernelChoice&) = delete;

 private:
  static void choose(const std::function<bool(at::SDPBackend)>& allowed) {
    auto& context = at::globalContext();
    context.setSDPUseMath(allowed(at::SDPBackend::math));
    context.setSDPUseMemEfficient(allowed(at::SDPBackend::efficient_attention));
    context.setSDPUseFlash(allowed(at::SDPBackend::flash_attention));
    context.setSDPUseCuDNN(allowed(at::SDPBackend::cudnn_attention));
  }
};

using FurtherNumbersOnCard = OnCard<::testing::TestWithParam<Numeric>>;

/// Rounding of some ten operations in the type, on numbers around 1.
double rounding_of(c10::ScalarType type) {
  return type == at::kFloat ? 1e-3 : type == at::kHalf ? 2e-2 : 1e-1;
}

void expect_near(const Tensor& card, const Tensor& host, double rounding) {
  ASSERT_EQ(card.defined(), host.defined());
  if (!host.defined()) return;
  EXPECT_TRUE(card.is_cuda());
  ASSERT_EQ(card.sizes(), host.sizes());
  EXPECT_TRUE(torch::allclose(card.cpu().to(host.scalar_type()), host, rounding, rounding))
      << "card\n"
      << card.cpu() << "\nhost\n"
      << host;
}

TEST_P(FurtherNumbersOnCard, AreTheHosts) {
  const Numeric& each = GetParam();
  const double rounding = rounding_of(each.type);
  torch::manual_seed(1);
  Inputs on_host, on_card;
  for (const auto& sizes : each.sizes) {
    const Tensor input = torch::randn(sizes).to(each.type);
    on_host.push_back(input.to(at::kFloat, false, /*copy=*/true).requires_grad_());
    on_card.push_back(input.to(memory::CudaTraits::device()).requires_grad_());
  }
  const Tensor host = each.compute(on_host);
  const Tensor gradient = torch::randn_like(host.is_floating_point() ? host : on_host[0]);
  const KernelChoice choice(each);
  const Tensor card = each.compute(on_card);
  EXPECT_EQ(card.scalar_type(), host.is_floating_point() ? each.type : host.scalar_type());
  {
    SCOPED_TRACE("result");
    expect_near(card.detach(), host.detach(), rounding);
  }
  ASSERT_EQ(card.requires_grad(), host.requires_grad());
  if (!host.requires_grad()) return;
  host.backward(gradient);
  card.backward(gradient.to(card.options()));
  for (size_t i = 0; i < each.sizes.size(); ++i) {
    SCOPED_TRACE("gradient " + std::to_string(i));
    expect_near(on_card[i].grad(), on_host[i].grad(), rounding);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FurtherNumbersOnCard, ::testing::ValuesIn(all_numerics()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tare::plan
