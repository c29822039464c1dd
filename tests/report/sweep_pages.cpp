// Writes pages of sweeps into a folder, for browser_test.py: `sweep_pages FOLDER`.
#include <filesystem>
#include <fstream>

#include "report/example_sweep.h"
#include "tare/report/sweep_report.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::filesystem::path folder = arguments[1];
  const auto write = [&folder](const char* name, const tare::report::SweepSummary& sweep) {
    std::ofstream file(folder / name, std::ios::binary);
    file << tare::report::sweep_page(sweep);
    return file.flush().good();
  };
  using tare::testing::example_sweep;
  return write("small.html", example_sweep(60, 12)) &&
                 write("large.html", example_sweep(1000, 100)) &&
                 write("empty.html", example_sweep(0, 0)) &&
                 write("hostile.html", tare::testing::hostile_sweep())
             ? 0
             : 1;
}
