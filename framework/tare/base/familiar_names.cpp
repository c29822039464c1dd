// Lists well-known names, and the names that Tare has for the same.
#include "tare/base/familiar_names.h"

#include <algorithm>
#include <iterator>

namespace tare {
namespace {

/// Says what a name of another library, without hyphens and underscores, is called here.
struct Familiar {
  std::string_view name, here;
};

/// Keys of a recipe by their paths. A name with several rows has the likeliest first.
constexpr Familiar kKeys[] = {
    {"accelerator", "device"},
    {"accumulategradbatches", "micro_batch"},
    {"architecture", "model"},
    {"augmentations", "data.transforms"},
    {"backbone", "model"},
    {"batchsize", "batch"},
    {"batchtfms", "data.transforms"},
    {"benchmark", "kernels.cudnn_benchmark"},
    {"beta1", "optimizer.momentum"},
    {"bs", "batch"},
    {"cbs", "callbacks"},
    {"classweight", "loss.cross_entropy.class_weights"},
    {"clipnorm", "clip.norm"},
    {"clipvalue", "clip.value"},
    {"criterion", "loss"},
    {"csvlogger", "callbacks.csv_log"},
    {"dataset", "data"},
    {"deterministic", "kernels.deterministic"},
    {"earlystopping", "callbacks.early_stopping"},
    {"epochs", "phases.N.epochs"},
    {"epsilon", "optimizer.eps"},
    {"freeze", "phases.N.freeze_to"},
    {"freezeepochs", "phases.N.freeze_to"},
    {"gradclip", "clip.norm"},
    {"gradientaccumulationsteps", "micro_batch"},
    {"gradientclipval", "clip.norm"},
    {"imagesize", "data.size"},
    {"imgsize", "data.size"},
    {"initiallearningrate", "phases.N.lr"},
    {"itemtfms", "data.transforms"},
    {"learningrate", "phases.N.lr"},
    {"learningrate", "optimizer.lr"},
    {"limittrainbatches", "limit.train_batches"},
    {"limitvalbatches", "limit.valid_batches"},
    {"logdir", "folder"},
    {"lossfn", "loss"},
    {"lossfunc", "loss"},
    {"lr", "phases.N.lr"},
    {"lr", "optimizer.lr"},
    {"lrmax", "phases.N.lr"},
    {"lrscheduler", "phases.N.schedule"},
    {"maxepochs", "phases.N.epochs"},
    {"maxgradnorm", "clip.norm"},
    {"maxlr", "phases.N.lr"},
    {"maxsteps", "phases.N.duration.steps"},
    {"maxtime", "phases.N.duration.minutes"},
    {"mixedprecision", "precision"},
    {"modelcheckpoint", "callbacks.save_best"},
    {"nepoch", "phases.N.epochs"},
    {"nepochs", "phases.N.epochs"},
    {"numclasses", "model.classes"},
    {"numepochs", "phases.N.epochs"},
    {"numtrainepochs", "phases.N.epochs"},
    {"numworkers", "workers"},
    {"outputdir", "folder"},
    {"overfitbatches", "overfit"},
    {"pretrained", "model.weights"},
    {"randomseed", "seed"},
    {"randomstate", "seed"},
    {"reducelronplateau", "callbacks.reduce_on_plateau"},
    {"restorebestweights", "phases.N.best"},
    {"restorebestweights", "callbacks.save_best.restore"},
    {"runname", "name"},
    {"savebestonly", "phases.N.best"},
    {"savetopk", "callbacks.keep_checkpoints.last"},
    {"scheduler", "phases.N.schedule"},
    {"stepsperepoch", "limit.train_batches"},
    {"targetsize", "data.size"},
    {"terminateonnan", "stop_on_nan"},
    {"valcheckinterval", "valid_every"},
    {"validationsplit", "data.valid"},
    {"validationsteps", "limit.valid_batches"},
    {"validpct", "data.valid"},
    {"warmupratio", "phases.N.schedule.warmup"},
    {"warmupsteps", "phases.N.schedule.warmup"},
    {"wd", "optimizer.weight_decay"},
    {"weightedsampler", "sampling"},
};

/// Names of entries, columns, options and commands.
constexpr Familiar kNames[] = {
    {"acc", "accuracy"},
    {"auc", "auroc"},
    {"bce", "bce_with_logits"},
    {"binaryaccuracy", "accuracy"},
    {"binarycrossentropy", "bce_with_logits"},
    {"categoricalaccuracy", "accuracy"},
    {"categoricalcrossentropy", "cross_entropy"},
    {"ce", "cross_entropy"},
    {"colorjitter", "colour"},
    {"cosineannealing", "cosine"},
    {"cosineannealinglr", "cosine"},
    {"cosinedecay", "cosine"},
    {"cutout", "erasing"},
    {"exponentialdecay", "exponential"},
    {"f1score", "f1"},
    {"fit", "run"},
    {"fitonecycle", "one_cycle"},
    {"flatcos", "wsd"},
    {"grayscale", "grey"},
    {"horizontalflip", "flip"},
    {"huber", "smooth_l1"},
    {"infer", "predict"},
    {"jaccard", "iou"},
    {"list", "ls"},
    {"loss", "train_loss"},
    {"lrfinder", "lr-find"},
    {"mae", "l1"},
    {"meanabsoluteerror", "mae"},
    {"meanabsoluteerror", "l1"},
    {"meaniou", "iou"},
    {"meansquarederror", "mse"},
    {"mode", "lower_is_better"},
    {"multisteplr", "step"},
    {"onecyclelr", "one_cycle"},
    {"randomaffine", "affine"},
    {"randomcrop", "crop"},
    {"randomhorizontalflip", "flip"},
    {"randomrotation", "affine"},
    {"rocauc", "auroc"},
    {"rootmeansquarederror", "rmse"},
    {"sparsecategoricalaccuracy", "accuracy"},
    {"sparsecategoricalcrossentropy", "cross_entropy"},
    {"steplr", "step"},
    {"summary", "inspect"},
    {"top5", "top_5_accuracy"},
    {"topkcategoricalaccuracy", "top_k"},
    {"train", "run"},
    {"tune", "sweep"},
    {"valacc", "accuracy"},
    {"valaccuracy", "accuracy"},
    {"valloss", "valid_loss"},
};

/// Returns the letters in lower case and the digits of a name.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z')
      letters += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      letters += c;
  }
  return letters;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

std::string familiar(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string letters = letters_of(name);
  const auto offered = [&](std::string_view here) {
    return here != name && std::ranges::find(candidates, here) != candidates.end();
  };
  for (const auto& [known, here] : kKeys) {
    if (known != letters) continue;
    if (offered(here)) return std::string(here);
    if (offered(last_part(here))) return std::string(last_part(here));
  }
  for (const auto& [known, here] : kNames)
    if (known == letters && offered(here)) return std::string(here);
  return {};
}

std::string familiar_key(std::string_view name) {
  const std::string letters = letters_of(name);
  const auto found = std::ranges::find(kKeys, std::string_view(letters), &Familiar::name);
  return found == std::end(kKeys) ? std::string() : std::string(found->here);
}

}  // namespace tare
