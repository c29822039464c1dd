// Wrong devices and failing cards, with every command: one clear message each. All on the CUDA
// stand-in, which plays the failures; a real card has none on request.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/card_folder.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/program.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const CardRecipe kRecipe{.model = "{name: mlp, hidden: [16]}",
                         .phases = "[{name: all, epochs: 2}]"};
constexpr const char* kSweep = R"(name: cards
recipe: card.yaml
set: {device: auto, phases.0.epochs: 6}
parameters: {seed: [1, 2, 3, 4, 5, 6]}
resources: {max_per_gpu: 1}
)";

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Sets variables until the end of the scope.
class Variables {
 public:
  explicit Variables(const Environment& wanted) {
    for (const auto& [name, value] : wanted) set_.emplace_back(name, value);
  }

 private:
  std::list<ScopedVariable> set_;
};

/// Returns the digits that follow a text; empty: it is not there.
std::string figure_behind(const std::string& text, const std::string& before) {
  const size_t at = text.find(before);
  if (at == text.npos) return "";
  const size_t start = at + before.size();
  return text.substr(start, text.find_first_not_of("0123456789", start) - start);
}

/// Holds the memory of the stand-in's card 0, but for some bytes, as a process that is not the
/// program. The variables that share the card must be set.
class OtherProcess {
 public:
  OtherProcess(size_t total_bytes, size_t free_bytes) {
    void* const library = ::dlopen("libcuda_stand_in.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(::dlerror());
    const auto allocate = reinterpret_cast<int (*)(void**, size_t)>(::dlsym(library, "cudaMalloc"));
    free_ = reinterpret_cast<int (*)(void*)>(::dlsym(library, "cudaFree"));
    if (!allocate || !free_ || allocate(&held_, total_bytes - free_bytes) != 0)
      throw std::runtime_error("the stand-in gives no memory");
  }
  ~OtherProcess() { free_(held_); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

 private:
  int (*free_)(void*) = nullptr;
  void* held_ = nullptr;
};

size_t count_of(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

class CardMistakes : public ::testing::Test {
 protected:
  /// Makes what the commands read: a recipe, a sweep, a bundle and images.
  static void SetUpTestSuite() {
    if (!is_stand_in()) return;
    folder_ = new CardFolder(kRecipe);
    std::ofstream(*folder_ / "sweep.yaml") << kSweep;
    const auto run = tare({"run", "card.yaml", "device=cpu", "name=bundle"});
    ASSERT_EQ(run.status, 0) << run.err;
    const auto images =
        tare({"data", "make", "generated_digits", "--count", "2", "--png", "--out", "png"});
    ASSERT_EQ(images.status, 0) << images.err;
  }
  static void TearDownTestSuite() { delete std::exchange(folder_, nullptr); }
  void SetUp() override {
    if (!folder_) GTEST_SKIP() << "only the CUDA stand-in fails on request";
    for (const char* leftover : {"runs/card", "runs/cards", "shared", "home"})
      fs::remove_all(*folder_ / leftover);
  }

  static ProgramResult tare(const std::vector<std::string>& words) { return folder_->tare(words); }
  [[nodiscard]] static fs::path path(const std::string& name) { return *folder_ / name; }
  [[nodiscard]] static Environment shared(Environment more) {
    more.emplace_back("STAND_IN_SHARED", folder_->shared());
    return more;
  }

  /// Runs a command and expects this status, and for a failure one error, in the words of Tare.
  static ProgramResult expect(int status, const std::vector<std::string>& words,
                              const std::string& part = {}) {
    const auto result = tare(words);
    const std::string what = words.front() + "\n" + result.out + result.err;
    EXPECT_EQ(result.status, status) << what;
    EXPECT_EQ(count_of(result.err, "[tare] error"), status == 0 ? 0U : 1U) << what;
    EXPECT_THAT(result.err, HasSubstr(part)) << what;
    for (const char* foreign :
         {"CUDA_LAUNCH_BLOCKING", "Exception raised", "terminate called", "frame #", "[W", "\\n"})
      EXPECT_THAT(result.err, Not(HasSubstr(foreign))) << what;
    return result;
  }

  static inline CardFolder* folder_ = nullptr;
};

// ---- names

TEST_F(CardMistakes, ANameThatIsNoDeviceIsRefusedWithWhatIsAllowed) {
  struct Name {
    const char* name;
    const char* of_run;
    const char* of_plan;
  };
  for (const Name& name :
       {Name{"cuda:7", "cuda:7 is not there, only cpu, cuda:0", "cuda:7 is not there"},
        Name{"cuda:foo", "device is not known, got cuda:foo; allowed: auto, cpu, cuda or cuda:N",
             "'cuda:foo' is no device to plan for"},
        Name{"cuda:-1", "device is not known, got cuda:-1", "'cuda:-1' is no device to plan for"},
        Name{"gpu", "device is not known (did you mean \"cuda\"?), got gpu",
             "'gpu' is no device to plan for"},
        Name{"CUDA", "device is not known (did you mean \"cuda\"?), got CUDA",
             "'CUDA' is no device to plan for"}}) {
    const std::string device = name.name;
    expect(2, {"run", "card.yaml", "device=" + device}, name.of_run);
    expect(2, {"plan", "card.yaml", "--device", device}, name.of_plan);
    expect(2, {"predict", "runs/bundle", "png", "--device", device}, name.of_run);
  }
  for (const char* device : {"cuda:foo", "gpu"})
    expect(2, {"sweep", "run", "sweep.yaml", std::string("set.device=") + device},
           "device is not known");
  for (const char* device : {"cuda:1", "cuda:7"})
    expect(2, {"sweep", "run", "sweep.yaml", std::string("set.device=") + device},
           std::string("[device] ") + device + " is not there, only cpu, cuda:0; use device: auto");
  expect(2, {"sweep", "run", "sweep.yaml", "set={}", "parameters={device: [cuda:0, cpu]}"},
         "parameters.device makes no other runs, because a device does not change what a run "
         "computes; allowed: `device` in `set` or in the recipe");
  EXPECT_FALSE(fs::exists(path("runs/cards")));
}

// ---- cards that cannot be used

struct Fault {
  const char* name;
  Environment environment;
  const char* why;          // as the error of a card that was asked for has it
  const char* libraries{};  // "none of the driver", "of the driver alone"

  friend std::ostream& operator<<(std::ostream& out, const Fault& fault) {
    return out << fault.name;
  }
};

class UnusableCard : public CardMistakes, public ::testing::WithParamInterface<Fault> {
 protected:
  void SetUp() override {
    CardMistakes::SetUp();
    if (IsSkipped()) return;
    Environment all = GetParam().environment;
    if (GetParam().libraries) all.emplace_back("LD_LIBRARY_PATH", libraries().string());
    variables_.emplace(all);
  }

  /// A folder of libraries in place of the stand-in's, which is the first of those in use.
  static fs::path libraries() {
    const std::string in_use = std::getenv("LD_LIBRARY_PATH");
    const fs::path all = in_use.substr(0, in_use.find(':'));
    const bool driver_alone = std::string(GetParam().libraries) == "of the driver alone";
    const fs::path some = path(GetParam().name);
    if (!fs::create_directory(some)) return some;
    for (const auto& entry : fs::directory_iterator(all)) {
      const bool is_driver = entry.path().filename() == "libcuda.so.1";
      if (is_driver == driver_alone)
        fs::create_symlink(fs::canonical(entry.path()), some / entry.path().filename());
    }
    return some;
  }

  std::optional<Variables> variables_;
};

TEST_P(UnusableCard, IsOneErrorThatSaysWhyWhereItIsAskedFor) {
  const std::string why = GetParam().why;
  expect(2, {"run", "card.yaml"}, "cuda:0 is not there, only cpu: ");
  expect(2, {"run", "card.yaml"}, why);
  expect(2, {"plan", "card.yaml"}, why);
  expect(2, {"plan", "card.yaml", "--device", "cuda:0"}, why);
  expect(2, {"predict", "runs/bundle", "png", "--device", "cuda:0"}, why);
  EXPECT_FALSE(fs::exists(path("runs/card"))) << "nothing is written before the device is known";
}

TEST_P(UnusableCard, LeavesTheHostToThoseThatAskForNone) {
  EXPECT_THAT(expect(0, {"run", "card.yaml", "device=cpu", "--overwrite"}).err,
              Not(HasSubstr("warning")));
  expect(0, {"run", "card.yaml", "device=auto", "--overwrite"});
  expect(0, {"plan", "card.yaml", "--device", "cuda:24GiB"});
  expect(0, {"predict", "runs/bundle", "png"});
  expect(0, {"top"});
  expect(0, {"sweep", "run", "sweep.yaml", "parameters={seed: [1, 2]}"});
}

TEST_P(UnusableCard, IsExplainedByTheDoctor) {
  const auto doctor = expect(0, {"doctor"});
  EXPECT_THAT(doctor.out,
              HasSubstr(std::string(GetParam().name) == "NoDriver" ? "none (no libcuda.so.1)"
                                                                   : GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, UnusableCard,
    ::testing::Values(
        Fault{"NoDriver",
              {},
              "there is no NVIDIA driver (libcuda.so.1); install it",
              "none of the driver"},
        Fault{"NoRunTime", {}, "the CUDA plug-in was not loaded: lib", "of the driver alone"},
        Fault{"OldDriver",
              {{"STAND_IN_DRIVER", "12020"}},
              "The NVIDIA driver on your system is too old (found version 12020); look"},
        Fault{"Maxwell",
              {{"STAND_IN_SM", "50"}},
              "'CUDA stand-in' has compute capability 5.0, and this LibTorch has kernels for 7.5"},
        Fault{"Pascal", {{"STAND_IN_SM", "60"}}, "has compute capability 6.0"},
        Fault{"NoneVisible",
              {{"CUDA_VISIBLE_DEVICES", ""}},
              "CUDA_VISIBLE_DEVICES is '', which hides every card; unset it"},
        Fault{"MinusOneVisible",
              {{"CUDA_VISIBLE_DEVICES", "-1"}},
              "CUDA_VISIBLE_DEVICES is '-1', which hides every card"},
        Fault{"OutOfRange",
              {{"CUDA_VISIBLE_DEVICES", "9"}},
              "CUDA_VISIBLE_DEVICES is '9', and CUDA knows no such card; unset it, or give"},
        Fault{"Garbage",
              {{"CUDA_VISIBLE_DEVICES", "gpu\tzero"}},
              "CUDA_VISIBLE_DEVICES is 'gpu\\tzero', and CUDA knows no such card"},
        Fault{"NoSuchSlice",
              {{"CUDA_VISIBLE_DEVICES", "MIG-99999999-9999-9999-9999-999999999999"}},
              "is 'MIG-99999999-9999-9999-9999-999999999999', and CUDA knows no such card"}),
    [](const auto& fault) { return fault.param.name; });

TEST_F(CardMistakes, OfAnOldAndANewCardTheNewOneIsUsed) {
  const Variables two(Environment{{"STAND_IN_CARDS", "2"}, {"STAND_IN_SM", "50,90"}});
  expect(2, {"run", "card.yaml"}, "cuda:0 is not there, only cpu, cuda:1: 'CUDA stand-in' has");
  const auto automatic = expect(0, {"run", "card.yaml", "device=auto", "--verbose"});
  EXPECT_THAT(automatic.out, HasSubstr("cuda:1 (CUDA stand-in"));
  EXPECT_THAT(automatic.err, HasSubstr("warning: [device] cuda:1 is used, because cuda:0 is not"));
  const auto plan = expect(0, {"sweep", "plan", "sweep.yaml"});
  {
    const Variables alone(Environment{{"CUDA_VISIBLE_DEVICES", "1"}});
    std::string text = expect(0, {"sweep", "plan", "sweep.yaml"}).out;
    EXPECT_EQ(plan.out, text.replace(text.find("cuda:0 ("), 8, "cuda:1 ("))
        << "the old card has no say in what the new one takes, but in how the cards are counted";
  }
  const auto sweep =
      expect(0, {"sweep", "run", "sweep.yaml"},
             "no run is placed on cuda:0 (GPU-01010101-0101-0101-0101-010101010101): ");
  EXPECT_THAT(sweep.out, HasSubstr("6 complete, 0 failed"));
}

TEST_F(CardMistakes, ASweepOfACardByItsNumberUsesThatCardOrIsRefused) {
  const Variables two(Environment{{"STAND_IN_CARDS", "2"}, {"STAND_IN_SM", "50,90"}});
  for (const char* verb : {"plan", "run"})
    expect(2, {"sweep", verb, "sweep.yaml", "set.device=cuda:0"},
           "device has no card that can be used: cuda:0 "
           "(GPU-01010101-0101-0101-0101-010101010101): 'CUDA "
           "stand-in' has compute capability 5.0");
  EXPECT_FALSE(fs::exists(path("runs/cards"))) << "refused before any run";
  const auto on_new = expect(0, {"sweep", "run", "sweep.yaml", "set.device=cuda:1"});
  EXPECT_THAT(on_new.out, HasSubstr("6 complete, 0 failed"));
  EXPECT_THAT(on_new.err, Not(HasSubstr("warning"))) << "the other card is not asked for";
  expect(2, {"sweep", "plan", "sweep.yaml", "set.device=cuda:2"},
         "cuda:2 is not there, only cpu, cuda:1");
}

TEST_F(CardMistakes, ASweepOfMoreRanksThanCardsIsRefused) {
  const Variables two(Environment{{"STAND_IN_CARDS", "2"}});
  expect(2, {"sweep", "run", "sweep.yaml", "resources.ranks=3"},
         "resources.ranks is more than the cards that can be used, of which each rank takes one, "
         "got 3; allowed: at most 2, or device: cpu");
  expect(2, {"sweep", "run", "sweep.yaml", "resources.ranks=2", "set.device=cuda:1"},
         "set.device names one card, and resources.ranks is 2");
  EXPECT_FALSE(fs::exists(path("runs/cards"))) << "refused before any run";
}

TEST_F(CardMistakes, ASweepCountsTheCardsThatTheUserSees) {
  const Variables two(Environment{{"STAND_IN_CARDS", "2"}});
  const std::string first = "GPU-01010101", second = "GPU-02020202";
  const auto plan = [](const char* device) {
    return expect(0, {"sweep", "plan", "sweep.yaml", std::string("set.device=") + device}).out;
  };
  EXPECT_THAT(plan("cuda"), ::testing::AllOf(HasSubstr(first), HasSubstr(second)));
  EXPECT_THAT(plan("cuda:0"), ::testing::AllOf(HasSubstr(first), Not(HasSubstr(second))));
  EXPECT_THAT(plan("cuda:1"), ::testing::AllOf(HasSubstr(second), Not(HasSubstr(first))));
  const Variables turned(Environment{{"CUDA_VISIBLE_DEVICES", "1,0"}});
  EXPECT_THAT(plan("cuda:0"), ::testing::AllOf(HasSubstr(second), Not(HasSubstr(first))));
}

TEST_F(CardMistakes, ACardThatIsNotThereInAListOfSeveralIsNamed) {
  const Variables two(Environment{{"STAND_IN_CARDS", "2"}, {"CUDA_VISIBLE_DEVICES", "1,9,0"}});
  expect(0, {"run", "card.yaml"},
         "CUDA_VISIBLE_DEVICES is '1,9,0', of which CUDA takes 1 only: it knows no such card");
  const Variables ended(Environment{{"CUDA_VISIBLE_DEVICES", "1,-1,9"}});
  EXPECT_THAT(expect(0, {"doctor"}).err, Not(HasSubstr("CUDA_VISIBLE_DEVICES")));
}

// ---- no memory for the context

TEST_F(CardMistakes, ACardWithoutMemoryForAContextIsOneErrorOfMemory) {
  const Variables full(
      Environment{{"STAND_IN_BYTES", "300000000"}, {"STAND_IN_CONTEXT", "500000000"}});
  const char* const why =
      "[device] cuda:0 'CUDA stand-in' cannot be opened: CUDA error: out of memory; the card has "
      "no "
      "memory left for what a process takes beside its tensors";
  expect(3, {"run", "card.yaml"}, why);
  expect(3, {"plan", "card.yaml"}, why);
  expect(3, {"predict", "runs/bundle", "png", "--device", "cuda:0"}, why);
  EXPECT_THAT(expect(0, {"doctor"}).out, HasSubstr("cannot be used: CUDA error: out of memory"));
  EXPECT_FALSE(fs::exists(path("runs/card")));
  for (const char* device : {"cuda", "cuda:0"})
    for (const char* verb : {"plan", "run"})
      expect(3, {"sweep", verb, "sweep.yaml", std::string("set.device=") + device},
             "device has no card that can be used: cuda:0 "
             "(GPU-01010101-0101-0101-0101-010101010101): out of "
             "memory: 286.1 MiB are free, and context and libraries of a run take 600 MiB; end "
             "other processes on the card");
  EXPECT_FALSE(fs::exists(path("runs/cards"))) << "refused before any run";
}

TEST_F(CardMistakes, WhereNoCardHasMemoryForAContextAutoTakesTheHostAndSaysSo) {
  const Variables full(
      Environment{{"STAND_IN_BYTES", "300000000"}, {"STAND_IN_CONTEXT", "500000000"}});
  const std::string why =
      "warning: [device] the host is used, because cuda:0 cannot be opened: CUDA error: out of "
      "memory; the card has no memory left";
  const auto run = expect(0, {"run", "card.yaml", "device=auto", "--verbose"}, why);
  EXPECT_EQ(count_of(run.err, "warning"), 1U) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Experiment 'all' on cpu"));
  EXPECT_THAT(expect(0, {"plan", "card.yaml", "device=auto"}, why).out, HasSubstr("on host"));
  expect(0, {"predict", "runs/bundle", "png", "--device", "auto"}, why);
  expect(3, {"run", "card.yaml", "device=auto", "--device-budget", "1GiB"},
         "this run uses the host, because cuda:0 cannot be opened: CUDA error: out of memory");
  EXPECT_THAT(expect(0, {"doctor"}).out, HasSubstr("device: auto  takes the host\n"));
  EXPECT_THAT(expect(0, {"top"}).out,
              HasSubstr("cuda:0: less is available than context and libraries of a process take "
                        "(600 MiB), so `device: auto` passes over it"));
  for (const char* verb : {"plan", "run"}) {
    const auto sweep =
        expect(0, {"sweep", verb, "sweep.yaml"},
               "no run is placed on cuda:0 (GPU-01010101-0101-0101-0101-010101010101): out "
               "of memory: 286.1 MiB are free");
    EXPECT_THAT(sweep.err, HasSubstr("the runs use the host, because no card takes them"));
    EXPECT_THAT(sweep.out, Not(HasSubstr("failed: "))) << sweep.out;
  }
}

TEST_F(CardMistakes, AutoTakesTheCardThatHasMemoryForAContextAndSaysSo) {
  const Variables full(Environment{{"STAND_IN_CARDS", "2"},
                                   {"STAND_IN_BYTES", "300000000,17179869184"},
                                   {"STAND_IN_CONTEXT", "500000000"}});
  const std::string why =
      "warning: [device] cuda:1 is used, because cuda:0 cannot be opened: CUDA error: out of "
      "memory";
  EXPECT_THAT(expect(0, {"run", "card.yaml", "device=auto", "--verbose"}, why).out,
              HasSubstr("cuda:1 (CUDA stand-in"));
  EXPECT_THAT(expect(0, {"plan", "card.yaml", "device=auto"}, why).out, HasSubstr("on cuda:1"));
  expect(0, {"predict", "runs/bundle", "png", "--device", "auto"}, why);
  EXPECT_THAT(expect(0, {"doctor"}).out, HasSubstr("device: auto  takes cuda:1\n"));
  expect(3, {"run", "card.yaml", "--overwrite"}, "; there is also cuda:1; device: auto takes");
  expect(0, {"run", "card.yaml", "device=cuda:1", "--overwrite"});
  expect(3, {"sweep", "run", "sweep.yaml", "set.device=cuda:0"}, "out of memory: 286.1 MiB");
  EXPECT_THAT(expect(0, {"sweep", "run", "sweep.yaml", "set.device=cuda:1"}).out,
              HasSubstr("6 complete, 0 failed"));
}

TEST_F(CardMistakes, ASweepItselfMakesNoContextOnACard) {
  const Variables one(
      shared({{"STAND_IN_BYTES", "1073741824"}, {"STAND_IN_CONTEXT", "600000000"}}));
  EXPECT_THAT(expect(0, {"sweep", "run", "sweep.yaml"}).out, HasSubstr("6 complete, 0 failed"))
      << "the card has memory for one context";
}

TEST_F(CardMistakes, ASweepPassesOverACardWithoutMemory) {
  const Variables full(shared({{"STAND_IN_CARDS", "2"},
                               {"STAND_IN_BYTES", "300000000,17179869184"},
                               {"STAND_IN_CONTEXT", "500000000"}}));
  EXPECT_THAT(expect(0, {"sweep", "run", "sweep.yaml"}).out, HasSubstr("6 complete, 0 failed"));
}

// 1 GiB holds two runs with the context that was measured, 100 MiB, and for one with 600
// MiB.
TEST_F(CardMistakes, ASweepPlacesRunsByTheContextThatARunHasMeasured) {
  const Variables one(
      shared({{"STAND_IN_BYTES", "1073741824"}, {"STAND_IN_CONTEXT", "104857600"}}));
  const std::vector<std::string> plan{"sweep", "plan", "sweep.yaml", "resources.max_per_gpu=2"};
  const std::string before = expect(0, plan).out;
  expect(0, {"run", "card.yaml"});
  EXPECT_THAT(content_of(path("home/plan/contexts.tsv")), HasSubstr("104857600\tCUDA stand-in\n"));
  EXPECT_NE(expect(0, plan).out, before);
}

TEST_F(CardMistakes, ACardThatAnotherProcessFillsIsNoSmallCard) {
  const Variables one(shared({{"STAND_IN_BYTES", "17179869184"}}));
  const OtherProcess other(size_t{16} << 30, size_t{60} << 20);
  const char* const has = "cuda:0, which has 60 MiB free of 16 GiB";
  const std::vector<std::string> large{"card.yaml", "model.hidden=[8192]", "micro_batch=32"};
  const auto with = [&](const char* command) {
    std::vector<std::string> words{command};
    words.insert(words.end(), large.begin(), large.end());
    return words;
  };
  EXPECT_THAT(expect(3, with("run"), has).err,
              HasSubstr("; `tare top` shows which processes hold the rest of the card: end them, "
                        "or take another card"));
  const auto plan = tare(with("plan"));
  EXPECT_EQ(plan.status, 3) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr(has));
  EXPECT_FALSE(fs::exists(path("runs/card")));
}

TEST_F(CardMistakes, ABudgetAboveTheCardIsRefused) {
  expect(2, {"run", "card.yaml", "--device-budget", "17GiB"},
         "[tare run] --device-budget must be at most 16 GiB, the memory of cuda:0 'CUDA stand-in', "
         "got 17 GiB; give less, or omit it");
}

// The allocator asks a card for a segment, by whose size no batch can be estimated.
TEST_F(CardMistakes, ARefusalOfACardIsInTheWordsOfTareWithTheAdviceOfThePlan) {
  const std::vector<std::string> settings{"card.yaml", "model={name: resnet9, width: 16}",
                                          "data.size=28", "micro_batch=32"};
  const auto with = [&](const char* command, const std::vector<std::string>& more) {
    std::vector<std::string> words{command};
    words.insert(words.end(), settings.begin(), settings.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Variables small(Environment{{"STAND_IN_SM", "80"}, {"STAND_IN_BYTES", "35651584"}});
  const auto plan = tare(with("plan", {}));
  EXPECT_EQ(plan.status, 3) << plan.err;
  const auto run = expect(3, with("run", {"--no-plan"}),
                          "[tare] error: [memory.allocate] out of memory on cuda:0: asked for ");
  for (const char* raw : {"CUDA out of memory", "Tried to allocate", "linear estimate"})
    EXPECT_THAT(run.err, Not(HasSubstr(raw)));
  const auto planned = figure_behind(plan.out, "largest micro-batch of this batch: ");
  ASSERT_NE(planned, "") << plan.out;
  EXPECT_THAT(run.err, HasSubstr(" in micro-batches of " + planned + " at most"));
  EXPECT_THAT(run.err, HasSubstr("change micro_batch at command line\n"));
  const auto refused = expect(3, with("run", {}));
  EXPECT_THAT(refused.err, HasSubstr("the largest micro-batch of this batch is " + planned + ","));
}

TEST_F(CardMistakes, TheDoctorMeasuresTheContext) {
  const Variables context(Environment{{"STAND_IN_CONTEXT", "524288000"}});
  EXPECT_THAT(expect(0, {"doctor"}).out, HasSubstr("context 500 MiB"));
}

TEST_F(CardMistakes, TheFirstAllocationMayBeRefused) {
  const Variables refused(Environment{{"STAND_IN_REFUSE", "1"}});
  expect(0, {"run", "card.yaml"});
  expect(0, {"doctor"});
  expect(0, {"predict", "runs/bundle", "png", "--device", "cuda:0"});
}

// ---- a card that falls off the bus

TEST_F(CardMistakes, ACardThatIsLostInAStepIsOneErrorAndLeavesTheCheckpoint) {
  const std::vector<std::string> words{"run", "card.yaml", "phases.0.epochs=200"};
  {
    const Variables lost(shared({{"STAND_IN_LOSE", "3000"}}));
    expect(1, words,
           "the card cuda:0 failed and cannot be used by this process any more: CUDA error: "
           "unspecified launch failure; start the program again");
  }
  EXPECT_TRUE(fs::exists(path("runs/card/autosave-0/manifest.json")));
  for (const char* kernels : {"3001", "3002", "3003", "3005", "3008", "3013"}) {
    const Variables lost(Environment{{"STAND_IN_LOSE", kernels}});
    EXPECT_EQ(count_of(tare(words).err, "[tare] error: "), 1U) << kernels;
  }
  const Variables gone(shared({}));
  auto again = words;
  again.emplace_back("--resume");
  expect(2, again,
         "cuda:0 is not there, only cpu: card 0 of this machine is lost; look at `nvidia-smi` and "
         "`dmesg`, and start the machine again; no other card is there");
  fs::remove(path("shared"));  // the card is back
  const auto resumed = expect(0, again);
  EXPECT_THAT(resumed.out, HasSubstr("continues"));
}

TEST_F(CardMistakes, ARunOfALostCardIsContinuedOnAnother) {
  std::vector<std::string> words{"run", "card.yaml", "phases.0.epochs=200"};
  const Variables two(shared({{"STAND_IN_CARDS", "2"}}));
  {
    const Variables lost(Environment{{"STAND_IN_LOSE", "3000,0"}});
    expect(1, words, "the card cuda:0 failed");
  }
  words.emplace_back("--resume");
  {
    const Variables first(Environment{{"CUDA_VISIBLE_DEVICES", "0"}});
    expect(
        2, words,
        "cuda:0 is not there, only cpu: card 0 of this machine is lost; look at `nvidia-smi` and "
        "`dmesg`; CUDA_VISIBLE_DEVICES is '0', and may name "
        "GPU-02020202-0202-0202-0202-020202020202; use device: auto");
    const Variables by_uuid(
        Environment{{"CUDA_VISIBLE_DEVICES", "GPU-01010101-0101-0101-0101-010101010101"}});
    expect(2, {"run", "card.yaml", "device=auto", "--device-budget", "1GiB"},
           "this run uses the host, because cuda is not there: card 0 of this machine is lost");
  }
  const std::string lost =
      "card 0 of this machine is lost; look at `nvidia-smi` and `dmesg`; CUDA counts the others "
      "from 0: GPU-02020202-0202-0202-0202-020202020202";
  expect(2, {"run", "card.yaml", "device=cuda:1"},
         "cuda:1 is not there, only cpu, cuda:0: " + lost + "; use device: auto");
  expect(2, {"sweep", "run", "sweep.yaml", "set.device=cuda:1"},
         "cuda:1 is not there, only cpu, cuda:0: " + lost);
  EXPECT_THAT(expect(0, {"doctor"}).out, HasSubstr("lost          " + lost));
  EXPECT_THAT(expect(0, {"top"}).out, HasSubstr("card 0: is lost; look at `nvidia-smi`"));
  EXPECT_EQ(nlohmann::json::parse(expect(0, {"top", "--json"}).out)["lost_cards"],
            nlohmann::json::array({0}));
  for (const char* device : {"auto", "cuda"}) {
    const std::string setting = std::string("device=") + device;
    expect(0, {"plan", "card.yaml", setting}, "warning: [device] cuda:0 is used; " + lost);
    expect(0, {"run", "card.yaml", setting, "name=new", "--overwrite"},
           "warning: [device] cuda:0 is used; " + lost);
  }
  const auto resumed = expect(0, words, "warning: [device] cuda:0 is used; " + lost);
  EXPECT_THAT(resumed.out, HasSubstr("continues"));
}

TEST_F(CardMistakes, APredictionOnACardThatIsLostIsOneError) {
  const Variables lost(Environment{{"STAND_IN_LOSE", "1"}});
  expect(1, {"predict", "runs/bundle", "png", "--device", "cuda:0"}, "the card cuda:0 failed");
}

TEST_F(CardMistakes, ASweepGoesOnWithoutTheCardThatIsLost) {
  const Variables lost(shared({{"STAND_IN_CARDS", "2"}, {"STAND_IN_LOSE", "0,150"}}));
  const auto sweep = tare({"sweep", "run", "sweep.yaml"});
  EXPECT_EQ(sweep.status, 1) << sweep.out << sweep.err;
  EXPECT_THAT(sweep.out, HasSubstr("5 complete, 1 failed, 0 waiting"));
  EXPECT_EQ(count_of(sweep.err,
                     "cuda:1 (GPU-02020202-0202-0202-0202-020202020202) is there no longer, so "
                     "no more runs are placed on it"),
            1U)
      << sweep.err;
  EXPECT_THAT(tare({"sweep", "status", "sweep.yaml"}).out,
              HasSubstr("FAIL  exit 1: the card cuda:0 failed"));
}

TEST_F(CardMistakes, ASweepWithoutACardLeftWaits) {
  const Variables lost(shared({{"STAND_IN_LOSE", "150"}}));
  const auto sweep = tare({"sweep", "run", "sweep.yaml"});
  EXPECT_EQ(sweep.status, 1) << sweep.out << sweep.err;
  EXPECT_THAT(sweep.out, HasSubstr("0 complete, 1 failed, 5 waiting"));
  EXPECT_THAT(sweep.err, HasSubstr("No other is left: `tare sweep run` continues"));
  fs::remove(path("shared"));  // the card is back
  const Variables healthy(Environment{{"STAND_IN_LOSE", "0"}});
  EXPECT_THAT(tare({"sweep", "run", "sweep.yaml"}).out, HasSubstr("5 complete, 1 failed"));
}

// ---- slices of a card

class Slices : public CardMistakes {
 protected:
  void SetUp() override {
    CardMistakes::SetUp();
    if (!IsSkipped())
      variables_.emplace(shared({{"STAND_IN_MIG", "3"}, {"STAND_IN_BYTES", "32212254720"}}));
  }
  static constexpr const char* kSecond = "MIG-12121212-1212-1212-1212-121212121212";
  std::optional<Variables> variables_;
};

TEST_F(Slices, AreDevicesOfTheirOwnForTop) {
  const auto top = nlohmann::json::parse(expect(0, {"top", "--json"}).out);
  ASSERT_EQ(top["devices"].size(), 4U) << "the host and three slices";
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(top["devices"][i]["id"], "mig:0." + std::to_string(i - 1));
    EXPECT_EQ(top["devices"][i]["name"], "CUDA stand-in MIG 1g.10gb");
    EXPECT_EQ(top["devices"][i]["total_bytes"], 10737418240);
    EXPECT_TRUE(top["devices"][i]["load"].is_null()) << "a slice has none of its own";
  }
  EXPECT_EQ(top["devices"][2]["uuid"], kSecond);
}

TEST_F(Slices, OneIsTheCardOfARun) {
  const Variables second(
      Environment{{"CUDA_VISIBLE_DEVICES", kSecond}, {"STAND_IN_CONTEXT", "104857600"}});
  EXPECT_THAT(expect(0, {"doctor"}).out,
              ContainsRegex("cuda:0  CUDA stand-in MIG 1g.10gb, [0-9.]+ GiB of 10 GiB available, "
                            "context 100 MiB"));
  EXPECT_THAT(expect(0, {"plan", "card.yaml"}).out, HasSubstr("cuda:0, which has 9.9 GiB"));
  const auto run = expect(0, {"run", "card.yaml", "--verbose"});
  EXPECT_THAT(run.out, HasSubstr("cuda:0 (CUDA stand-in MIG 1g.10gb"));
  EXPECT_THAT(run.out, HasSubstr("the process holds 100 MiB")) << "as NVML has it of the slice";
}

TEST_F(Slices, TakeTheRunsOfASweep) {
  const auto plan = expect(0, {"sweep", "plan", "sweep.yaml"});
  for (const char* digit : {"11111111", "12121212", "13131313"})
    EXPECT_THAT(plan.out, HasSubstr(std::string(" of MIG-") + digit));
  const auto sweep = expect(0, {"sweep", "run", "sweep.yaml"});
  EXPECT_THAT(sweep.out, HasSubstr("6 complete, 0 failed"));
  EXPECT_THAT(sweep.err, Not(HasSubstr("CUDA_VISIBLE_DEVICES"))) << "the sweep sets it itself";
}

TEST_F(Slices, TakeNoRanks) {
  expect(2, {"sweep", "plan", "sweep.yaml", "set.device=cuda", "resources.ranks=2"},
         ": a process sees one slice alone, and the ranks of a run need one each");
}

TEST_F(Slices, OnlyTheFirstHasANumber) {
  const auto first = expect(0, {"sweep", "plan", "sweep.yaml", "set.device=cuda:0"});
  EXPECT_THAT(first.out, HasSubstr("in MIG-11111111-"));
  EXPECT_THAT(first.out, Not(HasSubstr(kSecond)));
  expect(2, {"sweep", "plan", "sweep.yaml", "set.device=cuda:1"},
         "cuda:1 is not there, only cpu, cuda:0");
}

TEST_F(Slices, OneWithoutMemoryForAContextIsPassedOver) {
  const Variables context(Environment{{"STAND_IN_CONTEXT", "20000000000"}});
  expect(0, {"run", "card.yaml", "device=auto"}, "the host is used, because cuda:0 cannot be");
  expect(3, {"run", "card.yaml", "--overwrite"}, "cuda:0 'CUDA stand-in MIG 1g.10gb' cannot be");
}

TEST_F(Slices, AnEmptyChoiceTakesNone) {
  const Variables none(Environment{{"CUDA_VISIBLE_DEVICES", ""}});
  const auto plan = expect(0, {"sweep", "plan", "sweep.yaml"});
  EXPECT_THAT(plan.out, Not(HasSubstr("MIG-")));
}

}  // namespace
}  // namespace tare::testing
