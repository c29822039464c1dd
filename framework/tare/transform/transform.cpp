#include "tare/transform/transform.h"

#include <algorithm>
#include <utility>

#include "tare/base/error.h"

namespace tare {
namespace {

constexpr const char* kNames[] = {"resize", "normalise", "flip", "shift", "affine"};
static_assert(std::variant_size_v<Transform> == std::size(kNames));

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
  // !(s > 0) catches NaN as well.
  if (std::any_of(n.std.begin(), n.std.end(), [](double s) { return !(s > 0); }))
    throw ConfigError("transform.normalise", "every std must be > 0");
}

void check(const Transform& transform) {
  std::visit(
      [&](const auto& step) {
        config::validate(step, std::string("transform.") + name_of(transform));
      },
      transform);
  if (const auto* normalise = std::get_if<Normalise>(&transform)) check_normalise(*normalise);
}

bool is_random(const Transform& transform) {
  return std::holds_alternative<Flip>(transform) || std::holds_alternative<Shift>(transform) ||
         std::holds_alternative<Affine>(transform);
}

template <size_t I = 0>
Transform read_step(size_t index, const config::Node& node) {
  if constexpr (I < std::variant_size_v<Transform>) {
    if (index != I) return read_step<I + 1>(index, node);
    return config::read<std::variant_alternative_t<I, Transform>>(node);
  } else {
    throw std::out_of_range("transform index");
  }
}

// `flip` is short for `flip: {}`.
config::Node as_map(const config::Node& node) {
  if (node.kind != config::Kind::scalar) return node;
  config::Node map = config::Node::map();
  map.source = node.source;
  config::Node nothing;
  nothing.source = node.source;
  map.entries.push_back({node.text, node.source, std::move(nothing)});
  return map;
}

Transform read_fields(size_t kind, const config::Entry& entry) {
  try {
    return read_step(kind, entry.value);
  } catch (const ConfigError& error) {
    throw error.within(entry.key, entry.value.source);
  }
}

Transform read_transform(const config::Node& given) {
  const config::Node node = as_map(given);
  if (node.kind != config::Kind::map || node.entries.size() != 1)
    throw ConfigError(node.source, "", "is no transform",
                      "one of resize, normalise, flip, shift, affine with its fields",
                      config::describe(node));
  const config::Entry& entry = node.entries.front();
  config::Node key = config::Node::string(entry.key);
  key.source = entry.key_source;
  const size_t kind = config::choice(key, {kNames[0], kNames[1], kNames[2], kNames[3], kNames[4]});
  Transform transform = read_fields(kind, entry);
  try {
    check(transform);
  } catch (const ConfigError& error) {
    throw ConfigError(entry.value.source, entry.key, error.what());
  }
  return transform;
}

}  // namespace

const char* name_of(const Transform& transform) { return kNames[transform.index()]; }

Transforms::Transforms(std::initializer_list<Transform> steps)
    : Transforms(std::vector<Transform>(steps)) {}

Transforms::Transforms(std::vector<Transform> steps) : steps_(std::move(steps)) {
  for (const Transform& step : steps_) check(step);
}

bool Transforms::random() const { return std::any_of(steps_.begin(), steps_.end(), is_random); }

Transforms Transforms::deterministic() const {
  std::vector<Transform> kept;
  for (const Transform& step : steps_)
    if (!is_random(step)) kept.push_back(step);
  return Transforms(std::move(kept));
}

std::vector<int64_t> Transforms::output_shape(const std::vector<int64_t>& shape) const {
  if (shape.size() != 3)
    throw ShapeError("transform", "images [channels, height, width]", list_text(shape));
  std::vector<int64_t> out = shape;
  for (const Transform& step : steps_) {
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
  if (node.kind != config::Kind::sequence && node.kind != config::Kind::null)
    throw ConfigError(node.source, "", "is no list of transforms", "a list, as [{flip: {}}]",
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

config::Node to_node(const Transforms& transforms) {
  config::Node list = config::Node::sequence({});
  for (const Transform& step : transforms.steps()) {
    config::Node fields = std::visit([](const auto& s) { return config::to_node(s); }, step);
    list.items.push_back(config::Node::map());
    list.items.back().set(name_of(step), std::move(fields));
  }
  return list;
}

}  // namespace tare
