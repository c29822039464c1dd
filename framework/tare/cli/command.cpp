// Lists the commands with their options and examples.
#include "tare/cli/command.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/base/table.h"
#include "tare/cli/trust.h"
#include "tare/runtime/exit_code.h"

namespace tare::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"run",
       "run a recipe",
       "RECIPE [key=value ...]",
       1,
       {{"json", "FILE", "also write the report as JSON"},
        {"quiet", "", "print nothing but warnings and errors"},
        {"verbose", "", "also print the model's modules and all figures of each phase's memory", "",
         'v'},
        {"dry-run", "", "two steps per phase, nothing saved: prints the peaks and the schedules"},
        {"host-budget", "BYTES", "limit tensors to BYTES of the host's memory, e.g. 8GiB"},
        {"device-budget", "BYTES", "limit tensors to BYTES of the GPU's memory"},
        {"process-limit", "BYTES",
         "let the whole process take at most so much of the host's memory, not only tensors"},
        {"limit-address-space", "",
         "with --process-limit: refuse memory to containers and libraries too"},
        {"record-memory", "DIR", "record every allocation, and write files for viewers there"},
        {"monitor-memory", "OPTIONS",
         "print what holds memory every 300 s, or as in {interval_s: 60, top: 10, trace: 1}", "{}"},
        {"call-sites", "", "name leaks by the line of code that allocated them; slower"},
        {"resume", "always|auto", "continue an unfinished run; auto: or start anew", "always"},
        {"overwrite", "", "reuse the run's folder even if it holds a run, instead of NAME-2"},
        {"no-plan", "", "do not plan first: run also what does not seem to fit"},
        {"ranks", "N", "train in N processes together, which share each batch, on this machine"},
        {"rank-timeout", "SECONDS", "how long ranks wait for each other (default: 600)"},
        {"backend", "auto|gloo|nccl",
         "how ranks exchange tensors of GPUs: through the host (gloo), or between GPUs (nccl); "
         "default: nccl where each rank has a GPU of its own"}},
       {"tare run recipes/configs/digits/staged.yaml batch=256 phases.2.epochs=2"}},
      {"report",
       "make one HTML page of a run: curves, phases, memory",
       "RUN",
       1,
       {{"out", "FILE", "where the page goes (default: report.html in the run's folder)"},
        {"recording", "DIR", "what tare run --record-memory wrote (default: the run's folder)"},
        {"json", "", "one JSON object with what the page draws, and no page without --out"},
        {"csv", "DIR", "tables of it as CSV files in this folder, and no page without --out"}},
       {"tare report runs/digits-staged --recording trace",
        "tare report runs/digits-staged --csv tables"}},
      {"compare",
       "show runs side by side: settings that differ, figures; on a page curves, memory, "
       "predictions",
       "RUN RUN [RUN ...]",
       2,
       {{"out", "FILE", "also write one HTML page with curves, memory and worst samples"},
        {"json", "", "one JSON object instead of text"},
        {"csv", "", "one table of comma-separated values instead of text"}},
       {"tare compare runs/digits-staged runs/again --out compared.html"}},
      {"plan",
       "say what memory each phase of a recipe will need, without running it",
       "RECIPE [key=value ...]",
       1,
       {{"device", "host|cuda|DEVICE", "where it is to run, e.g. host:8GiB, cuda:H200, cuda:24GiB"},
        {"host-budget", "BYTES", "plan for a run with this budget of the host's memory"},
        {"device-budget", "BYTES", "plan for a run with this budget of the GPU's memory"},
        {"schedule", "", "also print the rates of each phase at some steps, with a plot"},
        {"ranks", "N",
         "plan for one of N processes that train together, and compare ways to divide the "
         "training"},
        {"link", "LINK", "with --ranks: the network between machines, e.g. 25GB/s,5us"},
        {"local-link", "LINK", "with --ranks: what connects the devices of a machine, likewise"},
        {"per-machine", "N", "with --ranks: devices of a machine (default: 8)"},
        {"rate", "RATE", "with --ranks: what a device computes by the second, e.g. 120TFLOP/s"},
        {"batch-time", "TIME", "with --ranks: what one device takes for a whole batch, e.g. 250ms"},
        {"json", "FILE", "also write the plan as JSON"}},
       {"tare plan recipes/configs/digits/staged.yaml batch=256 --device cuda:24GiB",
        "tare plan digits/staged --ranks 64 --device cuda:80GiB --link 25GB/s,5us"}},
      {"lr-find",
       "search for the learning rate of a phase of a recipe, and write nothing",
       "RECIPE [key=value ...]",
       1,
       {{"phase", "N", "the phase, from 0 as in phases.N; the phases before it do not run"},
        {"json", "", "one JSON object instead of text"}},
       {"tare lr-find recipes/configs/digits/staged.yaml --phase 1"}},
      {"bench",
       "measure a step of a recipe or a model, and what this machine could do at most",
       "RECIPE|MODEL [key=value ...]",
       1,
       {{"phase", "N", "the phase of the recipe, from 0 as in phases.N"},
        {"steps", "N", "how many steps are measured (default: 50)"},
        {"disk", "DIR", "also measure the disk of this folder, with a file of 64 MiB"},
        {"json", "", "one JSON object instead of text"}},
       {"tare bench recipes/configs/digits/staged.yaml --phase 1",
        "tare bench resnet18 batch=64 precision=bf16"}},
      {"sweep",
       "run a recipe once for each combination of settings, several at a time where they fit",
       "run|plan|status|report|stop|retry|rebuild|agent FILE [key=value ...]",
       2,
       {},
       {"tare sweep plan recipes/configs/digits/sweep.yaml",
        "tare sweep run recipes/configs/digits/sweep.yaml trials=6 log_dir=runs/first"},
       {{"run", "start the runs that are not complete, and continue those that were stopped"},
        {"plan", "list the runs, in which order they fit, and what memory each needs"},
        {"status", "show the runs so far as a table"},
        {"report", "make one HTML page of the sweep"},
        {"stop", "let the sweep that works in this folder save its runs and end"},
        {"retry", "run, and start again what has failed"},
        {"rebuild", "make a lost store again from the folders of the runs"},
        {"agent", "work for a sweep on a cluster; the sweep itself starts it"}}},
      {"ls",
       "list registered entries: models, data sets, recipes, callbacks, losses and others",
       "[callbacks|collates|datasets|executors|losses|metrics|models|optimizers|pruners|recipes|"
       "samplers|schedules|transforms]",
       0,
       {},
       {"tare ls", "tare ls models"}},
      {"explain",
       "say what a key of a recipe, or an option of what it names, means: type, default, allowed "
       "values, an example",
       "[KEY ...]",
       0,
       {},
       {"tare explain phases.lr", "tare explain model.resnet9.width", "tare explain | less"}},
      {"new",
       "make a project: a recipe, a program with a model of its own, CMakeLists.txt",
       "DIR",
       1,
       {{"from", "RECIPE", "the recipe to begin with (default: one for the project's model)"}},
       {"tare new my_project", "tare new my_project --from digits/staged"}},
      {"validate",
       "check a recipe as a run would, with its data and its model, and run nothing",
       "RECIPE [key=value ...]",
       1,
       {},
       {"tare validate digits/staged batch=256"}},
      {"cat",
       "print a recipe, one of `tare ls recipes` by its name",
       "RECIPE",
       1,
       {},
       {"tare cat digits/staged"}},
      {"cp",
       "copy a recipe, to change the copy",
       "RECIPE FILE",
       2,
       {{"overwrite", "", "replace a file that is there"}},
       {"tare cp digits/staged mine.yaml"}},
      {"data",
       "fetch a data set, make a generated one, or check pictures, texts, arrays, a table or a "
       "recipe's data",
       "fetch|make|check NAME|PATH [key=value ...]",
       2,
       {{"out", "DIR", "make: where the files go (default: the data cache)"},
        {"png", "", "make: each image as a PNG file, in a folder for each label"},
        {"count", "N", "make: images (default: 10000) or texts (default: 4000)"},
        {"style", "printed|written", "make: how they are drawn"},
        {"target", "COLUMN", "check: the column of a table that is to be predicted"},
        {"json", "", "check: a JSON object for each data set instead of text"}},
       {"tare data fetch mnist10k", "tare data make generated_digits --count 20 --png --out digits",
        "tare data check flowers", "tare data check house.csv --target price",
        "tare data check house.csv target=price omit=[id]", "tare data check house.yaml"},
       {{"fetch", "download a data set into the data cache"},
        {"make", "write generated digits or texts as files"},
        {"check",
         "read every picture of a folder or a list, every text of a folder, every row of a table, "
         "every number of an array, or the data of a recipe, and name what is bad; key=value: "
         "options of the data set of a file as in data of a recipe"}}},
      {"export",
       "write a bundle for prediction, or a file for other programs, from a run, a checkpoint of a "
       "run or another bundle",
       "RUN|CHECKPOINT|BUNDLE",
       1,
       {{"out", "FILE", "where it goes (default: in the run's folder; needed for a bundle)"},
        {"format", "tare|onnx|pt2|gguf|safetensors",
         "a bundle (the default), an ONNX model, a program for torch.export.load() of Python, a "
         "model gpt for llama.cpp, or the weights alone"},
        {"weights", "as_is|fp32|bf16|fp16|fp8|int8",
         "how matrices are stored (default: as the recipe's export_weights says; gguf takes fp32, "
         "fp16 or q8_0)"},
        {"tolerance", "SHARE",
         "refuse rounded weights of a run that raise its validation loss by more, such as 0.01"},
        {"opset", "18|23", "onnx: version of its operators; 23 has attention as one of them"},
        {"fold-norms", "", "onnx and pt2: batch norms become part of the layers in front of them"},
        trust_option()},
       {"tare export runs/digits-staged --out digits.tare",
        "tare export runs/digits-staged --weights fp8 --out small.tare",
        "tare export digits.tare --format onnx --out digits.onnx"}},
      {"inspect",
       "describe a bundle, a checkpoint, a file of weights or a file for other programs",
       "FILE",
       1,
       {{"json", "", "one JSON object instead of text"},
        {"verify", "", "only whether it is as it was written, and what is not"}},
       {"tare inspect runs/digits-staged/digits.tare", "tare inspect --json digits.tare",
        "tare inspect --verify digits.onnx"}},
      predict_command(),
      {"serve",
       "answer requests for predictions by HTTP, see docs/serving.md",
       "BUNDLE",
       1,
       {{"host", "ADDRESS",
         "where to listen (default: 127.0.0.1; 0.0.0.0: for other machines too)"},
        {"port", "N", "(default: 8080; 0: any that is free)"},
        {"device", "auto|cpu|cuda|cuda:N", "where to compute (default: cpu)"},
        {"batch", "N", "samples that are predicted together at most (default: 32)"},
        {"queue", "N", "samples that wait at most (default: 256)"},
        {"timeout", "SECONDS", "until a request without an answer fails (default: 30)"},
        {"max-body", "BYTES", "of a request (default: 16MiB)"},
        {"connections", "N", "clients at a time (default: 64)"},
        {"threads", "N", "of an operator (default: those of the machine)"},
        trust_option()},
       {"tare serve digits.tare --port 8080",
        "curl --data-binary @seven.png -H 'Content-Type: image/png' localhost:8080/predict"}},
      {"generate",
       "continue a text by the language model of a bundle",
       "BUNDLE [PROMPT]",
       1,
       {{"length", "N", "tokens to generate (default: 200)"},
        {"temperature", "T", "how freely they are drawn; 0: always the most probable (default: 1)"},
        {"top-k", "K", "draw from the K most probable tokens (default: from all)"},
        {"seed", "N", "equal seeds give equal texts (default: 0)"},
        {"device", "auto|cpu|cuda|cuda:N", "where to compute (default: cpu)"},
        trust_option()},
       {"tare generate runs/shakespeare/shakespeare.tare 'ROMEO:' --length 300 --temperature 0.8"}},
      {"doctor",
       "check this machine: LibTorch, driver, devices, memory, threads, disk",
       "",
       0,
       {},
       {"tare doctor"}},
      {"top",
       "show devices, their memory and the processes that hold it",
       "",
       0,
       {{"watch", "SECONDS", "again and again at this interval, until Ctrl-C"},
        {"json", "", "one line of JSON each time instead of tables"}},
       {"tare top --watch 2"}},
      {"watch",
       "show a run while it trains: curves, samples a second, memory by category",
       "RUN",
       1,
       {{"every", "SECONDS",
         "how often (default: 2 on a terminal, once elsewhere and with --json)"},
        {"json", "", "one line of JSON each time instead of text"}},
       {"tare watch runs/digits-staged"}},
      {"completion",
       "print the completion script of a shell",
       "bash|zsh|fish",
       1,
       {},
       {"source <(tare completion bash)"}},
      {"man",
       "print a man page: of a command, or of recipes and their keys",
       "[COMMAND|recipe]",
       0,
       {{"out", "DIR", "write all pages there instead, into man1 and man5"}},
       {"tare man run | man -l -", "tare man recipe | man -l -"}},
  };
  return all;
}

