// Mistakes on the command line, in the data, and with files.
#include "cli/mistakes.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace tare::testing {
namespace {

constexpr const char* kOfAnotherProgram =
    "; a name that a program of yours adds is known to that program only: call it in place of tare";

void make_pipe(const fs::path& folder, const Made&) {
  if (::mkfifo((folder / "pipe").c_str(), 0600) != 0)
    throw std::system_error(errno, std::generic_category(), "mkfifo");
}

/// A command on a bundle with the name of a program that there is not.
Mistake trust_of_no_file(const char* name, std::vector<std::string> words) {
  const std::string command = "[tare " + words.front() + "]";
  words.insert(words.end(), {"--trust", "absent.pt"});
  return {
      .name = name,
      .arguments = std::move(words),
      .pieces = {command + " --trust must name the file of a TorchScript program, and "
                           "'absent.pt' is no file; give the file that the bundle's model names"},
      .prepare = [](const fs::path& folder, const Made& made) {
        write(folder / "good.tare", made.bundle);
      }};
}

}  // namespace

std::vector<Mistake> mistakes_on_the_command_line() {
  return {
      override_with("LossOnLogits", "loss=nll",
                    {"loss wants logarithms of probabilities, and a mlp gives logits",
                     "allowed: cross_entropy"}),
      override_with("MetricTwice", "metrics=[accuracy,accuracy]",
                    {"metrics.1 stands twice in the list", "got accuracy"}),
      override_with("ExportThatIsNoName", "export=true",
                    {"export must be the name of a file", "null: none"}),
      override_with("FinalFactorOfAConstantRate",
                    "phases.0.schedule={kind: constant, final_factor: 0.5}",
                    {"final_factor is where linear, cosine, exponential, polynomial and wsd end, "
                     "and the kind "
                     "is constant",
                     "got 0.5"}),
      override_with("OneCycleOfACosine", "phases.0.schedule={kind: cosine, one_cycle: {div: 2}}",
                    {"one_cycle shapes the kind one_cycle only", "got cosine"}),
      {.name = "ReportOverTheRecipe",
       .arguments = {"run", "tiny.yaml", "--json", "tiny.yaml"},
       .pieces = {"--json would replace 'tiny.yaml', which is what the command reads"}},
      {.name = "PlanOverTheRecipe",
       .arguments = {"plan", "tiny.yaml", "--json", "./tiny.yaml"},
       .pieces = {"--json would replace './tiny.yaml', which is what the command reads"}},
      {.name = "LinkWithoutALatency",
       .arguments = {"plan", "tiny.yaml", "--ranks", "2", "--link", "25GB/s"},
       .pieces = {"[tare plan] --link must be a bandwidth above 0 and a latency, got 25GB/s",
                  "allowed: such as 25GB/s,5us or 100Mbit/s,10ms"}},
      {.name = "LinkOfOneDevice",
       .arguments = {"plan", "tiny.yaml", "--local-link", "25GB/s,5us"},
       .pieces = {"[tare plan] --local-link describes one of several devices: give --ranks N too, "
                  "above 1, or omit it"}},
      {.name = "TwoRatesOfADevice",
       .arguments = {"plan", "tiny.yaml", "--ranks", "2", "--rate", "1TFLOP/s", "--batch-time",
                     "1s"},
       .pieces = {"--rate and --batch-time both say how fast a device is: give one of them"}},
      {.name = "TimeWithoutAUnit",
       .arguments = {"plan", "tiny.yaml", "--ranks", "2", "--batch-time", "5"},
       .pieces = {"--batch-time must be a time above 0, got 5", "allowed: such as 250ms or 1.5s"}},
      {.name = "MoreRanksThanAPlanKnows",
       .arguments = {"plan", "tiny.yaml", "--ranks", "1025"},
       .pieces = {"--ranks", "1024", "1025"}},
      {.name = "PageOverTheRecipe",
       .arguments = {"report", "runs/tiny", "--out", "tiny.yaml"},
       .pieces = {"--out would replace 'tiny.yaml', which is no HTML page"}},
      {.name = "BundleOverTheRecipe",
       .arguments = {"export", "good.tare", "--out", "tiny.yaml"},
       .pieces = {"--out would replace 'tiny.yaml', which is no bundle"},
       .prepare = [](const fs::path& folder,
                     const Made& made) { write(folder / "good.tare", made.bundle); }},
      {.name = "BundleIntoAMissingFolder",
       .arguments = {"export", "good.tare", "--out", "a/b/"},
       .pieces = {"'a/b/' names a folder: give the name of a file, such as a/b/model.tare"},
       .prepare = [](const fs::path& folder,
                     const Made& made) { write(folder / "good.tare", made.bundle); }},
      {.name = "PipeInThePlaceOfABundle",
       .arguments = {"inspect", "pipe"},
       .pieces = {"pipe is a pipe, whose bytes cannot be mapped"},
       .prepare = make_pipe},
      {.name = "PredictionByAPipe",
       .arguments = {"predict", "pipe", "tiny.png"},
       .pieces = {"pipe is a pipe, whose bytes cannot be mapped"},
       .prepare = make_pipe},
      {.name = "ExportOfADevice",
       .arguments = {"export", "/dev/zero", "--out", "b.tare"},
       .pieces = {"/dev/zero is a device, whose bytes cannot be mapped"}},
      {.name = "WeightsFromAPipe",
       .arguments = {"run", "tiny.yaml", "model.weights=pipe"},
       .pieces = {"command line: model.weights is a pipe or a device, and no file, got pipe"},
       .prepare = make_pipe},
      {.name = "OptionGivenTwice",
       .arguments = {"run", "tiny.yaml", "--json", "a", "--json", "b"},
       .pieces = {"--json is given twice; it takes one FILE, so give it once"}},
      {.name = "OverwriteAndResume",
       .arguments = {"run", "tiny.yaml", "--overwrite", "--resume"},
       .pieces = {"--overwrite and --resume contradict each other: one starts the run anew, the "
                  "other continues it; give one of them, or --resume=auto"}},
      trust_of_no_file("PredictionThatTrustsNoFile", {"predict", "good.tare", "tiny.png"}),
      trust_of_no_file("ExportThatTrustsNoFile", {"export", "good.tare", "--out", "b.tare"}),
      trust_of_no_file("TextThatTrustsNoFile", {"generate", "good.tare"}),
      {.name = "SeveralPhasesThatDoNotFit",
       .arguments = {"run", "tiny.yaml", "--host-budget", "60KiB",
                     "phases=[{name: first, lr: 1}, {name: second, lr: 1}]"},
       .code = kOutOfMemory,
       .pieces = {"2 phases do not fit cpu, which has 60 KiB: phase 'first' with batch 32 needs ",
                  "; phase 'second' with batch 32 needs ",
                  "; batch stands at tiny.yaml:2:8; set a "
                  "lower batch or a smaller model, or run with --no-plan"}},
      override_with("ModelOfAnotherProgram", "model={name: own}", {kOfAnotherProgram}),
      override_with("LossOfAnotherProgram", "loss=own", {kOfAnotherProgram}),
      override_with("MetricOfAnotherProgram", "metrics=[own]", {kOfAnotherProgram}),
      override_with("DataOfAnotherProgram", "data={name: own}", {kOfAnotherProgram}),
      override_with("OptimizerOfAnotherProgram", "optimizer=own", {kOfAnotherProgram}),
      override_with("ScheduleOfAnotherProgram", "phases.0.schedule=own", {kOfAnotherProgram}),
      override_with("CallbackOfAnotherProgram", "callbacks=[own]", {kOfAnotherProgram}),
      override_with("TransformOfAnotherProgram", "data.transforms=[own]", {kOfAnotherProgram}),
      override_with("ShiftOutOfTheImage", "data.transforms=[{shift: {pixels: 16}}]",
                    {"command line: data.transforms.0.shift.pixels may move images of 16 x 16 out "
                     "of themselves, "
                     "got 16",
                     "allowed: at most 15"}),
      override_with("SizeOfTexts", "data={name: text_folder, folder: ., size: 8}",
                    {"data.size is not taken by the data set text_folder, got 8"}),
      override_with("ModelThatTakesNoSuchSamples", "model=lstm",
                    {"the sample_shape must be the length of the longest sequence, got lstm",
                     "allowed: data whose shape is a list of one number"}),
      {.name = "NameNearAnEntryToExplain",
       .arguments = {"explain", "lstmm"},
       .pieces =
           {"no key of a recipe or sweep and no entry is named 'lstmm' (did you mean \"lstm\"?)"}},
      override_with("RateByTheNameOfAnotherLibrary", "phases.0.learning_rate=0.1",
                    {"phases.0.learning_rate is not a known key (did you mean \"lr\"?)"}),
      override_with("MetricByTheNameOfAnotherLibrary", "metrics=[acc]",
                    {"(did you mean \"accuracy\"?)"}),
      override_with("CallbackByTheNameOfAnotherLibrary", "callbacks=[ModelCheckpoint]",
                    {"(did you mean \"save_best\"?)"}),
      override_with("OptionThatIsAKeyHere",
                    "callbacks=[{early_stopping: {restore_best_weights: true}}]",
                    {"restore_best_weights is not a known key (did you mean the key "
                     "\"phases.N.best\" of a recipe?)"}),
      override_with("WeightDecayAtTheTop", "weight_decay=0.1",
                    {"(did you mean the key \"optimizer.weight_decay\" of a recipe?)"}),
      override_with("AverageAtTheTop", "ema=true",
                    {"(did you mean the key \"callbacks.ema\" of a recipe?)"}),
      override_with("LossOfTorch", "loss=MSELoss", {"(did you mean \"mse\"?)"}),
      override_with("LossOfTorchOnLogits", "loss=BCEWithLogitsLoss",
                    {"(did you mean \"bce_with_logits\"?)"}),
      override_with("PrecisionOfAnotherLibrary", "precision=16-mixed",
                    {"precision is not known (did you mean \"fp16\"?)"}),
      override_with("TestSizeOfAnotherLibrary", "data.test_size=0.2",
                    {"data.test_size is not a known key (did you mean \"test\"?)"}),
      override_with("SeparatorOfAnotherLibrary", "data.sep=,",
                    {"data.sep is not a known key (did you mean \"separator\"?)"}),
      override_with("ScalingOfTables", "data.scale=true",
                    {"data.scale is not a known key (the numbers of a table are normalised in any "
                     "case; pictures have data.transforms: [normalise])"}),
      override_with("BatchesThatAreAccumulated", "accumulate_grad_batches=4",
                    {"(did you mean \"micro_batch\"? batch counts the samples of a step and "
                     "micro_batch those of a forward, so batches of 8 that are accumulated 4 times "
                     "are batch: 32 with micro_batch: 8)"}),
      override_with("OptionInThePlaceOfAKey", "resume=true",
                    {"resume is not a known key (it is an option: `tare run RECIPE --resume`)"}),
      override_with("RateToBeFound", "phases.0.lr=auto",
                    {"phases.0.lr must be a number, or find, which searches for one, got auto"}),
      override_with("RateOfTheRun", "lr=auto",
                    {"command line: lr belongs to a phase; allowed: `phases.0.lr=find` for the "
                     "first one"}),
      override_with("KeyThatIsUnsetAndUnknown",
                    "bacth=", {"command line: bacth is not a known key (did you mean \"batch\"?)"}),
      {.name = "CommandThatEvaluates",
       .arguments = {"eval", "tiny.yaml"},
       .pieces = {"no command is named 'eval': `tare run RECIPE` evaluates the test split at its "
                  "end",
                  "see tare --help"}},
      {.name = "CommandThatResumes",
       .arguments = {"resume"},
       .pieces = {"no command is named 'resume': `tare run RECIPE --resume` continues"}},
      {.name = "HelpOfAnUnknownCommand",
       .arguments = {"help", "rum"},
       .pieces = {"no command is named 'rum' (did you mean \"run\"?)"}},
      {.name = "SweepOfABundle",
       .arguments = {"sweep", "run", "good.tare"},
       .pieces = {"'good.tare' is no sweep: it is a bundle: `tare inspect good.tare` describes it",
                  "give the YAML file of a sweep"},
       .prepare = [](const fs::path& folder,
                     const Made& made) { write(folder / "good.tare", made.bundle); }},
      {.name = "SweepOfAFolder",
       .arguments = {"sweep", "status", "."},
       .pieces = {"'.' is no sweep: it is a folder"}},
      {.name = "RunOfData",
       .arguments = {"run", "rows.csv"},
       .pieces = {"'rows.csv' is no recipe: it has data: `tare data check rows.csv` looks through"},
       .prepare = [](const fs::path& folder,
                     const Made&) { write(folder / "rows.csv", "a,b\n1,2\n"); }},
      {.name = "BundleToExplain",
       .arguments = {"explain", "good.tare"},
       .pieces = {"'good.tare' is no key: it is a bundle: `tare inspect good.tare`",
                  "tare explain takes keys of a recipe"},
       .prepare = [](const fs::path& folder,
                     const Made& made) { write(folder / "good.tare", made.bundle); }},
      {.name = "RecipeToExplain",
       .arguments = {"explain", "tiny.yaml"},
       .pieces = {"'tiny.yaml' is no key: it is a file; `tare validate tiny.yaml` checks"}},
      {.name = "BundleInThePlaceOfData",
       .arguments = {"data", "check", "good.tare"},
       .pieces = {"'good.tare' is a bundle and no data: `tare inspect good.tare` describes it"},
       .prepare = [](const fs::path& folder,
                     const Made& made) { write(folder / "good.tare", made.bundle); }},
      {.name = "CommandOfAnotherLibrary",
       .arguments = {"train", "tiny.yaml"},
       .pieces = {"no command is named 'train' (did you mean \"run\"?)"}},
      {.name = "KeyOfAnotherLibraryToExplain",
       .arguments = {"explain", "batch_size"},
       .pieces = {"no key of a recipe is named 'batch_size' (did you mean \"batch\"?)"}},
      {.name = "EntryOfAnotherLibraryToExplain",
       .arguments = {"explain", "acc"},
       .pieces = {"no entry is named 'acc' (did you mean \"accuracy\"?)"}},
      {.name = "KindToExplain",
       .arguments = {"explain", "pruners"},
       .pieces = {"'pruners' is a kind of entries: `tare ls pruners` lists them"}},
      {.name = "MemoryTraceIntoAFile",
       .arguments = {"run", "tiny.yaml", "--record-memory", "tiny.yaml"},
       .pieces = {"--record-memory must name a folder, and 'tiny.yaml' is a file"}},
      override_with("OverrideOfAnUnknownKey", "phases.0.epoch=2",
                    {"command line: phases.0.epoch is not a known key", "did you mean \"epochs\""}),
      override_with("OverrideWithoutEquals", "batch", {"an override needs a '='", "key=value"}),
      override_with("OverrideWithoutKey", "=3", {"an override needs a key", "key=value"}),
      override_with("OverrideWithAnEmptyPart", "phases..epochs=3",
                    {"phases..epochs has an empty part"}),
      override_with(
          "OverrideBehindTheList", "phases.7.epochs=3",
          {"phases.7.epochs names an item that the list does not have", "0 to 0", "got 7"}),
      override_with("OverrideThroughAScalar", "batch.size=3",
                    {"batch.size leads through \"32\", which has no keys"}),
      override_with("OverrideThatIsNoYaml", "batch=[1", {"batch has a value that cannot be read"}),
      override_with("OverrideWithJunk", "batch=12x",
                    {"command line: batch must be a whole number, got 12x"}),
      override_with("OverrideNotANumber", "phases.0.lr=.nan",
                    {"command line: phases.0.lr must be > 0, got .nan"}),
      override_with("OverrideOfAnOptionOfAnotherModel", "model.width=3",
                    {"command line: model.width is not an option of the model 'mlp'", "hidden"}),
      override_with("OverrideWithNewline", "name=a\n[tare] error: forged", {"command line: name"}),
      override_with("OverrideWithEscapeCodes", "batch=\x1b[31m", {"batch", "\\x1b"}),
      override_with("ArgumentOf100Kilobytes", "name=" + std::string(100'000, 'x'),
                    {"an argument is longer than 4 KiB: 'name=xxx"}),
      {.name = "UnknownCommand",
       .arguments = {"rum", "tiny.yaml"},
       .pieces = {"no command is named 'rum' (did you mean \"run\"?); see tare --help"}},
      {.name = "CommandOf100Kilobytes",
       .arguments = {std::string(100'000, 'r')},
       .pieces = {"no command is named 'rrr"}},
      {.name = "UnknownOption",
       .arguments = {"run", "tiny.yaml", "--jsn", "a"},
       .pieces = {"'--jsn' is not an option (did you mean \"--json\"?); see tare run --help"}},
      {.name = "OptionWithoutValue",
       .arguments = {"run", "tiny.yaml", "--json"},
       .pieces = {"json", "see tare run --help"}},
      {.name = "NoRecipe", .arguments = {"run"}, .pieces = {"needs RECIPE", "see tare run --help"}},
      {.name = "MissingRecipe",
       .arguments = {"run", "absent.yaml"},
       .pieces = {"absent.yaml: No such file or directory"}},
      {.name = "FolderAsRecipe",
       .arguments = {"run", "."},
       .pieces = {"'.' is a folder: name the file of a recipe"}},
      {.name = "SurplusArgumentOfInspect",
       .arguments = {"inspect", "tiny.yaml", "other.tare"},
       .pieces = {"'other.tare'", "takes FILE", "see tare inspect --help"}},
      {.name = "SurplusArgumentOfLs",
       .arguments = {"ls", "models", "datasets"},
       .pieces = {"'datasets'",
                  "takes [callbacks|collates|datasets|executors|losses|metrics|models|optimizers|"
                  "pruners|recipes|samplers|schedules|transforms]",
                  "see tare ls --help"}},
      {.name = "SurplusArgumentOfDoctor",
       .arguments = {"doctor", "--", "now"},
       .pieces = {"'now'", "takes no argument", "see tare doctor --help"}},
      {.name = "UnknownThingToList",
       .arguments = {"ls", "modls"},
       .pieces = {"there are callbacks, collates, datasets, executors, losses",
                  "(did you mean \"models\"?)", "'modls'"}},
      {.name = "EndOfAKeyToExplain",
       .arguments = {"explain", "freeze_to"},
       .pieces = {"no key of a recipe is named 'freeze_to' (did you mean phases.N.freeze_to?)"}},
      {.name = "UnknownOptionToExplain",
       .arguments = {"explain", "loss.cross_entropy.smoothing"},
       .pieces = {"[tare explain] loss.cross_entropy has no option named 'smoothing'",
                  "there are label_smoothing, class_weights"}},
      {.name = "OptionToExplainOfAnEntryWithoutOptions",
       .arguments = {"explain", "loss.mse.beta"},
       .pieces = {"loss.mse has no option named 'beta'", "it has none"}},
      {.name = "UnknownEntryToExplain",
       .arguments = {"explain", "optimizer.adamm.beta2"},
       .pieces = {"there is no optimizer named 'adamm' (did you mean \"adam\"?)",
                  "there are adadelta, adagrad, adam"}},
      {.name = "UnknownDataVerb",
       .arguments = {"data", "mak", "generated_digits"},
       .pieces = {"fetch and make", "(did you mean \"make\"?)", "'mak'"}},
      {.name = "CountWithJunk",
       .arguments = {"data", "make", "generated_digits", "--count", "12x", "--out", "d"},
       .pieces = {"--count must be a whole number", "'12x'"}},
      {.name = "CountNegative",
       .arguments = {"data", "make", "generated_digits", "--count=-3", "--out", "d"},
       .pieces = {"count must be", "got '-3'"}},
      {.name = "CountOverflow",
       .arguments = {"data", "make", "generated_digits", "--count", "1e30", "--out", "d"},
       .pieces = {"--count must be a whole number", "'1e30'"}},
      {.name = "UnknownStyle",
       .arguments = {"data", "make", "generated_digits", "--style", "writen", "--out", "d"},
       .pieces = {"style is not known (did you mean \"written\"?), got writen; allowed: printed, "
                  "written"}},
      {.name = "DataThatIsNotGenerated",
       .arguments = {"data", "make", "mnist", "--out", "d"},
       .pieces = {"mnist", "generated_digits"}},
      {.name = "DataThatIsNotDownloaded",
       .arguments = {"data", "fetch", "imagenet"},
       .pieces = {"name is not downloaded, got imagenet; allowed: mnist10k, mnist"}},
      {.name = "UnknownShell",
       .arguments = {"completion", "tcsh"},
       .pieces = {"'tcsh'", "bash, zsh"}},
      {.name = "UnknownResume",
       .arguments = {"run", "tiny.yaml", "--resume=maybe"},
       .pieces = {"--resume takes always or auto, got 'maybe'"}},
      {.name = "UnknownManPage",
       .arguments = {"man", "recipes"},
       .pieces = {"no page is named 'recipes' (did you mean \"recipe\"?)"}},
      {.name = "RecipeInThePlaceOfASweep",
       .arguments = {"sweep", "run", "tiny.yaml"},
       .pieces = {"'tiny.yaml' is a recipe, not a sweep: type `tare run tiny.yaml`"}},
      {.name = "StatusOfARecipe",
       .arguments = {"sweep", "status", "tiny.yaml", "trials=3"},
       .pieces = {"'tiny.yaml' is a recipe, not a sweep"}},
      {.name = "SweepThatIsNoJson",
       .arguments = {"sweep", "plan", "bad.json"},
       .pieces = {"bad.json:2:1: is not valid JSON: "},
       .prepare = [](const fs::path& folder,
                     const Made&) { write(folder / "bad.json", "{\"data_name\": \"x\"\n"); }},
      {.name = "PredictionOnADeviceThatIsNotThere",
       .arguments = {"predict", "good.tare", "tiny.png", "--device", "cuda:99"},
       .pieces = {"cuda:99 is not there"},
       .prepare = [](const fs::path& folder,
                     const Made& made) { write(folder / "good.tare", made.bundle); }},
      {.name = "ResumeWithoutARun",
       .arguments = {"run", "tiny.yaml", "--resume"},
       .pieces = {"'runs/tiny' holds no unfinished run; run without --resume"}},
  };
}

namespace {

/// `tare run` on two IDX files.
Mistake idx(std::string name, std::vector<std::string> pieces,
            std::function<void(const fs::path&, const Made&)> prepare) {
  const std::string data = "{name: idx, images: images, labels: labels}";
  const std::string text = changed("{name: generated_digits, count: 60, size: 16}", data);
  return {.name = std::move(name),
          .arguments = {"run", "idx.yaml"},
          .pieces = std::move(pieces),
          .prepare = [text, prepare](const fs::path& folder, const Made& made) {
            write(folder / "idx.yaml", text);
            write(folder / "images", made.images);
            write(folder / "labels", made.labels);
            prepare(folder, made);
          }};
}

}  // namespace

std::vector<Mistake> mistakes_in_data() {
  return {
      idx("WrongIdxMagic", {"images: magic number: is not that of an IDX file"},
          [](const fs::path& f, const Made&) { write(f / "images", std::string(64, 'x')); }),
      idx("TruncatedGzip", {"images: gzip: the stream is truncated"},
          [](const fs::path& f, const Made& m) {
            write(f / "images", m.images.substr(0, m.images.size() / 2));
          }),
      idx("LabelsForImages", {"images: dimensions: images need 3", "got 1"},
          [](const fs::path& f, const Made& m) { write(f / "images", m.labels); }),
      idx("EmptyIdx", {"labels: dimensions: a dimension is 0"},
          [](const fs::path& f, const Made&) {
            write(f / "labels", std::string("\0\0\x08\x01\0\0\0\0", 8));
          }),
      idx("FewerLabelsThanImages", {"labels: dimensions: one label for each of the 60 images"},
          [](const fs::path& f, const Made&) {
            write(f / "labels", std::string("\0\0\x08\x01\0\0\0\x02\x01\x02", 10));
          }),
      idx("LabelsOutOfRange",
          {"idx.yaml:5:8: model.classes cannot be counted: only 2 of the classes 0 to 255 have a "
           "sample; where the highest label is a stray one, mend the data, got auto; allowed: the "
           "number of classes"},
          [](const fs::path& f, const Made&) {
            std::string labels("\0\0\x08\x01\0\0\0\x3c", 8);
            write(f / "labels", labels + std::string(59, '\1') + '\xff');
          }),
      {.name = "MissingIdx",
       .arguments = {"run", "tiny.yaml", "data={name: idx, images: no.gz, labels: no.gz}"},
       .pieces = {"command line: data.images is not there, got no.gz; allowed: a file"}},
      {.name = "PipeInThePlaceOfData",
       .arguments = {"run", "tiny.yaml", "data={name: idx, images: pipe, labels: pipe}"},
       .pieces = {"command line: data.images is no file, got pipe; allowed: a file"},
       .prepare = make_pipe},
      {.name = "CountAboveTheSamples",
       .arguments = {"run", "tiny.yaml",
                     "data={name: idx, images: images, labels: labels, count: 61}"},
       .pieces = {"command line: data.count is more than the data set has, got 61; allowed: 0 for "
                  "all, or at most 60 samples"},
       .prepare =
           [](const fs::path& f, const Made& m) {
             write(f / "images", m.images);
             write(f / "labels", m.labels);
           }},
      override_with(
          "FewerClassesThanTheData", "model.classes=3",
          {"command line: model.classes is less than the 10 classes of the data, got 3; allowed: "
           "at least 10"}),
      override_with("BatchLargerThanTheSet", "batch=64",
                    {"command line: batch is larger than the training split, got 64; allowed: at "
                     "most its 48"}),
      override_with("PhaseBatchLargerThanTheSet", "phases.0.batch=49",
                    {"command line: phases.0.batch is larger than the training split, got 49; "
                     "allowed: at most its 48"}),
      override_with("PartsLargerThanTheSet", "data.train=61",
                    {"train is not a size of a part", "at most 60"}),
      override_with("PartWithoutSamples", "data.valid=0.001",
                    {"valid leaves a part without samples"}),
      override_with("NoTrainingPart", "data={name: generated_digits, count: 60, train: 0}",
                    {"data.train leaves no training split"}),
      override_with(
          "EmptyImageFolder", "data={name: image_folder, folder: .}",
          {"command line: data.folder has no subfolder and no PNG, JPEG or WebP file, got ."}),
      {.name = "MissingImageFolder",
       .arguments = {"run", "tiny.yaml", "data={name: image_folder, folder: absent}"},
       .pieces =
           {"command line: data.folder is not there, got absent; allowed: a folder (looked for /"}},
      {.name = "MissingWeights",
       .arguments = {"run", "tiny.yaml", "model.weights=absent.safetensors"},
       .pieces = {"model.weights is not there, got absent.safetensors"}},
      {.name = "NanLoss",
       .arguments = {"run", "tiny.yaml", "phases.0.lr=1.0e+30", "phases.0.epochs=4"},
       .code = kFailed,
       .pieces = {"only", "the loss is", "nan", "epoch ", "step ", "lower the learning rate"},
       .trains = true},
  };
}

std::vector<Mistake> mistakes_with_files() {
  const auto bundle = [](const fs::path& f, const Made& m) { write(f / "m.tare", m.bundle); };
  return {
      {.name = "AFileAsTheFolderOfRuns",
       .arguments = {"run", "tiny.yaml"},
       .pieces = {"runs: Not a directory"},
       .prepare = [](const fs::path& f, const Made&) { write(f / "runs", "x"); }},
      {.name = "AFolderWhereNothingCanBeMade",
       .arguments = {"run", "tiny.yaml", "folder=/proc/runs"},
       .pieces = {"/proc/runs: "}},
      {.name = "JsonIntoAMissingFolder",
       .arguments = {"run", "tiny.yaml", "--json", "absent/report.json"},
       .pieces = {"absent", "No such file or directory"}},
      {.name = "JsonOntoAFolder",
       .arguments = {"run", "tiny.yaml", "--json", "there"},
       .pieces = {"there: Is a directory"},
       .prepare = [](const fs::path& f, const Made&) { fs::create_directory(f / "there"); }},
      {.name = "JsonIntoAFileAsFolder",
       .arguments = {"run", "tiny.yaml", "--json", "tiny.yaml/report.json"},
       .pieces = {"tiny.yaml", "Not a directory"}},
      {.name = "InspectOfNoise",
       .arguments = {"inspect", "noise"},
       .pieces = {"noise: "},
       .prepare = [](const fs::path& f,
                     const Made&) { write(f / "noise", std::string(4096, '\x1b')); }},
      {.name = "InspectOfNothing",
       .arguments = {"inspect", "absent"},
       .pieces = {"absent: No such file or directory"}},
      {.name = "PredictOfTextAsPng",
       .arguments = {"predict", "m.tare", "tiny.yaml"},
       .pieces = {"tiny.yaml: "},
       .prepare = bundle},
      {.name = "RunOfABundle",
       .arguments = {"run", "m.tare"},
       .pieces = {"'m.tare' is a bundle, not a recipe: `tare predict m.tare INPUT` predicts with "
                  "it, and `model.weights=m.tare` starts"},
       .prepare = bundle},
      {.name = "InspectOfARecipe",
       .arguments = {"inspect", "tiny.yaml"},
       .pieces = {"'tiny.yaml' is a recipe and no bundle: `tare run tiny.yaml export=NAME.tare`"}},
      {.name = "PredictOfAMissingImage",
       .arguments = {"predict", "m.tare", "absent.png"},
       .pieces = {"absent.png: No such file or directory"},
       .prepare = bundle},
      {.name = "PredictOfAFolderWithoutPictures",
       .arguments = {"predict", "m.tare", "."},
       .pieces = {"there is no PNG, JPEG, WebP or .npy file in the folder '.'"},
       .prepare = bundle},
      {.name = "PredictByADamagedBundle",
       .arguments = {"predict", "m.tare", "a.png"},
       .pieces = {"m.tare: "},
       .prepare =
           [](const fs::path& f, const Made& m) {
             write(f / "m.tare", flipped(m.bundle, m.bundle.size() * 8 - 9));
           }},
      {.name = "PredictByATruncatedBundle",
       .arguments = {"predict", "m.tare", "a.png"},
       .pieces = {"m.tare: "},
       .prepare = [](const fs::path& f,
                     const Made& m) { write(f / "m.tare", m.bundle.substr(0, 100)); }},
      {.name = "PredictTopWithJunk",
       .arguments = {"predict", "m.tare", "a.png", "--top", "3x"},
       .pieces = {"--top must be a whole number >= 1, got '3x'"},
       .prepare = bundle},
      {.name = "PredictTopNegative",
       .arguments = {"predict", "m.tare", "a.png", "--top=-1"},
       .pieces = {"--top must be a whole number >= 1, got '-1'"},
       .prepare = bundle},
      {.name = "PredictOfTextByAModelOfPictures",
       .arguments = {"predict", "m.tare", "a.png", "--text"},
       .pieces = {"the model takes no text: its input is float32 of 1 x 16 x 16; omit --text"},
       .prepare = bundle},
      {.name = "PredictOnNoDevice",
       .arguments = {"predict", "m.tare", "a.png", "--device", "gpu"},
       .pieces =
           {"device is not known (did you mean \"cuda\"?), got gpu; allowed: auto, cpu, cuda"},
       .prepare = bundle},
  };
}

}  // namespace tare::testing
