// Carries the precompiled torch/torch.h that models, recipes and tests share.
