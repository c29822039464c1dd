// Calls sbatch, squeue and scancel.
#include "tare/launch/slurm_tools.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/launch/slurm_files.h"

namespace tare::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLogBytes = 1000;

/// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) c == '\'' ? text += "'\\''" : text += c;
  return text + '\'';
}

std::string script_of(const SlurmOptions& options, const std::vector<std::string>& agent,
                      const fs::path& folder) {
  std::string text = "#!/bin/bash -l\n";  // with what a user's shell has, such as module
  for (const auto& line : options.setup) text += line + '\n';
  text += "exec";
  for (const auto& word : agent) text += ' ' + quoted(word);
  return text + ' ' + quoted(folder.string()) + '\n';
}

/// Returns a name that no other sweep has.
std::string new_name() {
  std::random_device random;
  std::ostringstream name;
  name << "tare-" << std::hex << random() << random();
  return name.str();
}

}  // namespace

void require_slurm() {
  const fs::path nowhere("/dev/null");
  try {
    Child tool({.command = {"sbatch", "--version"}, .out = nowhere, .err = nowhere});
    if (tool.wait().exit_code == 0) return;
  } catch (const IoError&) {
  }
  throw StateError("sweep.slurm", "sbatch cannot be executed",
                   "sweep where Slurm jobs are submitted, or with executor=local");
}

std::vector<std::string> in_each_task(std::vector<std::string> command, int64_t ranks) {
  if (ranks == 1) return command;
  // The last two are there because a cluster may have other defaults.
  command.insert(command.begin(), {"srun", "--ntasks=" + std::to_string(ranks), "--export=ALL",
                                   "--kill-on-bad-exit=0", "--wait=0"});
  return command;
}

SlurmTools::SlurmTools(fs::path folder, const SlurmOptions& options,
                       const std::vector<std::string>& agent, int64_t ranks)
    : folder_(std::move(folder)), options_(options), ranks_(ranks) {
  io::make_directories(folder_);
  io::write_atomically(folder_ / "agent.sh", script_of(options_, agent, folder_));
  if (!fs::exists(folder_ / "name")) io::write_atomically(folder_ / "name", new_name());
  name_ = io::read_text(folder_ / "name");
}

std::vector<std::string> SlurmTools::submit(int64_t count) {
  std::vector<std::string> command{"sbatch",
                                   "--parsable",
                                   "--array=0-" + std::to_string(count - 1),
                                   "--ntasks=" + std::to_string(ranks_),
                                   "--job-name=" + name_,
                                   "--requeue",
                                   "--open-mode=append",
                                   "--signal=B:USR1@" + std::to_string(options_.save_before_s),
                                   "--output=" + (folder_ / "%A_%a.log").string()};
  command.insert(command.end(), options_.options.begin(), options_.options.end());
  command.push_back((folder_ / "agent.sh").string());
  const ToolOutput output = call(command);
  if (output.exit_code != 0)
    throw StateError("sweep.slurm", "sbatch refuses: " + printable(output.err));
  const std::string job = output.out.substr(0, output.out.find_first_of(";\n"));  // ";CLUSTER"
  std::vector<std::string> tasks;
  for (int64_t i = 0; i < count; ++i) tasks.push_back(job + '_' + std::to_string(i));
  log::info("[sweep] submitted " + std::to_string(count) + " agents as job " + job);
  return tasks;
}

std::vector<std::string> SlurmTools::begun() const {
  std::vector<std::string> tasks;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.is_directory() && has_state(entry.path()))
      tasks.push_back(entry.path().filename().string());
  return tasks;
}

void SlurmTools::ask() {
  squeue_.emplace(begin({"squeue", "--noheader", "--array", "--user=" + std::to_string(getuid()),
                         "--name=" + name_, "--format=%i %T"}));
}

std::optional<SlurmTools::Tasks> SlurmTools::answer() {
  if (!squeue_ || !squeue_->has_ended()) return std::nullopt;
  const ToolOutput output = finish(*squeue_, "squeue");
  squeue_.reset();
  if (output.exit_code == 0) {
    has_warned_ = false;
    return parsed(output.out);
  }
  if (!std::exchange(has_warned_, true))
    log::warning("[sweep] squeue fails: " + printable(output.err) +
                 "; jobs are assumed to be running");
  return std::nullopt;
}

SlurmTools::Tasks SlurmTools::wait_for_answer() {
  ask();
  const ToolOutput output = finish(*squeue_, "squeue");
  squeue_.reset();
  if (output.exit_code != 0)
    throw StateError("sweep.slurm", "squeue fails: " + printable(output.err));
  return parsed(output.out);
}

SlurmTools::Tasks SlurmTools::parsed(const std::string& text) {
  Tasks tasks;
  std::istringstream lines(text);
  for (std::string id, state; lines >> id >> state;) tasks[id] = state;
  return tasks;
}

void SlurmTools::cancel(const std::vector<std::string>& tasks) {
  if (tasks.empty()) return;
  std::vector<std::string> command{"scancel"};
  command.insert(command.end(), tasks.begin(), tasks.end());
  if (const ToolOutput output = call(command); output.exit_code != 0)
    log::warning("[sweep] scancel fails: " + printable(output.err));
}

std::string SlurmTools::log_of(const std::string& task) const {
  const fs::path file = folder_ / (task + ".log");
  if (!fs::exists(file)) return "nothing";
  const std::string text = io::read_text(file);
  return printable(text.substr(text.size() - std::min(text.size(), kLogBytes)), kLogBytes);
}

Child SlurmTools::begin(const std::vector<std::string>& command) const {
  const ChildStart how{.command = command,
                       .out = folder_ / (command.front() + ".out"),
                       .err = folder_ / (command.front() + ".err")};
  std::error_code ignored;  // then it is missing, or Child reports why not
  fs::remove(how.out, ignored);
  fs::remove(how.err, ignored);
  return Child(how);
}

SlurmTools::ToolOutput SlurmTools::finish(Child& tool, const std::string& name) const {
  const ChildEnd end = tool.wait();
  return {.exit_code = end.signal != 0 ? 128 + end.signal : end.exit_code,
          .out = io::read_text(folder_ / (name + ".out")),
          .err = io::read_text(folder_ / (name + ".err"))};
}

SlurmTools::ToolOutput SlurmTools::call(const std::vector<std::string>& command) const {
  Child tool = begin(command);
  return finish(tool, command.front());
}

}  // namespace tare::launch
