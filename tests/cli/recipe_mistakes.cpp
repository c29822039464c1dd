// Mistakes in the text of a recipe.
#include "cli/mistakes.h"

namespace tare::testing {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string alias_bomb() {
  std::string text = kRecipe + std::string("a: &a [") + repeated("x,", 9) + "]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    const std::string one(1, c), before(1, static_cast<char>(c - 1));
    text += one + ": &" + one + " [" + repeated("*" + before + ",", 9) + "]\n";
  }
  return text;
}

}  // namespace

std::vector<Mistake> mistakes_in_the_file() {
  return {
      recipe("UnknownKey", changed("batch:", "bach:"),
             {"bad.yaml:2:1: bach is not a known key", "did you mean \"batch\"",
              "allowed: name, seed"}),
      recipe("KeyOfAnotherLibrary", changed("batch:", "batch_size:"),
             {"bad.yaml:2:1: batch_size is not a known key (did you mean \"batch\"?)"}),
      recipe("KeyOfAnotherLibraryThatAPhaseHas", changed("batch: 32", "learning_rate: 0.1"),
             {"bad.yaml:2:1: learning_rate is not a known key (did you mean the key "
              "\"phases.N.lr\" of a recipe?)"}),
      recipe("UnknownNestedKey", changed("epochs:", "epoch:"),
             {"bad.yaml:7:18: phases.0.epoch is not a known key", "did you mean \"epochs\""}),
      recipe("UnknownModelOption", changed("hidden:", "hiden:"),
             {"bad.yaml:5:20: model.hiden is not a known key", "did you mean \"hidden\""}),
      recipe("StagesOfAModelWithoutBlocks", changed("device: cpu", "stages: [cpu, cpu]"),
             {"bad.yaml:3:9: stages needs a layer group that begins with a block"}),
      recipe("StagesBesideADevice", changed("batch: 32", "stages: [cpu, cpu]"),
             {"bad.yaml:2:9: ", "has no effect beside stages"}),
      recipe("StageOnNoDevice", changed("device: cpu", "stages: [cpu, gpu]"),
             {"bad.yaml:3:9: stages name a device that is not known", "got gpu"}),
      recipe("WrongType", changed("batch: 32", "batch: many"),
             {"bad.yaml:2:8: batch must be a whole number, got many"}),
      recipe("NumberWithJunk", changed("batch: 32", "batch: 12x"),
             {"bad.yaml:2:8: batch must be a whole number, got 12x"}),
      recipe("ListForANumber", changed("batch: 32", "batch: [1, 2]"),
             {"bad.yaml:2:8: batch must be a whole number, got a list"}),
      recipe("TextForAList", changed("hidden: [8]", "hidden: eight"),
             {"bad.yaml:5:28: model.hidden must be a whole number, got eight"}),
      recipe("KeyOfAPhaseAtTheLevelOfTheRun", changed("batch: 32", "epochs: 3"),
             {"bad.yaml:2:1: epochs belongs to a phase", "allowed: `phases: [{epochs: 3}]`"}),
      recipe("OutOfRange", changed("batch: 32", "batch: 0"),
             {"bad.yaml:2:8: batch must be >= 1, got 0"}),
      recipe("NegativeCount", changed("count: 60", "count: -5"),
             {"bad.yaml:4:39: data.count must be >= 0, got -5"}),
      recipe("MoreSamplesThanThereAre", changed("size: 16", "size: 16, train: 100"),
             {"bad.yaml:4:60: data.train is not a size of a part, got 100",
              "a whole number of at most 60 samples"}),
      recipe("StyleThatIsNoStyle", changed("size: 16", "size: 16, style: cursive"),
             {"bad.yaml:4:60: data.style "}),
      recipe("NoDeviation",
             changed("size: 16", "size: 16, transforms: [{normalise: {mean: [0], std: [0]}}]"),
             {"bad.yaml:4:", "data.transforms.0.normalise.std has a number that is out of range",
              "got 0", "allowed: numbers from 1.2e-38 to 8.5e37"}),
      recipe(
          "DeviationBelowFloat32",
          changed("size: 16", "size: 16, transforms: [{normalise: {mean: [0], std: [1.0e-45]}}]"),
          {"data.transforms.0.normalise.std", "got 1e-45"}),
      recipe("MeanThatIsNoNumber",
             changed("size: 16", "size: 16, transforms: [{normalise: {mean: [.nan], std: [1]}}]"),
             {"data.transforms.0.normalise.mean has a number that is too large", "got .nan"}),
      recipe("NotANumber", changed("lr: 1.0e-2", "lr: .nan"),
             {"bad.yaml:7:33: phases.0.lr must be > 0, got .nan"}),
      recipe("InfiniteRate", changed("lr: 1.0e-2", "lr: .inf"),
             {"bad.yaml:7:33: phases.0.lr must be finite, got .inf"}),
      recipe("IntegerOverflow", changed("batch: 32", "batch: 99999999999999999999"),
             {"bad.yaml:2:8: batch is out of range, got 99999999999999999999"}),
      recipe("FloatForAWholeNumber", changed("batch: 32", "batch: 1e30"),
             {"bad.yaml:2:8: batch must be a whole number, got 1e30"}),
      recipe("DuplicateKey", kRecipe + std::string("batch: 64\n"),
             {"bad.yaml:9:1: batch is given twice"}),
      recipe("DuplicateNestedKey", changed("epochs: 1", "epochs: 1, epochs: 2"),
             {"bad.yaml:7:29: epochs is given twice"}),
      recipe("TabInTheIndentation", changed("  - {name", "\t- {name"),
             {"bad.yaml:7:1: a tab stands in the indentation; allowed: spaces"}),
      recipe("CyclicAlias", kRecipe + std::string("metrics: &m [accuracy, *m]\n"),
             {"bad.yaml:9:24: the alias refers to itself"}),
      recipe("AliasBomb", alias_bomb(),
             {"bad.yaml:1", "there are too many values", "at most 100000"}),
      recipe("UnclosedList", changed("hidden: [8]}", "hidden: [8}"),
             {"bad.yaml:5", "is not valid YAML"}),
      recipe("SecondDocument", kRecipe + std::string("---\nname: two\n"),
             {"bad.yaml:9:1: a second document starts here; one is allowed"}),
      recipe("ForeignTag", changed("batch: 32", "batch: !!python/object:os.system 32"),
             {"bad.yaml:2:8: tags are not supported"}),
      recipe("EscapeCodesInTheFile", changed("name: tiny", "name: \x1b[31mred"),
             {"bad.yaml:1:7: a control character", "\\x1b"}),
      recipe("NoPhases", changed("phases:\n  - {name: only, epochs: 1, lr: 1.0e-2}\n", ""),
             {"bad.yaml", "phases must have at least one phase"}),
      recipe("NoModel", changed("model: {name: mlp, hidden: [8]}\n", ""),
             {"bad.yaml:1:1: model.name is missing; allowed: ", "resnet9"}),
      recipe("ModelWithoutAName", changed("model: {name: mlp, hidden: [8]}", "model: {}"),
             {"model.name is missing; allowed: "}),
      recipe("EmptyFile", "", {"phases must have at least one phase"}),
      recipe("ListAsTheWholeFile", "- 1\n- 2\n", {"bad.yaml:1:1", "a mapping"}),
  };
}

