// A checkpoint of 64 KiB under every flipped bit, and under truncations and splices: nothing that
// was damaged is accepted, and what is damaged is named.
#include <array>
#include <optional>
#include <set>

#include "checkpoint/support.h"
#include "support/deep.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/safetensors.h"

namespace tare::checkpoint {
namespace {

using tare::testing::reduced;
using tare::testing::spliced;
using tare::testing::TempDir;

constexpr std::array kFiles = {"model.safetensors", "optimizer.safetensors", "extra.safetensors",
                               "manifest.json"};

// 64 KiB of tensors, other ones for each `version`, of the same names, dtypes and shapes.
Contents contents(int64_t version) {
  const auto tensor = [&](std::vector<int64_t> shape, c10::ScalarType dtype = c10::kFloat) {
    return counting(std::move(shape), dtype).add(version).to(dtype);
  };
  return {.model = {{"conv.weight", tensor({16, 8, 3, 3})},
                    {"norm.mean", tensor({64}, at::kDouble)},
                    {"norm.batches", tensor({}, at::kLong)},
                    {"fc.weight", tensor({64, 96})},
                    {"fc.bias", tensor({64}, at::kHalf)},
                    {"mask", counting({100}, at::kInt).add(version).remainder(2).to(at::kBool)}},
          .optimizer = {{"exp_avg/conv.weight", tensor({16, 8, 3, 3})},
                        {"exp_avg/fc.weight", tensor({64, 96})}},
          .extra = {{"rng/cpu", tensor({5056}, at::kByte)}},
          .state = R"({"epoch":3,"history":[0.5,0.25,0.125]})"};
}

// Which tensor each byte belongs to.
class Places {
 public:
  explicit Places(const std::string& file) : header_(parse_header(as_bytes(file), "file")) {}
  // Empty for the header.
  [[nodiscard]] std::string tensor_at(size_t byte) const {
    const int64_t place = static_cast<int64_t>(byte) - header_.data_start;
    if (place < 0) return "";
    for (const auto& t : header_.tensors)
      if (place < t.offset + t.bytes) return t.name;
    ADD_FAILURE() << "byte " << byte << " is in no tensor";
    return "";
  }

 private:
  Header header_;
};

bool is_named(const std::string& part) {
  return !part.empty() && part != "accepted" && !part.starts_with("another error");
}

class Corruption : public ::testing::Test {
 protected:
  Corruption() {
    save(folder_, contents(0));
    save(dir_ / "older", contents(1));
  }
  [[nodiscard]] std::string content(const char* file) const { return read_file(folder_ / file); }
  // The part by which the checkpoint is refused while `file` holds `damaged`.
  [[nodiscard]] std::string part_with(const char* file, const std::string& whole,
                                      const std::string& damaged) const {
    overwrite(folder_ / file, damaged);
    std::string part = refused_part([&] { (void)load(folder_); });
    overwrite(folder_ / file, whole);
    return part;
  }

  TempDir dir_;
  std::filesystem::path folder_ = dir_ / "c";
};

TEST_F(Corruption, EveryFlippedBitIsDetectedAndTheTensorNamed) {
  const size_t step = reduced<size_t>(63, 1);  // odd, so that each of a byte's bits has its turn
  size_t bits = 0;
  for (const char* file : kFiles) {
    const std::string whole = content(file);
    const bool manifest = file == std::string("manifest.json");
    const auto places = manifest ? std::nullopt : std::optional<Places>(whole);
    for (size_t bit = 0; bit < whole.size() * 8; bit += step) {
      overwrite(folder_ / file, bit / 8, static_cast<char>(whole[bit / 8] ^ (1 << bit % 8)));
      const std::string part = refused_part([&] { (void)load(folder_); });
      overwrite(folder_ / file, bit / 8, whole[bit / 8]);
      const std::string expected = manifest ? file : places->tensor_at(bit / 8);
      if (expected.empty())
        ASSERT_TRUE(is_named(part)) << file << " bit " << bit << ": " << part;
      else
        ASSERT_EQ(part, expected) << file << " bit " << bit;
    }
    bits += whole.size() * 8;
  }
  EXPECT_GE(bits, size_t{8} << 16);
  EXPECT_EQ(refused_part([&] { (void)load(folder_); }), "accepted");
}

// Returns the parts that may be named for a damaged file: the file, or of a safetensors file of the
// right size the tensors whose bytes differ; none, which allows any part, if its header differs.
std::set<std::string> parts_of(const char* file, const std::string& whole,
                               const std::string& damaged) {
  if (damaged.size() != whole.size() || file == std::string("manifest.json")) return {file};
  const Places places(whole);
  std::set<std::string> parts;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == damaged[i]) continue;
    const std::string tensor = places.tensor_at(i);
    if (tensor.empty()) return {};
    parts.insert(tensor);
  }
  return parts;
}

TEST_F(Corruption, TruncationsAndSplicesAreDetectedAndTheTensorOrFileNamed) {
  constexpr uint64_t kSeed = 1;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < reduced(500, 10'000); ++i) {
    const char* file = kFiles[random() % kFiles.size()];
    const std::string whole = content(file);
    // Of another file of the checkpoint, or of the same file of an older one.
    const std::string other = random() % 2 == 0 ? content(kFiles[random() % kFiles.size()])
                                                : read_file(dir_ / "older" / file);
    const std::string damaged = spliced(whole, other, random);
    const std::string part = part_with(file, whole, damaged);
    const bool foreign = damaged == other;  // whole, so only its content can show it
    const std::set<std::string> expected =
        foreign ? std::set<std::string>() : parts_of(file, whole, damaged);
    ASSERT_TRUE(expected.empty() ? is_named(part) : expected.contains(part))
        << "seed " << kSeed << ", round " << i << ", " << file << ": " << part;
  }
  EXPECT_EQ(refused_part([&] { (void)load(folder_); }), "accepted");
}

TEST_F(Corruption, AWholeFileOfAnOlderCheckpointIsForeign) {
  EXPECT_EQ(part_with("model.safetensors", content("model.safetensors"),
                      read_file(dir_ / "older/model.safetensors")),
            "norm.batches");
  EXPECT_EQ(
      part_with("manifest.json", content("manifest.json"), read_file(dir_ / "older/manifest.json")),
      "norm.batches");
}

}  // namespace
}  // namespace tare::checkpoint
