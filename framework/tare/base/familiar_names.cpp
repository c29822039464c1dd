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

constexpr const char* kParts =
    "batch counts the samples of a step and micro_batch those of a forward, so batches of 8 that "
    "are "
    "accumulated 4 times are batch: 32 with micro_batch: 8";
constexpr const char* kScaled =
    "the numbers of a table are normalised in any case; pictures have data.transforms: [normalise]";

/// Keys of a recipe by their paths. A name with several rows has the likeliest first.
constexpr Familiar kKeys[] = {
    {"accelerator", "device"},
    {"accumulategradbatches", "micro_batch"},
    {"accumulationsteps", "micro_batch"},
    {"amp", "precision"},
    {"architecture", "model"},
    {"augment", "data.transforms"},
    {"augmentation", "data.transforms"},
    {"augmentations", "data.transforms"},
    {"backbone", "model"},
    {"batchsize", "batch"},
    {"batchtfms", "data.transforms"},
    {"benchmark", "kernels.cudnn_benchmark"},
    {"beta1", "optimizer.momentum"},
    {"beta2", "optimizer.beta2"},
    {"betas", "optimizer.momentum"},
    {"bf16", "precision"},
    {"bs", "batch"},
    {"categoricalcolumns", "data.categories"},
    {"catnames", "data.categories"},
    {"cbs", "callbacks"},
    {"checkpointevery", "save_every"},
    {"classweight", "loss.cross_entropy.class_weights"},
    {"classweights", "loss.cross_entropy.class_weights"},
    {"clipgradnorm", "clip.norm"},
    {"clipgradvalue", "clip.value"},
    {"clipnorm", "clip.norm"},
    {"clipvalue", "clip.value"},
    {"contnames", "data.numbers"},
    {"criterion", "loss"},
    {"csvlogger", "callbacks.csv_log"},
    {"cutmix", "callbacks.cutmix"},
    {"datadir", "data.folder"},
    {"datafolder", "data.folder"},
    {"dataset", "data"},
    {"defaultrootdir", "folder"},
    {"delimiter", "data.separator"},
    {"deterministic", "kernels.deterministic"},
    {"devices", "device"},
    {"directory", "data.folder"},
    {"dmodel", "model.width"},
    {"dropcolumns", "data.omit"},
    {"dropout", "model.dropout"},
    {"earlystop", "callbacks.early_stopping"},
    {"earlystopping", "callbacks.early_stopping"},
    {"ema", "callbacks.ema"},
    {"embeddim", "model.width"},
    {"epochs", "phases.N.epochs"},
    {"epsilon", "optimizer.eps"},
    {"evalevery", "valid_every"},
    {"exclude", "data.omit"},
    {"fastdevrun", "limit"},
    {"featurecolumns", "data.columns"},
    {"features", "data.columns"},
    {"fillna", "data.fill"},
    {"fp16", "precision"},
    {"freeze", "phases.N.freeze_to"},
    {"freezeepochs", "phases.N.freeze_to"},
    {"gpu", "device"},
    {"gpus", "device"},
    {"gradaccum", "micro_batch"},
    {"gradclip", "clip.norm"},
    {"gradclipnorm", "clip.norm"},
    {"gradientaccumulation", "micro_batch"},
    {"gradientaccumulationsteps", "micro_batch"},
    {"gradientclipnorm", "clip.norm"},
    {"gradientclipping", "clip.norm"},
    {"gradientclipval", "clip.norm"},
    {"gradnorm", "clip.norm"},
    {"halfprecision", "precision"},
    {"hidden", "model.hidden"},
    {"hiddendim", "model.width"},
    {"hiddenlayers", "model.hidden"},
    {"hiddensize", "model.width"},
    {"hiddenunits", "model.hidden"},
    {"ignorecolumns", "data.omit"},
    {"imagesize", "data.size"},
    {"imgsize", "data.size"},
    {"imgsz", "data.size"},
    {"initiallearningrate", "phases.N.lr"},
    {"itemtfms", "data.transforms"},
    {"kfold", "data.folds"},
    {"labelcol", "data.target"},
    {"labelcolumn", "data.target"},
    {"labelsmoothing", "loss.cross_entropy.label_smoothing"},
    {"layers", "model.layers"},
    {"learningrate", "phases.N.lr"},
    {"learningrate", "optimizer.lr"},
    {"limittrainbatches", "limit.train_batches"},
    {"limitvalbatches", "limit.valid_batches"},
    {"logdir", "folder"},
    {"lossfn", "loss"},
    {"lossfunc", "loss"},
    {"lossfunction", "loss"},
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
    {"mixup", "callbacks.mixup"},
    {"modelcheckpoint", "callbacks.save_best"},
    {"momentum", "optimizer.momentum"},
    {"navalues", "data.missing_values"},
    {"nepoch", "phases.N.epochs"},
    {"nepochs", "phases.N.epochs"},
    {"nfolds", "data.folds"},
    {"nheads", "model.heads"},
    {"nlayers", "model.layers"},
    {"nsplits", "data.folds"},
    {"numclasses", "model.classes"},
    {"numepochs", "phases.N.epochs"},
    {"numericalcolumns", "data.numbers"},
    {"numheads", "model.heads"},
    {"numlayers", "model.layers"},
    {"numtrainepochs", "phases.N.epochs"},
    {"numworkers", "workers"},
    {"optim", "optimizer"},
    {"outdir", "folder"},
    {"outputdir", "folder"},
    {"overfitbatches", "overfit"},
    {"path", "data.file"},
    {"patience", "callbacks.early_stopping.patience"},
    {"posweight", "loss.bce_with_logits.positive_weight"},
    {"pretrained", "model.weights"},
    {"randomseed", "seed"},
    {"randomstate", "seed"},
    {"reducelronplateau", "callbacks.reduce_on_plateau"},
    {"restorebestweights", "phases.N.best"},
    {"restorebestweights", "callbacks.save_best.restore"},
    {"root", "data.folder"},
    {"runname", "name"},
    {"savebest", "callbacks.save_best"},
    {"savebestonly", "phases.N.best"},
    {"savedir", "folder"},
    {"savesteps", "save_every"},
    {"savetopk", "callbacks.keep_checkpoints.last"},
    {"scheduler", "phases.N.schedule"},
    {"seedeverything", "seed"},
    {"sep", "data.separator"},
    {"shuffle", "shuffle"},
    {"steps", "phases.N.duration.steps"},
    {"stepsperepoch", "limit.train_batches"},
    {"stochasticweightaveraging", "callbacks.swa"},
    {"swa", "callbacks.swa"},
    {"targetcol", "data.target"},
    {"targetcolumn", "data.target"},
    {"targetsize", "data.size"},
    {"tensorboard", "callbacks.tensorboard"},
    {"terminateonnan", "stop_on_nan"},
    {"testsize", "data.test"},
    {"testsplit", "data.test"},
    {"trainsize", "data.train"},
    {"trainsplit", "data.train"},
    {"units", "model.width"},
    {"useamp", "precision"},
    {"valcheckinterval", "valid_every"},
    {"validationsize", "data.valid"},
    {"validationsplit", "data.valid"},
    {"validationsteps", "limit.valid_batches"},
    {"validpct", "data.valid"},
    {"validsize", "data.valid"},
    {"validsplit", "data.valid"},
    {"valsize", "data.valid"},
    {"valsplit", "data.valid"},
    {"warmup", "phases.N.schedule.warmup"},
    {"warmupratio", "phases.N.schedule.warmup"},
    {"warmupsteps", "phases.N.schedule.warmup"},
    {"wd", "optimizer.weight_decay"},
    {"weightdecay", "optimizer.weight_decay"},
    {"weightedsampler", "sampling"},
    {"weights", "model.weights"},
    {"xcolumns", "data.columns"},
    {"ycolumn", "data.target"},
    {"ynames", "data.target"},
};

