// Models and files that a Learner must refuse.
#include "learner/mistakes.h"

namespace tare::testing {

std::vector<Mistake> mistakes_about_models() {
  return {
      {"ModelThatWasMovedAway",
       "StateError",
       {"[learner]", "without a model", "moved away before"},
       [](Bench& b) {
         Model model(make_net());
         const Learner owner(std::move(model), {}, b.options);
         const Learner second(std::move(model), {}, b.options);  // NOLINT: the mistake
       }},
      {"ModelWithoutAForward",
       "StateError",
       {"[learner.fit]", "without a forward of tensors or of a Batch", "LearnerOptions::task"},
       [](Bench& b) {
         Learner(Model(make_net().ptr(), Model::Forward()), {.train = points(48, 1)}, b.options)
             .fit(1);
       }},
      {"NothingToTrain",
       "StateError",
       {"[learner.optimizer]", "without a trainable parameter", "unfreeze() some layer groups"},
       [](Bench& b) {
         auto net = make_net();
         for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
         Learner(net, {.train = points(48, 1)}, b.options).fit(1);
       }},
      {"ValidationOfNoSplit",
       "StateError",
       {"[learner.validate]", "without data in its test split", "set_data()"},
       [](Bench& b) {
         Learner learner(make_net(), {.train = points(48, 1)}, b.options);
         (void)learner.validate(Split::test);
       }},
  };
}

std::vector<Mistake> mistakes_with_files() {
  return {
      {"SaveOutsideOfTheFolder",
       "ConfigError",
       {"must be a plain name, got \"../x\""},
       [](Bench& b) { Learner(make_net(), {}, b.options).save("../x"); }},
      {"LoadOfNothing",
       "IoError",
       {"absent"},
       [](Bench& b) { Learner(make_net(), {}, b.options).load("absent"); }},
      {"FolderAsABundle",
       "IoError",
       {": Is a directory"},
       [](Bench& b) { (void)load_learner(b.folder.path()); }},
      {"MissingBundle",
       "IoError",
       {"absent.tare: No such file or directory"},
       [](Bench& b) { (void)load_learner(b.folder / "absent.tare"); }},
      {"ExportOntoAFolder",
       "IoError",
       {": Is a directory"},
       [](Bench& b) { Learner(make_net(), {}, b.options).export_to(b.folder.path()); }},
      {"AFileAsTheFolder",
       "IoError",
       {"/proc/self/stat", "Not a directory"},
       [](Bench& b) {
         b.options.folder = "/proc/self/stat";
         Learner(make_net(), {}, b.options).save("a");
       }},
  };
}

}  // namespace tare::testing
