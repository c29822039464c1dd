// Orders the samples of an epoch, and hands out its batches.
#include "tare/data/loader.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/data/padding_source.h"
#include "tare/data/prefetch.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

// Not the number of any sample, so that the order is unrelated to what is random in the samples.
constexpr uint64_t kOrder = ~uint64_t{0};

void check(const DatasetPtr& data, const LoaderOptions& o) {
  const auto require = [](bool good, const std::string& problem) {
    if (!good) throw ConfigError("data.loader", problem);
  };
  require(data != nullptr, "the data set is null, give one");
  require(data->size() > 0, "the data set is empty, give at least one sample");
  require(o.batch >= 1, "batch must be >= 1, got " + std::to_string(o.batch));
  require(o.workers >= 0 && o.workers <= 256,
          "workers must be in [0, 256], got " + std::to_string(o.workers));
  require(o.prefetch >= 1, "prefetch must be >= 1, got " + std::to_string(o.prefetch));
  require(!o.drop_last || o.batch <= data->size(),
          "drop_last with batch " + std::to_string(o.batch) + " leaves nothing of " +
              std::to_string(data->size()) + " samples: lower the batch or keep the last one");
  require(o.ranks >= 1 && o.rank >= 0 && o.rank < o.ranks, "rank must be in [0, ranks), got " +
                                                               std::to_string(o.rank) + " of " +
                                                               std::to_string(o.ranks));
  if (o.weights) check_weights(*o.weights, data->size(), "data.loader");
  require(!o.group_by_length || o.shuffle,
          "group_by_length chooses the order of the samples, and shuffle = false keeps that of the "
          "data: set one of them only");
}

std::vector<int64_t> shuffled(const std::vector<int64_t>& all, uint64_t seed) {
  std::vector<int64_t> result;
  result.reserve(all.size());
  for (const int64_t i : permutation(std::ssize(all), seed))
    result.push_back(all[static_cast<size_t>(i)]);
  return result;
}

}  // namespace

void pin(Batch& batch) {
  for (auto* const list : {&batch.inputs, &batch.targets})
    for (NamedTensor& named : *list)
      if (named.tensor.is_cpu()) named.tensor = named.tensor.pin_memory();
}

struct Loader::State {
  DatasetPtr data;
  LoaderOptions options;
  int64_t batches = 0, position = 0, end_of_epoch = 0;
  bool started = false;
  uint64_t epoch_seed = 0;
  std::vector<int64_t> order, lengths;  // lengths: for group_by_length
  std::unique_ptr<Prefetch> prefetch;   // last: its threads read the members above

  /// Names samples of an epoch's order.
  struct Part {
    int64_t begin = 0, size = 0;
  };
  [[nodiscard]] Part part_of(int64_t index) const {
    const int64_t begin = index * options.batch,
                  whole = std::min(options.batch, data->size() - begin);
    const int64_t least = whole / options.ranks, larger = whole % options.ranks;
    return {.begin = begin + options.rank * least + std::min(options.rank, larger),
            .size = least + (options.rank < larger ? 1 : 0)};
  }
  [[nodiscard]] Batch make(int64_t index) const {
    auto [begin, size] = part_of(index);
    if (size == 0) {  // a sample that does not count
      --begin;
      size = 1;
    }
    const std::span<const int64_t> all(order);
    const uint64_t seed =
        options.weights ? derive_seed(epoch_seed, static_cast<uint64_t>(index)) : epoch_seed;
    Batch batch = data->get({all.subspan(static_cast<size_t>(begin), static_cast<size_t>(size)),
                             seed, options.training});
    if (options.pinned) pin(batch);
    return batch;
  }
  [[nodiscard]] std::vector<int64_t> order_of(uint64_t seed_of_epoch) const;
  void end() {
    prefetch.reset();
    started = false;
  }
};

