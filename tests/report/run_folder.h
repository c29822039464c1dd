// The folder of a run as `tare run` leaves it, written by hand.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/files.h"

namespace tare::testing {

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Two phases, "head" of three epochs and `second` of two, each with a steps file.
inline void write_run(const std::filesystem::path& folder, const std::string& second = "all",
                      const std::string& name = "digits") {
  std::filesystem::create_directories(folder);
  write_file(folder / "recipe.yaml", "name: '" + name + "'\nbatch: 64\nphases:\n  - name: head\n" +
                                         "    epochs: 3\n  - name: '" + second + "'\n");
  const std::string header = "epoch,train_loss,valid_loss,accuracy,seconds\n";
  write_file(folder / "head.csv",
             header + "0,2.1,2,0.31,1.5\n1,1.2,1.3,0.55,1.5\n2,0.8,nan,0.7,1.5\n");
  write_file(folder / (second + ".csv"), header + "3,0.5,0.6,0.8,4\n4,0.3,0.4,0.9,4\n");
  for (const auto& phase : {std::string("head"), second}) {
    std::string steps = "step,loss,lr\n";
    for (int i = 1; i <= 90; ++i)
      steps += std::to_string(i) + ',' + std::to_string(2.0 / i + 0.01 * (i % 7)) + ',' +
               std::to_string(1e-4 * (i < 45 ? i : 90 - i)) + '\n';
    write_file(folder / (phase + ".steps.csv"), steps);
  }
  const auto phase = [](const std::string& title, int scale) {
    const auto bytes = std::to_string(scale * 1000000);
    return "{\"name\":\"" + title + "\",\"epochs\":[],\"seconds\":" + std::to_string(scale) +
           ".5,\"samples_per_s\":1234.5,\"consumed_bytes\":" + bytes + ",\"peak_bytes\":" + bytes +
           ",\"reclaimed_bytes\":" + bytes + ",\"residual_bytes\":0}";
  };
  write_file(folder / "report.json",
             "{\"name\":\"" + name +
                 "\",\"data\":\"1,000 digits\",\"device\":\"cpu\",\"reason\":"
                 "\"finished\",\"phases\":[" +
                 phase("head", 5) + ',' + phase(second, 30) +
                 "],\"test\":{\"loss\":0.41,\"metrics\":{\"accuracy\":0.913}},\"export\":{\"path\":"
                 "\"runs/digits/d.tare\",\"bytes\":1000000},\"residual_bytes\":0,"
                 "\"process_bytes\":150000000,\"seconds\":95.2}\n");
}

/// The run with these members of the whole.
inline void add_to_run(const std::filesystem::path& folder, const std::string& members) {
  std::string report = content_of(folder / "report.json");
  report.insert(report.find("\"phases\":["), members);
  write_file(folder / "report.json", report);
}

/// A timeline of `steps` training steps of 20 events each, with a category column. Weights of 40 MB
/// live through it; a block of 24 bytes is left behind in every tenth step.
inline void write_timeline(const std::filesystem::path& path, int steps) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  long long sum = 1000, block = 0;
  int count = 0;
  std::fprintf(file,
               "time_s,event,bytes,allocated_bytes,block,phase,allocated_in,category\n"
               "0,start,0,%lld,0,none,none,unknown\n",
               sum);
  const auto event = [&](bool allocation, long long number, long long bytes, const char* phase,
                         const char* in, const char* category) {
    sum += allocation ? bytes : -bytes;
    std::fprintf(file, "%.9f,%s,%lld,%lld,%lld,%s,%s,%s\n", 1e-4 * count++,
                 allocation ? "allocation" : "free", bytes, sum, number, phase, in, category);
  };
  event(true, ++block, 40'000'000, "none", "none", "parameters");
  for (int step = 0; step < steps; ++step) {
    const long long batch = ++block, first = block + 1, bytes = 4'000'000 + 1000 * (step % 50);
    event(true, batch, 3'000'000, "data", "data", "batch");
    for (int i = 0; i < 8; ++i) event(true, ++block, bytes, "forward", "forward", "activations");
    const long long gradients = ++block;
    event(true, gradients, 10'000'000, "backward", "backward", "gradients");
    for (long long i = first + 7; i >= first; --i)
      event(false, i, bytes, "backward", "forward", "activations");
    event(false, gradients, 10'000'000, "step", "backward", "gradients");
    if (step % 10 == 0) event(true, ++block, 24, "step", "step", "other");
    event(false, batch, 3'000'000, "step", "data", "batch");
  }
  std::fclose(file);
}

}  // namespace tare::testing
