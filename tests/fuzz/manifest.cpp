// The manifest of a checkpoint. Input: 'r' and a manifest, or 's' and what stands behind its
// checksum, which is made right then, as a forger would.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

#include "fuzz/support.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/manifest.h"

namespace tare::fuzz {

// A checkpoint whose manifest is a link to a file in memory.
class Checkpoint {
 public:
  Checkpoint() {
    checkpoint::save(folder(),
                     {.model = {{"b", at::zeros({2})}, {"a", at::zeros({3, 2}, at::kLong)}},
                      .optimizer = {{"m/b", at::zeros({2})}},
                      .extra = {}});
    std::filesystem::remove(folder() / "manifest.json");
    std::filesystem::create_symlink(manifest_.path(), folder() / "manifest.json");
  }
  [[nodiscard]] std::filesystem::path folder() const { return place_ / "c"; }
  void set_manifest(std::string_view text) { manifest_.set(text); }

 private:
  testing::TempDir place_;
  MemoryFile manifest_;
};

std::string manifest_of(std::string_view input) {
  const std::string rest(input.substr(1));
  if (input[0] == 'r') return rest;
  return "{\n \"checksum\": \"xxh3:" + checkpoint::hash(rest) + "\",\n" + rest;
}

void run(std::string_view input) {
  static Checkpoint checkpoint;
  checkpoint.set_manifest(manifest_of(input));
  const checkpoint::Loaded loaded = checkpoint::load(checkpoint.folder());
  require(loaded.model.size() == 2 && loaded.model[0].tensor.sizes() == at::IntArrayRef({3, 2}),
          "what verifies is what was saved");
  require(loaded.optimizer.size() == (loaded.has_optimizer ? 1 : 0), "the optimizer is read");
  require(nlohmann::json::parse(loaded.state).is_object(), "the state is an object");
}

}  // namespace tare::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    tare::fuzz::run(tare::fuzz::text_of(data, size));
  } catch (const tare::FormatError&) {
  }
  return 0;
}
