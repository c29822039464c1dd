// Tests init() with a driver and a plug-in but without a GPU: the probe is in a folder of its own,
// where both are stand-ins.
#include "tare/runtime/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/init_outcome.h"
#include "support/temp_dir.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class Plugin : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"bin", "lib"}) fs::create_directory(folder_ / name);
    fs::copy_file(init_probe(), folder_ / "bin/probe");
    fs::copy_file(TARE_FAKE_DRIVER, folder_ / "lib/libcuda.so.1");
  }
  void place(const char* plugin, const std::string& in = "lib") const {
    fs::copy_file(plugin, folder_ / in / "libtare_cuda.so");
  }
  /// As a program with that driver; `role` is the stand-in plug-in's.
  [[nodiscard]] InitOutcome probe(const std::string& thing, const std::string& role = "") const {
    return run_init_probe(
        folder_ / "bin/probe", thing,
        "LD_LIBRARY_PATH=" + (folder_ / "lib").string() + " TARE_FAKE_PLUGIN=" + role);
  }

 private:
  TempDir folder_;
};

TEST_F(Plugin, AddsItsDevices) {
  place(TARE_FAKE_PLUGIN);
  const auto outcome = probe("cuda_on");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("devices cpu cuda:0\n"));
  EXPECT_THAT(outcome.text, HasSubstr("in phase 0, step 0, stack 0"));
}

TEST_F(Plugin, IsFoundBesideTheProgram) {
  place(TARE_FAKE_PLUGIN, "bin");
  EXPECT_THAT(probe("nothing").text, HasSubstr("devices cpu cuda:0\n"));
}

TEST_F(Plugin, IsNotLoadedWhereCudaIsOff) {
  place(TARE_FAKE_PLUGIN);
  EXPECT_THAT(probe("cuda_off").text, HasSubstr("devices cpu\n"));
}

TEST_F(Plugin, MayRejectTheDevice) {
  place(TARE_FAKE_PLUGIN);
  const auto outcome = probe("nothing", "rejects");
  EXPECT_EQ(outcome.code, 11) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("[fake_plugin] the device is too old"));
}

#ifdef TARE_FAKE_NVTX_TOOL
TEST_F(Plugin, MarksPhasesWhereAProfilerIsAttached) {
  place(TARE_FAKE_PLUGIN);
  ::setenv("NVTX_INJECTION64_PATH", TARE_FAKE_NVTX_TOOL, 1);
  const auto attached = probe("cuda_on");
  ::unsetenv("NVTX_INJECTION64_PATH");
  EXPECT_EQ(attached.code, 0) << attached.text;
  EXPECT_THAT(attached.text, HasSubstr("domain tare\n"));
  EXPECT_THAT(attached.text, HasSubstr("push forward\npush distil\npop\npush data\npop\npop\n"));
  EXPECT_THAT(probe("cuda_on").text, Not(HasSubstr("push")));
}
#endif

// Tare's engine must be in place before the first backward on a device.
TEST_F(Plugin, RefusesAnotherAutogradEngine) {
  place(TARE_FAKE_PLUGIN);
  const auto outcome = probe("foreign_engine");
  EXPECT_EQ(outcome.code, 10) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("with an autograd engine that is not LibTorch's own"));
}

struct Fault {
  const char* name;
  const char* plugin;
  const char* role;
  const char* problem;
};

class BrokenPlugin : public Plugin, public ::testing::WithParamInterface<Fault> {};

// Where CUDA was asked for it is an error; otherwise the program runs without and says why.
TEST_P(BrokenPlugin, IsAnErrorOrAWarning) {
  const Fault& fault = GetParam();
  if (fault.plugin) place(fault.plugin);
  const auto asked = probe("cuda_on", fault.role);
  EXPECT_EQ(asked.code, 12) << asked.text;
  EXPECT_THAT(asked.text, HasSubstr(fault.problem));
  EXPECT_THAT(asked.text, HasSubstr("cuda = automatic runs without"));
  const auto automatic = probe("nothing", fault.role);
  EXPECT_EQ(automatic.code, 0) << automatic.text;
  EXPECT_THAT(
      automatic.text,
      HasSubstr(std::string("the host is used, because cuda is not there: ") + fault.problem));
  EXPECT_THAT(automatic.text, HasSubstr("devices cpu\n"));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BrokenPlugin,
    ::testing::Values(
        Fault{"Missing", nullptr, "", "the CUDA plug-in was not loaded: libtare_cuda.so: "},
        Fault{"AnotherFile", TARE_FAKE_DRIVER, "", "libtare_cuda.so is not a plug-in"},
        Fault{"NoDevice", TARE_FAKE_PLUGIN, "no_device",
              "the driver shows no card that can be used; look at `nvidia-smi`"},
        Fault{"Older", TARE_FAKE_PLUGIN, "older", "libtare_cuda.so is of another version of Tare"}),
    [](const auto& fault) { return fault.param.name; });

}  // namespace
}  // namespace tare::testing
