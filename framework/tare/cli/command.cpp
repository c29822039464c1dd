// Lists the commands with their options and examples.
#include "tare/cli/command.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/table.h"

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
        {"dry-run", "", "two steps per phase, nothing saved: prints the peaks"},
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
        {"no-plan", "", "do not plan first: run also what does not seem to fit"}},
       {"tare run recipes/configs/digits/staged.yaml batch=256 phases.2.epochs=2"},
       run_command},
      {"report",
       "make one HTML page of a run: curves, phases, memory",
       "RUN",
       1,
       {{"out", "FILE", "where the page goes (default: report.html in the run's folder)"},
        {"recording", "DIR", "what tare run --record-memory wrote (default: the run's folder)"}},
       {"tare report runs/digits-staged --recording trace"},
       report_command},
      {"compare",
       "show runs side by side: settings that differ, figures, curves",
       "RUN RUN [RUN ...]",
       2,
       {{"out", "FILE", "also write one HTML page with the curves"},
        {"json", "", "one JSON object instead of text"}},
       {"tare compare runs/digits-staged runs/again --out compared.html"},
       compare_command},
      {"plan",
       "say what memory each phase of a recipe will need, without running it",
       "RECIPE [key=value ...]",
       1,
       {{"device", "host|cuda|DEVICE", "where it is to run, e.g. host:8GiB, cuda:H200, cuda:24GiB"},
        {"json", "FILE", "also write the plan as JSON"}},
       {"tare plan recipes/configs/digits/staged.yaml batch=256 --device cuda:24GiB"},
       plan_command},
      {"sweep",
       "run a recipe once for each combination of settings, several at a time where they fit",
       "run|plan|status|report|stop|retry|rebuild|agent FILE [key=value ...]",
       2,
       {},
       {"tare sweep plan recipes/configs/digits/sweep.yaml",
        "tare sweep run recipes/configs/digits/sweep.yaml trials=6 log_dir=runs/first"},
       sweep_command,
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
       "callbacks|collates|datasets|executors|losses|metrics|models|optimizers|pruners|recipes|"
       "samplers|"
       "schedules|transforms",
       1,
       {},
       {"tare ls models"},
       list_command},
      {"explain",
       "say what a key of a recipe, or an option of what it names, means: type, default, allowed "
       "values, an example",
       "[KEY ...]",
       0,
       {},
       {"tare explain phases.lr", "tare explain model.resnet9.width", "tare explain | less"},
       explain_command},
      {"new",
       "make a project: a recipe, a program with a model of its own, CMakeLists.txt",
       "DIR",
       1,
       {{"from", "RECIPE", "the recipe to begin with (default: one for the project's model)"}},
       {"tare new my_project", "tare new my_project --from digits/staged"},
       new_command},
      {"validate",
       "check a recipe as a run would, with its data and its model, and run nothing",
       "RECIPE [key=value ...]",
       1,
       {},
       {"tare validate digits/staged batch=256"},
       validate_command},
      {"cat",
       "print a recipe, one of `tare ls recipes` by its name",
       "RECIPE",
       1,
       {},
       {"tare cat digits/staged"},
       cat_command},
      {"cp",
       "copy a recipe, to change the copy",
       "RECIPE FILE",
       2,
       {{"overwrite", "", "replace a file that is there"}},
       {"tare cp digits/staged mine.yaml"},
       cp_command},
      {"data",
       "fetch a data set, or make a generated one",
       "fetch|make NAME",
       2,
       {{"out", "DIR", "make: where the files go (default: the data cache)"},
        {"png", "", "make: each image as a PNG file, in a folder for each label"},
        {"count", "N", "make: images (default: 10000)"},
        {"style", "printed|written", "make: how they are drawn"}},
       {"tare data fetch mnist10k",
        "tare data make generated_digits --count 20 --png --out digits"},
       data_command},
      {"export",
       "write a bundle for prediction from a run, a checkpoint of a run or another bundle",
       "RUN|CHECKPOINT|BUNDLE",
       1,
       {{"out", "FILE", "where it goes (default: in the run's folder; needed for a bundle)"},
        {"weights", "as_is|fp32|fp8",
         "how matrices are stored (default: as the recipe's export_weights says)"}},
       {"tare export runs/digits-staged --out digits.tare",
        "tare export runs/digits-staged --weights fp8 --out small.tare"},
       export_command},
      {"inspect",
       "describe a bundle, checkpoint or safetensors file",
       "FILE",
       1,
       {{"json", "", "one JSON object instead of text"}},
       {"tare inspect runs/digits-staged/digits.tare", "tare inspect --json digits.tare"},
       inspect_command},
      predict_command(),
      {"doctor",
       "check this machine: LibTorch, driver, devices, memory, threads, disk",
       "",
       0,
       {},
       {"tare doctor"},
       doctor_command},
      {"top",
       "show devices, their memory and the processes that hold it",
       "",
       0,
       {{"watch", "SECONDS", "again and again at this interval, until Ctrl-C"},
        {"json", "", "one line of JSON each time instead of tables"}},
       {"tare top --watch 2"},
       top_command},
      {"watch",
       "show a run while it trains: curves, samples a second, memory by category",
       "RUN",
       1,
       {{"every", "SECONDS", "how often (default: 2 on a terminal, once elsewhere)"}},
       {"tare watch runs/digits-staged"},
       watch_command},
      {"completion",
       "print the completion script of a shell",
       "bash|zsh|fish",
       1,
       {},
       {"source <(tare completion bash)"},
       completion_command},
      {"man",
       "print a man page: of a command, or of recipes and their keys",
       "[COMMAND|recipe]",
       0,
       {{"out", "DIR", "write all pages there instead, into man1 and man5"}},
       {"tare man run | man -l -", "tare man recipe | man -l -"},
       man_command},
  };
  return all;
}

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& command : commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  throw ConfigError("tare", "no command is named '" + printable(name) + "'" +
                                did_you_mean(name, names) + "; see tare --help");
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
