// Reads and writes the files of coordinators and agents.
#include "tare/launch/slurm_files.h"

#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kJob = "order.json", *kState = "state.json";

/// Returns the text of a file; empty if it cannot be read now.
std::string text_of(const fs::path& file) {
  try {
    return io::read_text(file);
  } catch (const IoError&) {
    return {};
  }
}

json parsed(const fs::path& file) {
  return json::parse(text_of(file), nullptr, /*allow_exceptions=*/false);
}

}  // namespace

void write(const fs::path& agent, const Job& job) {
  const ChildStart& how = job.how;
  const json all{{"number", job.number},    {"stop", job.stop},
                 {"leave", job.retire},     {"name", how.name},
                 {"command", how.command},  {"out", how.out.string()},
                 {"err", how.err.string()}, {"environment", how.environment},
                 {"ranks", job.ranks}};
  try {
    io::write_atomically(agent / kJob, all.dump());
  } catch (const json::type_error&) {
    throw ConfigError("sweep", "the command of " + printable(how.name) + " is not UTF-8");
  }
}

void write(const fs::path& agent, const AgentState& state) {
  const json all{{"restarts", state.restarts}, {"host", state.host},
                 {"done", state.done},         {"exit_code", state.end.exit_code},
                 {"signal", state.end.signal}, {"saved", state.saved},
                 {"left", state.retired}};
  io::write_atomically(agent / kState, all.dump());
}

Job read_job(const fs::path& agent) {
  const json all = parsed(agent / kJob);
  if (!all.is_object()) return {};
  try {
    return {.number = all.at("number"),
            .how = {.name = all.at("name"),
                    .command = all.at("command"),
                    .out = all.at("out").get<std::string>(),
                    .err = all.at("err").get<std::string>(),
                    .environment = all.at("environment")},
            .ranks = all.value("ranks", int64_t{1}),
            .stop = all.at("stop"),
            .retire = all.at("leave")};
  } catch (const json::exception& error) {
    throw FormatError("sweep.slurm", (agent / kJob).string(), "order", error.what());
  }
}

AgentState read_state(const fs::path& agent) {
  const json all = parsed(agent / kState);
  if (!all.is_object()) return {};
  return {.restarts = all.value("restarts", int64_t{0}),
          .host = all.value("host", std::string()),
          .done = all.value("done", int64_t{0}),
          .end = {.exit_code = all.value("exit_code", 0), .signal = all.value("signal", 0)},
          .saved = all.value("saved", int64_t{0}),
          .retired = all.value("left", false)};
}

bool has_state(const fs::path& agent) {
  std::error_code error;
  return fs::exists(agent / kState, error);
}

std::string read_heartbeat(const fs::path& folder) { return text_of(folder / kHeartbeatFile); }

}  // namespace tare::launch
