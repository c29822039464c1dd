// The list of transforms: checks, shapes and the YAML form.
#include "tare/transform/transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "tare/base/error.h"
#include "tare/config/scalar.h"

namespace tare {
namespace transforms {
void add_entries(Registry& all);  // CMake makes it from the list in CMakeLists.txt
}  // namespace transforms

namespace {

std::string list_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void check_normalise(const Normalise& n) {
  if (n.mean.empty() || n.mean.size() != n.std.size())
    throw ConfigError("transform.normalise",
                      "mean and std need one value for each channel, or one for all, got " +
                          std::to_string(n.mean.size()) + " and " + std::to_string(n.std.size()));
  // The pixels are computed with these numbers, and with 1 / std, in float32.
  constexpr double kLeast = std::numeric_limits<float>::min(), kMost = 1 / kLeast;
  for (const double mean : n.mean)
    if (!(std::abs(mean) <= kMost))
      throw ConfigError("transform.normalise", "mean", "has a number that is too large",
                        "numbers from -8.5e37 to 8.5e37", config::number_text(mean));
  for (const double std : n.std)
    if (!(std >= kLeast && std <= kMost))
      throw ConfigError("transform.normalise", "std", "has a number that is out of range",
                        "numbers from 1.2e-38 to 8.5e37", config::number_text(std));
}

void check(const Transform& transform) {
  if (const auto* added = std::get_if<Added>(&transform)) {
    if (!added->transform) throw ConfigError("transform", "an added transform is null; make one");
    return;
  }
  std::visit(
      [&](const auto& step) {
        if constexpr (config::Options<std::decay_t<decltype(step)>>)
          config::validate(step, "transform." + name_of(transform));
      },
      transform);
  if (const auto* normalise = std::get_if<Normalise>(&transform)) check_normalise(*normalise);
}

bool is_random(const Transform& transform) {
  if (const auto* added = std::get_if<Added>(&transform)) return added->transform->random();
  return std::holds_alternative<Flip>(transform) || std::holds_alternative<Shift>(transform) ||
         std::holds_alternative<Affine>(transform);
}

/// Throws ConfigError for a step that takes values in [0, 1], behind a step that changes them.
void check_order(const std::vector<Transform>& steps) {
  const Transform* normalise = nullptr;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (std::holds_alternative<Normalise>(steps[i])) normalise = &steps[i];
    const auto* added = std::get_if<Added>(&steps[i]);
    if (normalise && added && added->transform->needs_colours())
      throw ConfigError("transform." + name_of(steps[i]), std::to_string(i),
                        "takes values from 0 to 1, which normalise has changed before",
                        "a place before normalise", name_of(steps[i]));
  }
}

std::vector<Transform> without_random(const std::vector<Transform>& steps) {
  std::vector<Transform> kept;
  for (const Transform& step : steps) {
    if (!is_random(step)) {
      kept.push_back(step);
    } else if (const auto* added = std::get_if<Added>(&step)) {
      std::ranges::move(added->transform->when_evaluating(), std::back_inserter(kept));
    }
  }
  return kept;
}

/// Adds a transform that is a value.
template <config::Options Value>
void add(transforms::Registry& all, const Value& value, const char* summary) {
  all.add<Value>(name_of(value), summary, [](const Value& options) {
    check(options);
    return Transform(options);
  });
}

void add_ours(transforms::Registry& all) {
  // A resize or a normalise without values would not be valid: its options must be given.
  add(all, Resize{}, "resizes bilinearly to height and width");
  add(all, Normalise{}, "subtracts the mean and divides by the standard deviation of each channel");
  add(all, Flip{}, "mirrors left and right, at random");
  add(all, Shift{}, "moves by whole pixels, at random");
  add(all, Affine{}, "rotates and zooms about the centre, at random");
  transforms::add_entries(all);
}

Transform read_transform(const config::Node& node) {
  const auto& registry = transforms::registry();
  const bool name = node.kind == config::Kind::scalar;
  if (!name && (node.kind != config::Kind::map || node.entries.size() != 1))
    throw ConfigError(node.source, "", "is not a transform",
                      "one of " + listed(registry.names()) + " with its fields",
                      config::describe(node));
  const auto choice = registry.complete(config::read<config::Choice>(node));
  Transform transform = registry.make(choice);
  if (auto* added = std::get_if<Added>(&transform)) added->choice = choice;
  return transform;
}

}  // namespace

std::vector<Transform> ImageTransform::when_evaluating() const { return {}; }