std::vector<Mistake> mistakes_in_names() {
  return {
      recipe("UnknownModel", changed("name: mlp", "name: resnet81"),
             {"bad.yaml:5:15: model.name is not known (did you mean \"resnet18\"?), got resnet81",
              "allowed: convnet, gpt, lstm, mlp"}),
      recipe("UnknownDataSet", changed("generated_digits", "generated_digit"),
             {"bad.yaml:4:14: data.name is not known (did you mean \"generated_digits\"?)"}),
      recipe("UnknownLoss", kRecipe + std::string("loss: cros_entropy\n"),
             {"bad.yaml:9:7: loss is not known (did you mean \"cross_entropy\"?)", "smooth_l1"}),
      recipe("UnknownMetric", kRecipe + std::string("metrics: [accuracy, acuracy]\n"),
             {"bad.yaml:9:21: metrics.1 is not known (did you mean \"accuracy\"?)"}),
      recipe("UnknownOptimizer", kRecipe + std::string("optimizer: {kind: adamm}\n"),
             {"bad.yaml:9:19: optimizer.kind", "(did you mean \"adam\"?)", "sgd"}),
      recipe("UnknownSchedule", changed("lr: 1.0e-2", "schedule: {kind: cosin}"),
             {"bad.yaml:7:46: phases.0.schedule.kind", "(did you mean \"cosine\"?)"}),
      recipe("UnknownTransform", changed("size: 16", "transforms: [{flipp: {}}]"),
             {"bad.yaml:4:57: data.transforms", "(did you mean \"flip\"?)", "normalise"}),
      recipe("UnknownDevice", changed("device: cpu", "device: gpu"),
             {"bad.yaml:3:9: device is not known", "got gpu", "allowed: auto, cpu, cuda"}),
      recipe("DeviceNumberWithJunk", changed("device: cpu", "device: cuda:1x"),
             {"bad.yaml:3:9: device is not known", "got cuda:1x"}),
      recipe("OptionOfAnotherModel", changed("hidden: [8]", "width: 4"),
             {"bad.yaml:5:27: model.width is not an option of the model 'mlp'", "hidden"}),
      recipe("OptionOfAnotherDataSet", changed("count: 60", "folder: images"),
             {"data.folder is not taken by the data set generated_digits",
              "in data.name one of cifar, image_folder, text_folder"}),
      recipe("UnknownTransformInAList", changed("size: 16", "transforms: [flip, flipp]"),
             {"bad.yaml:4:62: data.transforms.1", "(did you mean \"flip\"?)"}),
      recipe("FolderThatIsNotThere",
             changed("name: generated_digits, count: 60, size: 16",
                     "name: image_folder, folder: home"),
             {"bad.yaml:4:36: data.folder is not there, got home", "allowed: a folder"}),
      recipe("LayerGroupThatTheModelLacks", changed("epochs: 1", "freeze_to: 9"),
             {"bad.yaml:7:29: phases.0.freeze_to is not a layer group of the model, which has 2"}),
      recipe("LossOfValuesOnLabels", kRecipe + std::string("loss: mse\n"),
             {"bad.yaml:9:7: loss does not take the targets of the data with a model of 10 "
              "outputs: "}),
      recipe("MetricOfValuesOnLabels", kRecipe + std::string("metrics: [accuracy, mae]\n"),
             {"bad.yaml:9:21: metrics.1 does not take the targets of the data"}),
      recipe("WidthThatOverflows", changed("hidden: [8]", "hidden: [9223372036854775807]"),
             {"bad.yaml:5:29: model.hidden.0 must be "}),
      recipe("ASweep", "recipe: tiny.yaml\nparameters: {batch: [1, 2]}\n",
             {"bad.yaml:1:9: 'bad.yaml' is a sweep", "`tare sweep plan bad.yaml` plans its runs"}),
      recipe("ExportOverTheReport", changed("export: tiny.tare", "export: report.json"),
             {"bad.yaml:8:9: export would be 'report.json' in the run's folder, which is "
              "a file of the run itself"}),
      recipe("SaveOverAnAutosave", changed("epochs: 1", "save: autosave-0"),
             {"bad.yaml:7:24: phases.0.save would be 'autosave-0'"}),
      recipe("LoadsWhatNoPhaseSaved", changed("epochs: 1", "load: best"),
             {"bad.yaml:7:24: phases.0.load is saved by no earlier phase", "got best"}),
      recipe("TwoPhasesOfOneName",
             changed("  - {name: only, epochs: 1, lr: 1.0e-2}", "  - {name: a}\n  - {name: a}"),
             {"bad.yaml:8:12: phases.1.name is the name of two phases"}),
      recipe("RunNameWithParentFolder", changed("name: tiny", "name: ../x"),
             {"bad.yaml:1:7: name must be a plain name, got \"../x\"", "letters, digits"}),
      recipe("RunNameAbsolute", changed("name: tiny", "name: /etc/x"),
             {"bad.yaml:1:7: name must be a plain name, got \"/etc/x\""}),
      recipe("RunNameOfADot", changed("name: tiny", "name: ."),
             {"bad.yaml:1:7: name must be a plain name, got \".\""}),
      recipe("RunNameEmpty", changed("name: tiny", "name: ''"),
             {"bad.yaml:1:7: name must be a plain name, got \"\""}),
      recipe("RunNameWithNewline", changed("name: tiny", "name: \"a\\n[tare] error: forged\""),
             {"bad.yaml:1:7: name must be a plain name, got \"a\\n[tare] error: forged\""}),
      recipe("RunNameWithEscapeCodes", changed("name: tiny", "name: \"\\e[2Jgone\""),
             {"bad.yaml:1:7: name must be a plain name, got \"\\x1b[2Jgone\""}),
      recipe("RunNameOf4000Characters", changed("name: tiny", "name: " + std::string(4000, 'x')),
             {"bad.yaml:1:7: name must be a plain name", "at most 128 bytes", "xxx..."}),
      recipe("PhaseNameWithParentFolder", changed("name: only", "name: ../only"),
             {"bad.yaml:7:12: phases.0.name must be a plain name"}),
      recipe("ExportToAnotherFolder", changed("export: tiny.tare", "export: ../../tiny.tare"),
             {"bad.yaml:8:9: export must be a plain name"}),
  };
}

}  // namespace tare::testing
