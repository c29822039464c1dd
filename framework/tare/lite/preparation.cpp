// Brings pictures to the form that a model takes.
#include "tare/lite/preparation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "tare/config/field.h"
#include "tare/config/node.h"
#include "tare/config/registry.h"
#include "tare/transform/plane_stage.h"

namespace tare::lite {
namespace {

/// Resizes and scales planes.
template <class T>
Planes passed(const T* in, int64_t channels, int64_t height, int64_t width,
              const std::optional<Resize>& resize, const Normalise* normalise) {
  Planes out{channels, resize ? resize->height : height, resize ? resize->width : width, {}};
  out.values = Floats(channels * out.pixels());
  const std::vector<Scaling> scaling = scalings(normalise, channels, std::is_same_v<T, uint8_t>);
  std::optional<Resizer> resizer;
  if (resize) resizer.emplace(*resize, height, width);
  for (int64_t c = 0; c < channels; ++c, in += height * width) {
    float* to = out.values.get() + c * out.pixels();
    const Scaling& of_channel = scaling[static_cast<size_t>(c)];
    if (resizer)
      resizer->run(in, to, width, of_channel);
    else
      scale_row(in, to, out.pixels(), of_channel);
  }
  return out;
}

/// Rounds values in [0, 1] to the levels of bytes.
std::vector<uint8_t> rounded(const Planes& planes) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < planes.channels * planes.pixels(); ++i)
    bytes.push_back(
        static_cast<uint8_t>(std::lround(std::clamp(planes.values.get()[i], 0.0F, 1.0F) * 255)));
  return bytes;
}

}  // namespace

Preparation::Preparation(const Bundle& bundle)
    : sample_shape_(bundle.manifest().sample_shape), antialias_(bundle.manifest().antialias) {
  constexpr int64_t kLargestSide = 16384;  // of a resize
  if (sample_shape_.size() == 3 && std::max(sample_shape_[1], sample_shape_[2]) > kLargestSide)
    throw Unsupported("takes no pictures of more than 16,384 pixels a side");
  const auto refuse = [&](const std::string& problem) {
    throw FormatError("lite.open", bundle.path().string(), "transforms", problem);
  };
  config::Node list;
  try {
    list = config::parse_text(bundle.manifest().transforms, "transforms");
    for (const config::Node& item : list.items) {
      const auto choice = config::read<config::Choice>(item);
      Pass* last = &passes_.back();
      if (choice.name == "normalise") {
        if (last->normalise) last = &passes_.emplace_back();
        last->normalise = config::read<Normalise>(choice.options);
      } else if (choice.name == "resize") {
        if (last->resize || last->normalise) last = &passes_.emplace_back();
        Resize resize = config::read<Resize>(choice.options);
        // A bundle that does not say it was written by an earlier Tare, which had no antialiasing.
        if (!choice.options.find("antialias")) resize.antialias = false;
        last->resize = resize;
        if (resize.round) passes_.emplace_back();
      } else {
        throw Unsupported("has no transform '" + printable(choice.name) + "'");
      }
      empty_ = false;
    }
  } catch (const ConfigError& error) {
    refuse(error.what());
  }
  const size_t channels = sample_shape_.size() == 3 ? static_cast<size_t>(sample_shape_[0]) : 0;
  for (const Pass& one : passes_) {
    if (!one.normalise) continue;
    const size_t means = one.normalise->mean.size();
    if (means == 0 || (means != 1 && means != channels) || one.normalise->std.size() != means)
      refuse("have a normalise of " + std::to_string(means) + " means and " +
             std::to_string(one.normalise->std.size()) + " deviations");
    if (!std::ranges::all_of(one.normalise->std, [](double deviation) { return deviation > 0; }))
      refuse("have a normalise with a deviation that is not above 0");
  }
}

PictureSize Preparation::size_of(PictureSize picture) const {
  for (const Pass& pass : passes_)
    if (pass.resize) picture = {pass.resize->height, pass.resize->width};
  return picture;
}

BytePlanes Preparation::fitted(const Picture& picture) const {
  if (sample_shape_.size() != 3 || sample_shape_[0] != picture.channels)
    throw ShapeError("lite.prepare", "a picture of the channels of the model's samples",
                     std::to_string(picture.channels) + " channels");
  BytePlanes planes{picture.channels, picture.height, picture.width, {}};
  planes.bytes.resize(static_cast<size_t>(planes.channels * planes.height * planes.width));
  write_planes(picture, planes.bytes.data());
  const PictureSize made = size_of({planes.height, planes.width});
  if (made.height == sample_shape_[1] && made.width == sample_shape_[2]) return planes;
  const Resize resize{.height = sample_shape_[1],
                      .width = sample_shape_[2],
                      .round = true,
                      .antialias = antialias_};
  const Planes resized =
      passed(planes.bytes.data(), planes.channels, planes.height, planes.width, resize, nullptr);
  return {resized.channels, resized.height, resized.width, rounded(resized)};
}

template <class T>
Planes Preparation::operator()(const T* planes, int64_t channels, int64_t height,
                               int64_t width) const {
  Planes result;
  std::vector<uint8_t> bytes;  // behind a resize that rounds
  for (const Pass& pass : passes_) {
    const Normalise* normalise = pass.normalise ? &*pass.normalise : nullptr;
    if (&pass == &passes_.front())
      result = passed(planes, channels, height, width, pass.resize, normalise);
    else if (!bytes.empty())
      result = passed(bytes.data(), channels, result.height, result.width, pass.resize, normalise);
    else
      result = passed(result.values.get(), channels, result.height, result.width, pass.resize,
                      normalise);
    bytes = pass.resize && pass.resize->round ? rounded(result) : std::vector<uint8_t>();
  }
  return result;
}

template Planes Preparation::operator()(const uint8_t*, int64_t, int64_t, int64_t) const;
template Planes Preparation::operator()(const float*, int64_t, int64_t, int64_t) const;

}  // namespace tare::lite
