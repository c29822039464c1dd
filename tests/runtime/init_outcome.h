// Runs runtime_init_probe, a process of its own for each call of init().
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "support/program.h"

namespace tare::testing {

struct InitOutcome {
  int code = -1;
  std::string text;  ///< of both streams
};

inline std::string init_probe() { return program_path("runtime_init_probe"); }

/// `environment` is in env(1)'s form.
inline InitOutcome run_init_probe(const std::string& program, const std::string& thing,
                                  const std::string& environment) {
  InitOutcome outcome;
  FILE* pipe = popen(("env " + environment + " " + program + " " + thing + " 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  char part[256];
  while (std::fgets(part, sizeof(part), pipe)) outcome.text += part;
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace tare::testing
