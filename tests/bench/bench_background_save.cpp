// Measures what checkpoints every 50 steps add to the time of a fit: written by a thread
// (save_in_background), and while the fit waits. Prints the ratios to a fit that saves nothing, of
// fits in turns, with that fit against itself as the A/A control.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_background_save [FOLDER] [ROUNDS]; defaults: a new folder
// in TMPDIR, 7
#include <cstdlib>
#include <filesystem>

#include "bench/paired.h"
#include "bench/subjects.h"
#include "support/temp_dir.h"
#include "tare/base/bytes.h"
#include "tare/callback/autosave.h"

namespace {

using namespace tare;

constexpr int64_t kSteps = 100, kEvery = 50;

/// Says how a fit saves.
struct Way {
  bool saves = false, in_background = false;
};

class Fits {
 public:
  Fits(bench::Subject subject, std::filesystem::path folder)
      : subject_(std::move(subject)), set_(subject_.data(kSteps)), folder_(std::move(folder)) {}

  /// Returns the seconds of a fit, with the wait for its last write.
  [[nodiscard]] double seconds(const Way& way) const {
    torch::manual_seed(1);
    LearnerOptions options = bench::same_training();
    options.batch = subject_.batch;
    options.optimizer = {.kind = "adamw"};
    options.folder = folder_;
    options.save_in_background = way.in_background;
    Learner learner(models::make(subject_.model, subject_.options), {.train = set_},
                    std::move(options));
    std::vector<CallbackPtr> callbacks;
    if (way.saves) callbacks.push_back(std::make_shared<Autosave>(kEvery));
    return learner
        .fit(1, {.lr = 1e-3, .schedule = {.kind = "constant"}, .callbacks = std::move(callbacks)})
        .seconds;
  }

  /// Returns the bytes of one checkpoint.
  [[nodiscard]] int64_t checkpoint_bytes() const {
    (void)seconds({.saves = true});
    int64_t bytes = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_ / Autosave::names().front()))
      if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
    return bytes;
  }

 private:
  bench::Subject subject_;
  DatasetPtr set_;
  std::filesystem::path folder_;
};

void compare(const bench::Subject& subject, const std::filesystem::path& folder, int rounds) {
  const Fits fits(subject, folder);
  const Way none{}, background{.saves = true, .in_background = true}, waiting{.saves = true};
  std::printf("\n%s, %lld steps of %lld samples, a checkpoint of %s every %lld\n",
              subject.model.c_str(), static_cast<long long>(kSteps),
              static_cast<long long>(subject.batch), format_bytes(fits.checkpoint_bytes()).c_str(),
              static_cast<long long>(kEvery));
  const auto against_none = [&](const char* what, const Way& way) {
    bench::print(
        what, bench::paired(
                  rounds, [&] { return fits.seconds(none); }, [&] { return fits.seconds(way); }));
  };
  against_none("no saves against themselves (control)", none);
  against_none("saves in the background", background);
  against_none("saves that the fit waits for", waiting);
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<testing::TempDir> own;
  if (argc < 2) own.emplace();
  const std::filesystem::path folder = own ? own->path() : std::filesystem::path(argv[1]);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  init();
  compare({"resnet9", {.sample_shape = {3, 16, 16}, .width = 16}, 16}, folder, rounds);
  compare({"gpt", {.classes = 96, .sample_shape = {32}, .width = 128, .layers = 2, .heads = 4}, 8},
          folder, rounds);
}