std::vector<int64_t> Loader::State::order_of(uint64_t seed_of_epoch) const {
  const uint64_t seed = derive_seed(seed_of_epoch, kOrder);
  std::vector<int64_t> all;
  if (options.weights) {
    all = weighted_indices(*options.weights, seed);
    if (options.shuffle) all = shuffled(all, derive_seed(seed, 1));
  } else if (options.shuffle) {
    all = permutation(data->size(), seed);
  } else {
    all.resize(static_cast<size_t>(data->size()));
    std::iota(all.begin(), all.end(), int64_t{0});
  }
  if (!options.group_by_length) return all;
  // What drop_last drops is drawn, because the samples that sorting puts last are the shortest.
  if (options.drop_last) all.resize(static_cast<size_t>(batches * options.batch));
  return grouped_by_length(std::move(all), lengths, options.batch, derive_seed(seed, 2));
}

Loader::Loader(DatasetPtr data, const LoaderOptions& options) : state_(std::make_unique<State>()) {
  check(data, options);
  state_->data = std::move(data);
  state_->options = options;
  const int64_t size = state_->data->size();
  state_->batches = options.drop_last ? size / options.batch : (size - 1) / options.batch + 1;
  if (options.group_by_length) state_->lengths = sample_lengths(*state_->data, "data.loader");
}

Loader::~Loader() = default;

void Loader::start(int64_t epoch, int64_t position, std::optional<int64_t> end) {
  if (epoch < 0 || position < 0 || position > state_->batches)
    throw ConfigError("data.loader", "start needs an epoch >= 0 and a position in [0, " +
                                         std::to_string(state_->batches) + "], got " +
                                         std::to_string(epoch) + " and " +
                                         std::to_string(position));
  if (end && (*end < position || *end > state_->batches))
    throw ConfigError("data.loader", "start needs an end in [" + std::to_string(position) + ", " +
                                         std::to_string(state_->batches) + "], got " +
                                         std::to_string(*end));
  stop();
  const LoaderOptions& o = state_->options;
  state_->epoch_seed = derive_seed(o.seed, static_cast<uint64_t>(epoch));
  if (state_->order.empty() || o.shuffle || o.weights)  // else it is that of every epoch
    state_->order = state_->order_of(state_->epoch_seed);
  state_->position = position;
  state_->end_of_epoch = end.value_or(state_->batches);
  if (o.workers > 0 && position < state_->end_of_epoch) {
    auto prefetch =
        std::make_unique<Prefetch>([state = state_.get()](int64_t i) { return state->make(i); },
                                   position, state_->end_of_epoch, std::max(o.prefetch, o.workers));
    prefetch->run(o.workers);
    state_->prefetch = std::move(prefetch);
  }
  state_->started = true;
}

bool Loader::next(Batch& batch) {
  batch.reset();
  if (!state_->started) throw StateError("data.loader.next", "stopped", "call start(epoch) first");
  if (state_->position == state_->end_of_epoch) return false;
  try {
    batch = state_->prefetch ? state_->prefetch->next() : state_->make(state_->position);
  } catch (...) {
    state_->end();
    throw;
  }
  ++state_->position;
  return true;
}

void Loader::stop() { state_->end(); }
int64_t Loader::position() const { return state_->position; }
int64_t Loader::batches() const { return state_->batches; }

int64_t Loader::own_samples(int64_t index) const { return state_->part_of(index).size; }

double Loader::padding_share(int64_t epoch) const {
  const LoaderOptions& o = state_->options;
  const auto order = state_->order_of(derive_seed(o.seed, static_cast<uint64_t>(epoch)));
  double given = 0, padded = 0;
  for (int64_t index = 0; index < state_->batches; ++index) {
    const int64_t begin = index * o.batch, end = std::min(begin + o.batch, std::ssize(order));
    int64_t longest = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t length = state_->data->sample_size(order[static_cast<size_t>(i)]);
      longest = std::max(longest, length);
      given += static_cast<double>(length);
    }
    padded += static_cast<double>(padded_length(*state_->data, longest) * (end - begin));
  }
  return padded > 0 ? 1 - given / padded : 0;
}

const DatasetPtr& Loader::data() const { return state_->data; }
const LoaderOptions& Loader::options() const { return state_->options; }

void Loader::account(Ledger& ledger) const {
  if (!state_->prefetch) return;
  for (const Batch& batch : state_->prefetch->settled()) {
    for (const auto* list : {&batch.inputs, &batch.targets})
      for (const auto& [name, tensor] : *list)
        ledger.add(Category::batch, "loader." + name, tensor);
  }
}

}  // namespace tare