/// Says what differs from what the name means elsewhere, or what to do in place of a key.
constexpr Familiar kNotes[] = {
    {"accumulategradbatches", kParts},
    {"accumulationsteps", kParts},
    {"center", kScaled},
    {"checkpoint", "`save_every` saves by steps, and the callback save_best the best epoch"},
    {"gradaccum", kParts},
    {"gradientaccumulation", kParts},
    {"gradientaccumulationsteps", kParts},
    {"normalise", kScaled},
    {"normalize", kScaled},
    {"quiet", "it is an option: `tare run RECIPE --quiet`"},
    {"resume", "it is an option: `tare run RECIPE --resume`"},
    {"resumefromcheckpoint", "it is an option: `tare run RECIPE --resume`"},
    {"scale", kScaled},
    {"standardize", kScaled},
    {"verbose", "it is an option: `tare run RECIPE --verbose`"},
};

/// Names of entries, columns, options and commands.
constexpr Familiar kNames[] = {
    {"16", "fp16"},
    {"16mixed", "fp16"},
    {"acc", "accuracy"},
    {"amp", "bf16"},
    {"auc", "auroc"},
    {"bce", "bce_with_logits"},
    {"bceloss", "bce_with_logits"},
    {"bcewithlogits", "bce_with_logits"},
    {"bcewithlogitsloss", "bce_with_logits"},
    {"bf16mixed", "bf16"},
    {"bfloat16", "bf16"},
    {"binaryaccuracy", "accuracy"},
    {"binarycrossentropy", "bce_with_logits"},
    {"binarycrossentropywithlogits", "bce_with_logits"},
    {"categoricalaccuracy", "accuracy"},
    {"categoricalcrossentropy", "cross_entropy"},
    {"ce", "cross_entropy"},
    {"colorjitter", "colour"},
    {"cosineannealing", "cosine"},
    {"cosineannealinglr", "cosine"},
    {"cosinedecay", "cosine"},
    {"crossentropyloss", "cross_entropy"},
    {"cutout", "erasing"},
    {"exponentialdecay", "exponential"},
    {"f1score", "f1"},
    {"fit", "run"},
    {"fitonecycle", "one_cycle"},
    {"flatcos", "wsd"},
    {"float16", "fp16"},
    {"float32", "fp32"},
    {"fp16mixed", "fp16"},
    {"gpu", "cuda"},
    {"grayscale", "grey"},
    {"half", "fp16"},
    {"horizontalflip", "flip"},
    {"huber", "smooth_l1"},
    {"huberloss", "smooth_l1"},
    {"infer", "predict"},
    {"jaccard", "iou"},
    {"kldivergence", "kl_div"},
    {"kldivloss", "kl_div"},
    {"l1loss", "l1"},
    {"l2", "mse"},
    {"l2loss", "mse"},
    {"list", "ls"},
    {"logloss", "cross_entropy"},
    {"loss", "train_loss"},
    {"lrfinder", "lr-find"},
    {"mae", "l1"},
    {"meanabsoluteerror", "mae"},
    {"meanabsoluteerror", "l1"},
    {"meaniou", "iou"},
    {"meansquarederror", "mse"},
    {"mixed", "bf16"},
    {"mixedprecision", "bf16"},
    {"mode", "lower_is_better"},
    {"mseloss", "mse"},
    {"multisteplr", "step"},
    {"nllloss", "nll"},
    {"normalize", "normalise"},
    {"onecyclelr", "one_cycle"},
    {"randomaffine", "affine"},
    {"randomcrop", "crop"},
    {"randomhorizontalflip", "flip"},
    {"randomrotation", "affine"},
    {"rocauc", "auroc"},
    {"rootmeansquarederror", "rmse"},
    {"single", "fp32"},
    {"smoothl1loss", "smooth_l1"},
    {"softmaxcrossentropy", "cross_entropy"},
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

std::string familiar_note(std::string_view name) {
  const std::string letters = letters_of(name);
  const auto found = std::ranges::find(kNotes, std::string_view(letters), &Familiar::name);
  return found == std::end(kNotes) ? std::string() : std::string(found->here);
}

}  // namespace tare
