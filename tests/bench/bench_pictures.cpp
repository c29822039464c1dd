// Measures an epoch of training on a folder of JPEG files, which are decoded, cropped and flipped
// in each epoch, against the same training on float tensors of that size in memory. Prints the
// ratios of the times of epochs in turns, with the training on tensors against itself as the A/A
// control, and the processor time of a picture in the loader.
//
// Run: build/bin/bench_pictures [ROUNDS] [MODEL...]; defaults: 5, resnet18 and mobilenet_v3_small
#include <tare/tare.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

// jpeglib.h needs <cstdio> in front of it.
#include <jpeglib.h>

#include "bench/paired.h"
#include "support/temp_dir.h"

namespace {

using namespace tare;
namespace fs = std::filesystem;

constexpr int64_t kSide = 224, kBatch = 16, kClasses = 4;

/// Returns uint8 [kSide, kSide, 3] with the detail of a photograph: shapes, edges and some noise.
at::Tensor picture() {
  const auto shapes = torch::upsample_bilinear2d(torch::rand({1, 3, 12, 12}), {kSide, kSide},
                                                 /*align_corners=*/true);
  const auto edges = torch::upsample_nearest2d(torch::rand({1, 3, 28, 28}), {kSide, kSide});
  const auto mixed = 0.7 * shapes + 0.2 * edges + 0.05 * torch::randn({1, 3, kSide, kSide});
  return (mixed.clamp(0, 1) * 255).to(torch::kByte).squeeze(0).permute({1, 2, 0}).contiguous();
}

/// Writes a JPEG file as cameras do: quality 90, colours in a half of the resolution.
void write_jpeg(const fs::path& path, const at::Tensor& pixels) {
  jpeg_error_mgr errors{};
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&errors);  // ends the program, which is right for a bench
  jpeg_create_compress(&info);
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (!file) throw IoError("bench_pictures", path.string(), "cannot be written");
  jpeg_stdio_dest(&info, file);
  info.image_width = info.image_height = kSide;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (int64_t y = 0; y < kSide; ++y) {
    JSAMPROW row = pixels.mutable_data_ptr<uint8_t>() + y * kSide * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::fclose(file);
}

void write_pictures(const fs::path& folder, int64_t count) {
  torch::manual_seed(1);
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const fs::path path =
        folder / std::to_string(i % kClasses) / (std::to_string(i / kClasses) + ".jpg");
    fs::create_directories(path.parent_path());
    write_jpeg(path, picture());
    bytes += static_cast<int64_t>(fs::file_size(path));
  }
  std::printf("%lld JPEG files of %lld x %lld pixels, %.1f kB each\n",
              static_cast<long long>(count), static_cast<long long>(kSide),
              static_cast<long long>(kSide),
              static_cast<double>(bytes) / static_cast<double>(count) / 1e3);
}

/// Returns the training split of the folder, as a recipe gives it.
DatasetPtr pictures_in(const fs::path& folder, int64_t count) {
  return datasets::make(
             {.name = "image_folder",
              .count = count,
              .folder = folder,
              .cache = 0,
              .train = 1,
              .valid = 0,
              .transforms = config::read<Transforms>(config::parse_text(
                  "[{random_resized_crop: {height: 224, width: 224}}, flip, "
                  "{normalise: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}}]",
                  "transforms"))})
      .splits.train;
}

/// Prints what a picture costs in the loader, on one thread.
void print_cost(const DatasetPtr& pictures) {
  const auto cpu_seconds = [] {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  Loader loader(pictures, {.batch = kBatch, .shuffle = true, .workers = 1, .training = true});
  loader.start(0);
  const double begin = cpu_seconds();
  for (Batch batch; loader.next(batch);) {
  }
  std::printf("decoded, cropped, flipped, normalised: %.2f ms of a processor for a picture\n",
              1e3 * (cpu_seconds() - begin) / static_cast<double>(pictures->size()));
}

class Training {
 public:
  Training(const std::string& model, DatasetPtr set, int64_t workers)
      : learner_(made(model), {.train = std::move(set)}, options(workers)) {
    (void)epoch_seconds();  // makes the optimizer, and fills the caches
  }

  double epoch_seconds() {
    return learner_.fit(1, {.lr = 0.01, .schedule = {.kind = "constant"}}).seconds;
  }

 private:
  static Model made(const std::string& model) {
    torch::manual_seed(1);
    return models::make(model, {.classes = kClasses, .sample_shape = {3, kSide, kSide}});
  }
  static LearnerOptions options(int64_t workers) {
    LearnerOptions options;
    options.device = "cpu";
    options.batch = kBatch;
    options.workers = workers;
    options.progress = false;
    options.optimizer = {.kind = "sgd", .momentum = 0.9};
    return options;
  }

  Learner learner_;
};

void compare(const std::string& model, const fs::path& folder, int64_t count, int rounds) {
  const DatasetPtr pictures = pictures_in(folder, count);
  const DatasetPtr tensors =
      tensor_dataset(torch::randn({count, 3, kSide, kSide}), torch::randint(kClasses, {count}));
  std::printf("\n%s, epochs of %lld pictures in batches of %lld, %d threads\n", model.c_str(),
              static_cast<long long>(count), static_cast<long long>(kBatch), at::get_num_threads());
  Training preloaded(model, tensors, 1);
  const auto against_tensors = [&](const char* what, Training& other) {
    bench::print(what, bench::paired(
                           rounds, [&] { return preloaded.epoch_seconds(); },
                           [&] { return other.epoch_seconds(); }));
  };
  for (const int64_t workers : {0, 1, 2}) {
    Training of_files(model, pictures, workers);
    against_tensors(("JPEG files, workers: " + std::to_string(workers)).c_str(), of_files);
  }
  Training same(model, tensors, 1);
  against_tensors("tensors against themselves (control)", same);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::vector<std::string> models(argv + std::min(argc, 2), argv + argc);
  if (models.empty()) models = {"resnet18", "mobilenet_v3_small"};
  constexpr int64_t kMost = 384;
  init();
  const testing::TempDir folder;
  write_pictures(folder.path(), kMost);
  print_cost(pictures_in(folder.path(), kMost));
  for (const std::string& model : models)
    compare(model, folder.path(), model.starts_with("mobilenet") ? kMost : kMost / 3, rounds);
}
