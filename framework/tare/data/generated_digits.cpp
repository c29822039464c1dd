// The data set generated_digits, and files of its pictures.
#include <ATen/core/Tensor.h>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/idx.h"
#include "tare/transform/image.h"

namespace tare::datasets {
namespace {

GeneratedDigits generator(const DataOptions& o) {
  return {.count = o.count > 0 ? o.count : GeneratedDigits{}.count,
          .size = o.size > 0 ? o.size : GeneratedDigits{}.size,
          .style = o.style.empty() ? GeneratedDigits{}.style : o.style,
          .seed = o.seed};
}

Found drawn(const DataOptions& o, bool) {
  const GeneratedDigits g = generator(o);
  return {.description = format_count(g.count) + " generated digits, " + g.style + " style, " +
                         std::to_string(g.size) + " pixels, seed " + std::to_string(g.seed),
          .data = generated_digits(g),
          .generated = true};
}

DigitImages make_named(const std::string& name, const GeneratedDigits& options) {
  if (name != "generated_digits")
    throw ConfigError("data.make_files", "name", "is not a generated data set",
                      "generated_digits, generated_texts", name);
  return generate_digits(options);
}

}  // namespace

std::vector<std::filesystem::path> make_png_files(const std::string& name,
                                                  const std::filesystem::path& folder,
                                                  const GeneratedDigits& options) {
  const DigitImages digits = make_named(name, options);
  std::vector<std::filesystem::path> paths;
  for (int64_t i = 0; i < digits.images.size(0); ++i) {
    const auto of_label = folder / std::to_string(digits.labels[i].item<int64_t>());
    io::make_directories(of_label);
    paths.push_back(of_label / (std::to_string(i) + ".png"));
    write_png(paths.back(), digits.images[i]);
  }
  return paths;
}

std::vector<std::filesystem::path> make_files(const std::string& name,
                                              const std::filesystem::path& folder,
                                              const GeneratedDigits& options) {
  const DigitImages digits = make_named(name, options);
  io::make_directories(folder);
  std::vector<std::filesystem::path> paths{folder / "images-idx3-ubyte.gz",
                                           folder / "labels-idx1-ubyte.gz"};
  write_idx(paths[0], digits.images.squeeze(1));
  write_idx(paths[1], digits.labels.to(at::kByte));
  return paths;
}

void add_generated_digits(Registry& all) {
  all.add("generated_digits",
          "draws digits from strokes, in a printed or a written style, of any size", [] {
            return Kind{{"style"}, drawn};
          });
}

}  // namespace tare::datasets
