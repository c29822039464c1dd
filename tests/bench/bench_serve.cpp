// Loads a server of predictions with concurrent clients, and prints latency and throughput.
//
// Usage: bench_serve PORT FILE CONNECTIONS SECONDS
// Each connection posts the bytes of the picture FILE to /predict of 127.0.0.1, and again as soon
// as the answer is there. bench_serve.py starts the servers.
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Worker {
  std::vector<double> seconds;  // of each answer
  int failed = 0;
};

void work(int port, const std::string& body, Clock::time_point end, Worker& into) {
  httplib::Client client("127.0.0.1", port);
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  while (Clock::now() < end) {
    const Clock::time_point start = Clock::now();
    const auto answer = client.Post("/predict", body, "image/png");
    const std::chrono::duration<double> took = Clock::now() - start;
    if (answer && answer->status == 200)
      into.seconds.push_back(took.count());
    else
      ++into.failed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int port = std::stoi(argv[1]), connections = std::stoi(argv[3]);
  std::ifstream file(argv[2], std::ios::binary);
  const std::string body{std::istreambuf_iterator<char>(file), {}};
  const std::chrono::duration<double> length(std::stod(argv[4]));
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(length);
  std::vector<Worker> workers(static_cast<size_t>(connections));
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&] { work(port, body, end, worker); });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  int failed = 0;
  for (const Worker& worker : workers) {
    all.insert(all.end(), worker.seconds.begin(), worker.seconds.end());
    failed += worker.failed;
  }
  if (all.empty()) return 1;
  std::ranges::sort(all);
  const auto quantile = [&](double share) {
    return 1e3 * all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))];
  };
  std::printf("%.2f %.2f %.1f %d\n", quantile(0.5), quantile(0.99),
              static_cast<double>(all.size()) / length.count(), failed);
}
