// How targets that are images move with the inputs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "tare/base/error.h"
#include "tare/transform/plane_stage.h"
#include "tare/transform/planes.h"
#include "tare/transform/resample.h"
#include "tare/transform/stages.h"

namespace tare {
namespace {

struct Size {
  int64_t height = 0, width = 0;
};

template <class T>
void move_plane(const T* in, T* out, Size size, const Move& move) {
  for (int64_t y = 0; y < size.height; ++y) {
    for (int64_t x = 0; x < size.width; ++x) {
      int64_t row = y - move.down, column = x - move.right;
      const bool inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
      row = std::clamp<int64_t>(row, 0, size.height - 1);
      column = std::clamp<int64_t>(column, 0, size.width - 1);
      if (move.flip) column = size.width - 1 - column;
      *out++ = inside || move.edge ? in[row * size.width + column] : outside<T>();
    }
  }
}

template <class T>
T nearest(const T* in, Size size, float y, float x) {
  const auto row = std::lround(y), column = std::lround(x);
  const bool inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
  return inside ? in[row * size.width + column] : outside<T>();
}

template <class T>
void turn_plane(const T* in, T* out, Size size, Turn turn) {
  const float middle_y = static_cast<float>(size.height - 1) / 2;
  const float middle_x = static_cast<float>(size.width - 1) / 2;
  for (int64_t row = 0; row < size.height; ++row) {
    const float down = static_cast<float>(row) - middle_y;
    for (int64_t column = 0; column < size.width; ++column) {
      const float right = static_cast<float>(column) - middle_x;
      const float y = middle_y + turn.cos * down + turn.sin * right;
      const float x = middle_x - turn.sin * down + turn.cos * right;
      if constexpr (std::is_floating_point_v<T>)
        *out++ = sample_between(in, size.height, size.width, y, x);
      else
        *out++ = nearest(in, size, y, x);
    }
  }
}

template <class T>
void resize_plane(const T* in, T* out, Size size, const Axis& down, const Axis& across) {
  for (size_t y = 0; y < down.low.size(); ++y) {
    const T* top = in + std::max<int64_t>(down.low[y], 0) * size.width;
    const T* bottom = in + std::max<int64_t>(down.high[y], 0) * size.width;
    for (size_t x = 0; x < across.low.size(); ++x) {
      const int64_t left = across.low[x], right = across.high[x];
      if (down.low[y] < 0 || left < 0) {
        *out++ = outside<T>();
        continue;
      }
      if constexpr (std::is_floating_point_v<T>) {
        const float w = across.weight[x], above = top[left] + w * (top[right] - top[left]),
                    below = bottom[left] + w * (bottom[right] - bottom[left]);
        *out++ = above + down.weight[y] * (below - above);
      } else {
        *out++ = (down.weight[y] < 0.5F ? top : bottom)[across.weight[x] < 0.5F ? left : right];
      }
    }
  }
}

/// Returns what resizes a plane. Numbers of classes are not mixed, so that antialiasing leaves
/// them alone.
template <class T>
std::function<void(const T* in, T* out)> resizer_of(const Resize& resize, Size size) {
  const Sides sides = sides_of(resize.fit, size.height, size.width, resize.height, resize.width);
  if constexpr (std::is_same_v<T, float>) {
    if (resize.antialias)
      return [down = Filter(sides.down), across = Filter(sides.across)](
                 const float* in, float* out) { resample(in, out, down, across); };
  }
  return [size, down = Axis(sides.down), across = Axis(sides.across)](const T* in, T* out) {
    resize_plane(in, out, size, down, across);
  };
}

bool acts(const Stage& stage) {
  return !stage.moves.empty() || stage.turn.transform || stage.resize || stage.added.transform;
}

template <class T>
at::Tensor run_stage(const Stage& stage, const at::Tensor& targets,
                     std::span<const uint64_t> seeds) {
  const Size size{targets.size(-2), targets.size(-1)};
  Size to = size;
  if (stage.resize) to = {stage.resize->height, stage.resize->width};
  std::function<void(const T*, T*)> resize;
  if (stage.resize) resize = resizer_of<T>(*stage.resize, size);
  return each_plane<T>(targets, to.height, to.width, [&](size_t n) {
    const uint64_t seed = seeds.empty() ? 0 : seeds[n];
    const Move move = stage.moves.empty() ? Move{} : draw_move(stage, seed);
    const Turn turn = stage.turn.transform ? draw_turn(stage, seed) : Turn{};
    return [&, move, turn](const T* in, T* out) {
      if (resize)
        resize(in, out);
      else if (stage.turn.transform)
        turn_plane(in, out, size, turn);
      else
        move_plane(in, out, size, move);
    };
  });
}

bool moves_pixels(const Transform& step) {
  if (const auto* added = std::get_if<Added>(&step)) return added->transform->moves_pixels();
  return std::holds_alternative<Flip>(step) || std::holds_alternative<Shift>(step) ||
         std::holds_alternative<Affine>(step);
}

void check_targets(const at::Tensor& targets) {
  const bool fits = targets.device().is_cpu() && targets.is_contiguous() &&
                    (targets.scalar_type() == at::kLong || targets.scalar_type() == at::kFloat ||
                     targets.scalar_type() == at::kByte);
  if (fits) return;
  throw ShapeError(
      "transform.targets",
      "contiguous int64, uint8 or float32 targets on the host, because they are images "
      "that move with the inputs",
      targets.toString() + " of shape " + c10::str(targets.sizes()));
}

}  // namespace

bool Transforms::are_images(c10::IntArrayRef targets, c10::IntArrayRef images) {
  return images.size() == 4 && (targets.size() == 3 || targets.size() == 4) &&
         targets.slice(targets.size() - 2) == images.slice(2);
}

void Transforms::check_targets_move(const std::string& name, c10::IntArrayRef targets,
                                    c10::IntArrayRef images) const {
  const bool like_images =
      targets.size() > 2 &&
      std::ranges::count_if(targets.slice(1), [](int64_t size) { return size > 1; }) > 1;
  if (!like_images || images.size() != 4 || are_images(targets, images)) return;
  for (const Transform& step : steps_) {
    if (!moves_pixels(step)) continue;
    throw ConfigError(
        "transform." + name_of(step),
        "would move the images " + c10::str(images) + " but not the target '" + printable(name) +
            "' " + c10::str(targets) + ": give masks of the images' height and width, [samples, " +
            "height, width] or [samples, channels, height, width]; flatten a target that is no " +
            "image to [samples, values]");
  }
}

at::Tensor Transforms::apply_to_targets(const at::Tensor& targets,
                                        std::span<const uint64_t> sample_seeds,
                                        bool training) const {
  at::Tensor current = targets;
  for (const Stage& stage : stages_of(training ? steps_ : evaluating_)) {
    if (!acts(stage)) continue;
    check_targets(current);
    if (training && random() && static_cast<int64_t>(sample_seeds.size()) != current.size(0))
      throw ShapeError("transform.targets",
                       std::to_string(current.size(0)) + " sample seeds, one for each target",
                       std::to_string(sample_seeds.size()));
    if (stage.added.transform) {
      const auto& added = std::get<Added>(*stage.added.transform);
      current = added.transform->apply_to_targets(current, seeds_of_added(stage, sample_seeds));
      continue;
    }
    current = current.scalar_type() == at::kLong ? run_stage<int64_t>(stage, current, sample_seeds)
              : current.scalar_type() == at::kByte
                  ? run_stage<uint8_t>(stage, current, sample_seeds)
                  : run_stage<float>(stage, current, sample_seeds);
  }
  return current;
}

}  // namespace tare