std::string name_of(const Transform& transform) {
  if (const auto* added = std::get_if<Added>(&transform)) return added->choice.name;
  constexpr std::array kNames{"resize", "normalise", "flip", "shift", "affine"};
  static_assert(std::variant_size_v<Transform> == kNames.size() + 1);
  return kNames[transform.index()];
}

transforms::Registry& transforms::registry() {
  static Registry all("transform", add_ours);
  return all;
}

Transforms::Transforms(std::initializer_list<Transform> steps)
    : Transforms(std::vector<Transform>(steps)) {}

Transforms::Transforms(std::vector<Transform> steps) : steps_(std::move(steps)) {
  for (const Transform& step : steps_) check(step);
  check_order(steps_);
  evaluating_ = without_random(steps_);
}

bool Transforms::random() const { return std::any_of(steps_.begin(), steps_.end(), is_random); }

Transforms Transforms::deterministic() const { return Transforms(evaluating_); }

std::vector<int64_t> Transforms::output_shape(const std::vector<int64_t>& shape) const {
  if (shape.size() != 3)
    throw ShapeError("transform", "images [channels, height, width]", list_text(shape));
  std::vector<int64_t> out = shape;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Transform& step = steps_[i];
    if (const auto* resize = std::get_if<Resize>(&step)) {
      out[1] = resize->height;
      out[2] = resize->width;
    } else if (const auto* normalise = std::get_if<Normalise>(&step)) {
      const auto values = static_cast<int64_t>(normalise->mean.size());
      if (values != 1 && values != shape[0])
        throw ConfigError("transform.normalise",
                          "mean and std have " + std::to_string(values) +
                              " values, the images have " + std::to_string(shape[0]) +
                              " channels: give one value for each, or one for all");
    } else if (const auto* shift = std::get_if<Shift>(&step)) {
      const int64_t most = std::min(out[1], out[2]) - 1;
      if (shift->pixels > most)
        throw ConfigError("transform.shift", "transforms." + std::to_string(i) + ".shift.pixels",
                          "may move images of " + std::to_string(out[1]) + " x " +
                              std::to_string(out[2]) + " out of themselves",
                          "at most " + std::to_string(most), std::to_string(shift->pixels));
    } else if (const auto* added = std::get_if<Added>(&step)) {
      try {
        out = added->transform->output_shape(out);
      } catch (const ConfigError& error) {
        throw error.within("transforms." + std::to_string(i) + "." + added->choice.name, {});
      }
    }
  }
  return out;
}

at::Tensor Transforms::apply(const at::Tensor& images, std::span<const uint64_t> sample_seeds,
                             bool training) const {
  return run(images, nullptr, sample_seeds, training);
}

at::Tensor Transforms::apply_rows(const at::Tensor& images, std::span<const int64_t> rows,
                                  std::span<const uint64_t> sample_seeds, bool training) const {
  return run(images, &rows, sample_seeds, training);
}

void from_node(const config::Node& node, Transforms& transforms) {
  std::vector<Transform> steps;
  if (node.kind == config::Kind::scalar && node.text.find(',') == std::string::npos)
    steps.push_back(read_transform(node));  // one is a list of one
  else if (node.kind != config::Kind::sequence && node.kind != config::Kind::null)
    throw ConfigError(node.source, "", "must be a list of transforms", "[{flip: {}}]",
                      config::describe(node));
  for (size_t i = 0; i < node.items.size(); ++i) {
    try {
      steps.push_back(read_transform(node.items[i]));
    } catch (const ConfigError& error) {
      throw error.within(std::to_string(i), node.items[i].source);
    }
  }
  transforms = Transforms(std::move(steps));
}

config::Node with_stored_defaults(config::Node list) {
  for (config::Node& item : list.items) {
    config::Node* resize = item.find("resize");
    if (resize && resize->kind == config::Kind::map && !resize->find("antialias"))
      resize->set("antialias", config::to_node(false));
  }
  return list;
}

config::Choice choice_of(const Transform& step) {
  return std::visit(
      [&]<class Step>(const Step& value) {
        if constexpr (std::is_same_v<Step, Added>)
          return value.choice;
        else
          return config::Choice{name_of(step), config::to_node(value)};
      },
      step);
}

config::Node to_node(const Transforms& transforms) {
  config::Node list = config::Node::sequence({});
  for (const Transform& step : transforms.steps()) {
    list.items.push_back(config::to_node(choice_of(step)));
  }
  return list;
}

}  // namespace tare