namespace {

/// Says what does the work of a command that other programs have.
struct OtherCommand {
  std::string_view name, here;
};

constexpr const char* kEvaluate =
    "`tare run RECIPE` evaluates the test split at its end, or without one the validation split, "
    "and `tare predict BUNDLE INPUT --score` scores other data";
constexpr const char* kResume = "`tare run RECIPE --resume` continues an unfinished run";
constexpr const char* kPlot = "`tare report RUN` makes a page with the curves of a run";
constexpr const char* kNew =
    "`tare new DIR` makes a project, and `tare cp RECIPE FILE` copies a recipe to begin with";

constexpr OtherCommand kOtherCommands[] = {
    {"build", "`tare validate RECIPE` builds the model of a recipe, and runs nothing"},
    {"benchmark", "`tare bench RECIPE` measures a step, and what this machine could do"},
    {"check", "`tare validate RECIPE` checks a recipe, and `tare data check PATH` checks data"},
    {"config", "`tare cat RECIPE` prints a recipe, and `tare explain KEY` explains a key"},
    {"continue", kResume},
    {"convert", "`tare export RUN --format onnx` writes a model for other programs"},
    {"create", kNew},
    {"curves", kPlot},
    {"download", "`tare data fetch NAME` downloads a data set"},
    {"eval", kEvaluate},
    {"evaluate", kEvaluate},
    {"finetune", "`tare run RECIPE model.weights=FILE` starts from the weights of a file"},
    {"info", "`tare inspect FILE` describes a bundle, and `tare doctor` this machine"},
    {"init", kNew},
    {"logs", "`tare watch RUN` shows a run while it trains"},
    {"monitor", "`tare watch RUN` shows a run while it trains, and `tare top` the devices"},
    {"onnx", "`tare export RUN --format onnx` writes an ONNX model"},
    {"plot", kPlot},
    {"profile", "`tare bench RECIPE` shows what a step of it takes"},
    {"resume", kResume},
    {"score", kEvaluate},
    {"show", "`tare inspect FILE` describes a bundle, and `tare cat RECIPE` prints a recipe"},
    {"test", kEvaluate},
    {"val", kEvaluate},
    {"version", "`tare --version` prints the version"},
};

/// Returns how to do here what a command of other programs does; empty: that is not known.
std::string hint_for(const std::string& name) {
  std::string letters = lower_case(name);
  std::erase_if(letters, [](char c) { return c == '-' || c == '_'; });
  const auto known = std::ranges::find(kOtherCommands, letters, &OtherCommand::name);
  return known == std::end(kOtherCommands) ? "" : ": " + std::string(known->here);
}

}  // namespace

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& command : commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string hint = hint_for(name);
  throw ConfigError("tare", "no command is named '" + printable(name) + "'" +
                                (hint.empty() ? did_you_mean(name, names) : hint) +
                                "; see tare --help");
}

std::string overview(size_t width, const std::string& program) {
  std::string codes = "Exit codes: ";
  codes.append(kExitCodes).append(".");
  const auto fit = [width](const std::string& line) {
    return (width == kAnyWidth ? line : wrapped(line, width, 0, 2)) + '\n';
  };
  std::vector<ListEntry> all;
  for (const auto& command : commands()) all.push_back({command.name, command.summary});
  return "Usage: " + program + " COMMAND [ARGUMENTS]\n\n" +
         fit("The whole life of a training run, with every byte accounted for.") + '\n' +
         text_list(all, 2, width) + '\n' +
         fit(program + " COMMAND --help shows its options and an example.") + fit(codes);
}

}  // namespace tare::cli
