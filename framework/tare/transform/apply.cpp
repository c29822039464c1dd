// How a pipeline is run: it is cut into stages, each one pass over the images.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "tare/base/error.h"
#include "tare/transform/plane_stage.h"
#include "tare/transform/planes.h"
#include "tare/transform/stages.h"

namespace tare {
namespace {

template <class T>
void move_row(const T* in, float* out, int64_t width, const Move& move, Scaling scaling) {
  const int64_t begin = std::clamp<int64_t>(move.right, 0, width);
  const int64_t end = std::clamp<int64_t>(width + move.right, 0, width);
  const float pad = scaling(0);
  const auto first = static_cast<float>(in[move.flip ? width - 1 : 0]);
  const auto last = static_cast<float>(in[move.flip ? 0 : width - 1]);
  std::fill(out, out + begin, move.edge ? scaling(first) : pad);
  if (move.flip) {
    scale_row(in + width + move.right - end, out + begin, end - begin, scaling);
    std::reverse(out + begin, out + end);
  } else {
    scale_row(in - move.right + begin, out + begin, end - begin, scaling);
  }
  std::fill(out + end, out + width, move.edge ? scaling(last) : pad);
}

template <class T>
void move_plane(const T* in, float* out, int64_t height, int64_t width, const Move& move,
                Scaling scaling) {
  for (int64_t y = 0; y < height; ++y, out += width) {
    const int64_t from = y - move.down;
    if (!move.edge && (from < 0 || from >= height))
      std::fill(out, out + width, scaling(0));
    else
      move_row(in + std::clamp<int64_t>(from, 0, height - 1) * width, out, width, move, scaling);
  }
}

template <class T>
void turn_plane(const T* in, float* out, int64_t height, int64_t width, Turn turn,
                Scaling scaling) {
  const float middle_y = static_cast<float>(height - 1) / 2;
  const float middle_x = static_cast<float>(width - 1) / 2;
  for (int64_t y = 0; y < height; ++y) {
    const float down = static_cast<float>(y) - middle_y;
    for (int64_t x = 0; x < width; ++x) {
      const float right = static_cast<float>(x) - middle_x;
      *out++ =
          scaling(sample_between(in, height, width, middle_y + turn.cos * down + turn.sin * right,
                                 middle_x - turn.sin * down + turn.cos * right));
    }
  }
}

template <class T>
at::Tensor run_stage(const Stage& stage, const at::Tensor& images,
                     const std::span<const int64_t>* rows, std::span<const uint64_t> seeds) {
  const int64_t count = rows ? static_cast<int64_t>(rows->size()) : images.size(0);
  const int64_t channels = images.size(1), height = images.size(2), width = images.size(3);
  const int64_t out_height = stage.resize ? stage.resize->height : height;
  const int64_t out_width = stage.resize ? stage.resize->width : width;
  at::Tensor result = at::empty({count, channels, out_height, out_width}, at::kFloat);
  const std::vector<Scaling> scaling =
      scalings(stage.normalise, channels, std::is_same_v<T, uint8_t>);
  std::optional<Resizer> resizer;
  if (stage.resize) resizer.emplace(*stage.resize, height, width);
  const T* in = images.const_data_ptr<T>();
  float* out = result.mutable_data_ptr<float>();
  each_sample(count, [&](int64_t n) {
    const auto sample = static_cast<size_t>(n);
    const T* image = in + (rows ? (*rows)[sample] : n) * channels * height * width;
    float* to = out + n * channels * out_height * out_width;
    const Move move = stage.moves.empty() ? Move{} : draw_move(stage, seeds[sample]);
    const bool turns = stage.turn.transform != nullptr;
    const Turn turn = turns ? draw_turn(stage, seeds[sample]) : Turn{};
    for (int64_t c = 0; c < channels; ++c, image += height * width, to += out_height * out_width) {
      if (resizer)
        resizer->run(image, to, width, scaling[static_cast<size_t>(c)]);
      else if (turns)
        turn_plane(image, to, height, width, turn, scaling[static_cast<size_t>(c)]);
      else
        move_plane(image, to, height, width, move, scaling[static_cast<size_t>(c)]);
    }
  });
  return result;
}

// Rounds to the 256 levels that an image in a file has.
at::Tensor rounded(const at::Tensor& images) {
  at::Tensor result = at::empty(images.sizes(), at::kByte);
  const float* in = images.const_data_ptr<float>();
  uint8_t* out = result.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < result.numel(); ++i)
    out[i] = static_cast<uint8_t>(std::lround(std::clamp(in[i], 0.0F, 1.0F) * 255));
  return result;
}

at::Tensor run_added(const Stage& stage, const at::Tensor& images,
                     std::span<const uint64_t> sample_seeds) {
  const auto& added = std::get<Added>(*stage.added.transform);
  std::vector<int64_t> expected = added.transform->output_shape(images.sizes().slice(1).vec());
  expected.insert(expected.begin(), images.size(0));
  const at::Tensor result = added.transform->apply(images, seeds_of_added(stage, sample_seeds));
  if (result.defined() && result.scalar_type() == at::kFloat && result.is_contiguous() &&
      result.sizes() == expected)
    return result;
  throw ShapeError("transform." + added.choice.name,
                   "contiguous float32 images of shape " + c10::str(expected) + " as a result",
                   result.defined() ? result.toString() + " of shape " + c10::str(result.sizes())
                                    : "an undefined tensor");
}

void check_images(const at::Tensor& images) {
  const bool fits = images.defined() && images.device().is_cpu() && images.dim() == 4 &&
                    images.is_contiguous() &&
                    (images.scalar_type() == at::kByte || images.scalar_type() == at::kFloat);
  if (fits && images.size(2) > 0 && images.size(3) > 0) return;
  std::string got = "an undefined tensor";
  if (images.defined())
    got = images.toString() + " of shape " + c10::str(images.sizes()) +
          (images.is_contiguous() ? "" : ", not contiguous");
  throw ShapeError("transform",
                   "contiguous uint8 or float32 images [N, channels, height, width] on the host",
                   got);
}

}  // namespace

at::Tensor Transforms::run(const at::Tensor& images, const std::span<const int64_t>* rows,
                           std::span<const uint64_t> sample_seeds, bool training) const {
  check_images(images);
  (void)output_shape(images.sizes().slice(1).vec());
  const size_t count = rows ? rows->size() : static_cast<size_t>(images.size(0));
  if (training && random() && sample_seeds.size() != count)
    throw ShapeError("transform", std::to_string(count) + " sample seeds, one for each image",
                     std::to_string(sample_seeds.size()));
  at::Tensor current = images;
  for (const Stage& stage : stages_of(training ? steps_ : evaluating_)) {
    if (stage.added.transform) {
      current = run_added(stage, current, sample_seeds);
      continue;
    }
    current = current.scalar_type() == at::kByte
                  ? run_stage<uint8_t>(stage, current, rows, sample_seeds)
                  : run_stage<float>(stage, current, rows, sample_seeds);
    if (stage.resize && stage.resize->round) current = rounded(current);
    rows = nullptr;
  }
  return current;
}

}  // namespace tare
