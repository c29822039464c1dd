// Drives a fuzz target without libFuzzer: each seed as it is, then damaged copies of the seeds.
//   replay_NAME CORPUS COUNT
// The seeds and the damage are the same in each run, unless TARE_TEST_SEED gives another seed. A
// broken promise ends the process; the input that broke it stays in replay_NAME.input.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "support/damage.h"
#include "tare/base/io.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::string> seeds_in(const std::filesystem::path& corpus) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) paths.push_back(entry);
  std::ranges::sort(paths);
  std::vector<std::string> seeds;
  for (const auto& path : paths) seeds.push_back(tare::io::read_text(path));
  return seeds;
}

/// One to four faults: a changed bit, or a range that is lost, doubled, zeroed, moved or of another
/// seed.
std::string damaged(const std::vector<std::string>& seeds, std::mt19937_64& random) {
  const auto any_seed = [&]() -> const std::string& { return seeds[random() % seeds.size()]; };
  std::string input = any_seed();
  for (uint64_t fault = 0, faults = 1 + random() % 4; fault < faults && !input.empty(); ++fault) {
    if (random() % 2 == 0) {
      const uint64_t bit = random() % (8 * input.size());
      input = tare::testing::flipped(std::move(input), bit);
    } else {
      input = tare::testing::spliced(input, any_seed(), random);
    }
  }
  return input;
}

void try_input(const std::string& input, const std::filesystem::path& left) {
  tare::testing::overwrite(left, input);  // what a crash leaves
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s CORPUS COUNT\n", arguments[0]);
    return 2;
  }
  const auto seeds = seeds_in(arguments[1]);
  const auto copies = std::strtoull(arguments[2], nullptr, 10);
  const char* given = std::getenv("TARE_TEST_SEED");
  std::mt19937_64 random(given ? std::strtoull(given, nullptr, 10) : 1);
  const auto left = std::filesystem::path(arguments[0]).filename().string() + ".input";
  for (const auto& seed : seeds) try_input(seed, left);
  for (uint64_t copy = 0; copy < copies; ++copy) try_input(damaged(seeds, random), left);
  std::filesystem::remove(left);
  std::printf("%zu seeds and %llu damaged copies: no finding\n", seeds.size(),
              static_cast<unsigned long long>(copies));
  return seeds.empty() ? 1 : 0;
}
