// A Slurm of one node in a temporary folder: munge, controller and node, with fake GPUs.
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/files.h"
#include "support/free_port.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace tare::testing {

/// Starts the daemons, which runs as root only, and stops them. Works without systemd and cgroups.
/// Programs find it by SLURM_CONF, which it sets; it sets HOME to its folder too. The node has four
/// processors, whatever the machine has, and two GPUs; jobs of the partition `urgent` take the
/// place of those of `main`.
class SlurmCluster {
 public:
  SlurmCluster() {
    if (::geteuid() != 0) {
      problem_ = "starting Slurm's daemons needs root";
      return;
    }
    for (const char* name : {"munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"})
      if (path_of(name).empty()) {
        problem_ = std::string(name) + " is not installed (Debian: slurm-wlm, munge)";
        return;
      }
    write_files();
    ::setenv("SLURM_CONF", (folder_ / "slurm.conf").c_str(), 1);
    // Jobs are login shells, and a user's profile may wait for locks.
    ::setenv("HOME", folder_.path().c_str(), 1);
    start("munged", {"--key-file", file("munge.key"), "--socket", file("munge.socket"),
                     "--pid-file", file("munged.pid"), "--log-file", file("munged.log"),
                     "--seed-file", file("munge.seed"), "--force"});
    start("slurmctld", {});
    start("slurmd", {"-N", "n1"});
    wait_until_idle();
  }
  ~SlurmCluster() {
    if (!started_.empty()) call("scancel", {"--user=root"});
    for (const char* name : {"slurmd.pid", "slurmctld.pid", "munged.pid"}) end(folder_ / name);
  }
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  /// Why it is not there; empty: it is.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// Returns the logs of its controller and its node.
  [[nodiscard]] std::string log() const {
    return content_of(folder_ / "slurmctld.log") + content_of(folder_ / "slurmd.log");
  }
  /// One of Slurm's programs.
  static ProgramResult call(const std::string& name, const std::vector<std::string>& arguments) {
    return run_program(path_of(name), arguments);
  }
  /// "4_0 RUNNING" on each line, of all jobs.
  static std::string jobs() {
    return call("squeue", {"--noheader", "--array", "--format=%i %T"}).out;
  }

 private:
  static std::string path_of(const std::string& program) {
    for (const char* place : {"/usr/sbin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/"})
      if (std::filesystem::exists(place + program)) return place + program;
    return {};
  }

  [[nodiscard]] std::string file(const std::string& name) const { return folder_ / name; }

  void write_files() {
    std::random_device random;
    std::ofstream key(folder_ / "munge.key", std::ios::binary);
    for (int i = 0; i < 256; ++i) {
      const unsigned word = random();
      key.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
    key.close();
    ::chmod(file("munge.key").c_str(), 0400);
    ::chmod(folder_.path().c_str(), 0755);
    std::ofstream gres(folder_ / "gres.conf");
    for (int i = 0; i < 2; ++i) {  // Slurm wants devices, this one is /dev/null
      const std::string card = file("nvidia" + std::to_string(i));
      if (::mknod(card.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0)
        gres << "NodeName=n1 Name=gpu File=" << card << '\n';
    }
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    const std::string here = folder_.path().string();
    std::ofstream(folder_ / "slurm.conf")
        << "ClusterName=test\nSlurmUser=root\nSlurmctldHost=" << host << "(127.0.0.1)\n"
        << "AuthType=auth/munge\nAuthInfo=cred_expire=10,socket=" << file("munge.socket")
        << '\n'  // a requeued job waits until its credential has expired

        << "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n"
        << "JobAcctGatherType=jobacct_gather/none\nReturnToService=2\nKillWait=5\nMinJobAge=30\n"
        << "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nGresTypes=gpu\n"
        << "SlurmdParameters=config_overrides\n"  // more processors than there are
        << "SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0\n"
        << "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
        << "SlurmctldPort=" << free_port() << "\nSlurmdPort=" << free_port() << '\n'
        << "StateSaveLocation=" << here << "/state\nSlurmdSpoolDir=" << here << "/spool\n"
        << "SlurmctldPidFile=" << here << "/slurmctld.pid\nSlurmdPidFile=" << here
        << "/slurmd.pid\n"
        << "SlurmctldLogFile=" << here << "/slurmctld.log\nSlurmdLogFile=" << here
        << "/slurmd.log\n"
        << "NodeName=n1 NodeHostname=" << host << " NodeAddr=127.0.0.1 Port=" << free_port()
        << " CPUs=4 Gres=gpu:2\n"
        << "PartitionName=main Nodes=n1 Default=YES State=UP PriorityTier=1\n"
        << "PartitionName=urgent Nodes=n1 State=UP PriorityTier=10\n";
    std::filesystem::create_directories(folder_ / "state");
    std::filesystem::create_directories(folder_ / "spool");
  }

  /// A daemon, which returns when it is there.
  void start(const std::string& name, const std::vector<std::string>& arguments) {
    if (!problem_.empty()) return;
    const auto result = call(name, arguments);
    started_.push_back(name);
    if (result.status != 0)
      problem_ = name + " does not start: " + result.err + content_of(folder_ / (name + ".log"));
  }

  void wait_until_idle() {
    for (int tries = 0; problem_.empty(); ++tries) {
      const auto nodes = call("sinfo", {"--noheader", "--format=%T", "--partition=main"});
      if (nodes.out == "idle\n") return;
      if (tries == 100)
        problem_ = "Slurm's node does not come up: " + nodes.out + nodes.err + log();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

  static void end(const std::filesystem::path& pid_file) {
    pid_t pid = 0;
    if (std::ifstream(pid_file) >> pid && pid > 0) ::kill(pid, SIGTERM);
    for (int tries = 0; pid > 0 && ::kill(pid, 0) == 0 && tries < 100; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

  TempDir folder_;
  std::string problem_;
  std::vector<std::string> started_;
};

}  // namespace tare::testing
