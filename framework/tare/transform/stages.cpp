// Groups transforms into passes over the images, and draws their moves.
#include "tare/transform/stages.h"

#include <cmath>
#include <numbers>
#include <variant>

#include "tare/transform/random.h"

namespace tare {

std::vector<Stage> stages_of(const std::vector<Transform>& steps) {
  std::vector<Stage> stages(1);
  for (size_t i = 0; i < steps.size(); ++i) {
    Stage* last = &stages.back();
    const bool empty = last->moves.empty() && !last->turn.transform && !last->resize &&
                       !last->normalise && !last->added.transform;
    if (std::holds_alternative<Added>(steps[i])) {
      stages.emplace_back().added = {i, &steps[i]};  // the stage before it makes floats
    } else if (const auto* normalise = std::get_if<Normalise>(&steps[i])) {
      if (last->normalise || last->added.transform) last = &stages.emplace_back();
      last->normalise = normalise;
    } else if (const auto* resize = std::get_if<Resize>(&steps[i])) {
      if (!empty) last = &stages.emplace_back();
      last->resize = resize;
      if (resize->round) stages.emplace_back();  // works on what was rounded
    } else if (std::holds_alternative<Affine>(steps[i])) {
      if (!empty) last = &stages.emplace_back();
      last->turn = {i, &steps[i]};
    } else {
      const bool shift = std::holds_alternative<Shift>(steps[i]);
      if (last->resize || last->normalise || last->turn.transform || last->added.transform ||
          (shift && last->shifts))
        last = &stages.emplace_back();
      last->moves.push_back({i, &steps[i]});
      last->shifts |= shift;
    }
  }
  return stages;
}

Move draw_move(const Stage& stage, uint64_t sample_seed) {
  Move move;
  for (const Stage::Step& step : stage.moves) {
    RandomBits bits(derive_seed(sample_seed, step.place));
    if (const auto* flip = std::get_if<Flip>(step.transform)) {
      if (bits.uniform() >= static_cast<float>(flip->probability)) continue;
      move.flip = !move.flip;
      move.right = -move.right;
    } else {
      const auto& shift = std::get<Shift>(*step.transform);
      const auto span = static_cast<uint64_t>(2 * shift.pixels + 1);
      move.down = static_cast<int64_t>(bits.below(span)) - shift.pixels;
      move.right = static_cast<int64_t>(bits.below(span)) - shift.pixels;
      move.edge = shift.padding == "edge";
    }
  }
  return move;
}

std::vector<uint64_t> seeds_of_added(const Stage& stage, std::span<const uint64_t> sample_seeds) {
  std::vector<uint64_t> seeds;
  if (!std::get<Added>(*stage.added.transform).transform->random()) return seeds;
  for (const uint64_t seed : sample_seeds) seeds.push_back(derive_seed(seed, stage.added.place));
  return seeds;
}

Turn draw_turn(const Stage& stage, uint64_t sample_seed) {
  const auto& affine = std::get<Affine>(*stage.turn.transform);
  RandomBits bits(derive_seed(sample_seed, stage.turn.place));
  const auto degrees = static_cast<float>(affine.degrees), zoom = static_cast<float>(affine.zoom);
  const float angle = bits.uniform(-degrees, degrees) * std::numbers::pi_v<float> / 180;
  const float factor = bits.uniform(1 - zoom, 1 + zoom);
  return {std::cos(angle) / factor, std::sin(angle) / factor};
}

}  // namespace tare
