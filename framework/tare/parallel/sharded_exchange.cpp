// Sends gradients to the ranks that own their parameters, and parameters to the ranks that compute.
#include "tare/parallel/sharded_exchange.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <unordered_map>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/optim/clip.h"
#include "tare/optim/gradient_hook.h"
#include "tare/parallel/data_parallel.h"
#include "tare/parallel/where.h"

namespace tare::parallel {
namespace {

constexpr int64_t kAlignment = 64;  // bytes, at which a tensor begins in shared memory

using Work = c10::intrusive_ptr<c10d::Work>;

/// Is a parameter's place in the memory of a piece.
struct Member {
  std::string name{};
  at::Tensor parameter{};
  std::vector<int64_t> sizes{}, strides{};
  int64_t offset = 0;     // in elements
  at::Tensor kept{};      // its gradient of earlier backwards of the step; may be undefined
  bool complete = false;  // its gradient of the backward under way

  [[nodiscard]] at::Tensor in(const at::Tensor& memory) const {
    return memory.as_strided(sizes, strides, offset);
  }
};

/// Holds memory for tensors of one dtype that one rank owns, which are sent together.
struct Piece {
  int64_t owner = 0;
  at::TensorOptions options{};
  int64_t elements = 0;
  std::vector<Member> members{};
  at::Tensor memory{};  // [elements]; of gradients undefined before the first is complete
  Work work{};

  void add(const Parameter& one) {
    const at::Tensor& tensor = one.tensor;
    const int64_t step = kAlignment / static_cast<int64_t>(tensor.element_size());
    members.push_back({.name = one.name,
                       .parameter = tensor,
                       .sizes = tensor.sizes().vec(),
                       .strides = tensor.strides().vec(),
                       .offset = elements});
    elements += (tensor.numel() + step - 1) / step * step;
  }
};

/// Adds a parameter to the piece of its owner and dtype.
void add_to(std::vector<Piece>& pieces, int64_t owner, const Parameter& one) {
  const auto options = one.tensor.options().requires_grad(false);
  auto found = std::ranges::find_if(pieces, [&](const Piece& piece) {
    return piece.owner == owner && piece.options.type_equal(options);
  });
  if (found == pieces.end())
    found = pieces.insert(pieces.end(), {.owner = owner, .options = options});
  found->add(one);
}

/// Allocates a storage anew, of which tensors are views.
void fill(const at::Tensor& memory) {
  const c10::DeviceGuard device(memory.device());
  c10::Storage storage = memory.storage();
  const size_t bytes = static_cast<size_t>(memory.numel()) * memory.element_size();
  if (storage.nbytes() == bytes) return;
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

/// Frees a storage; tensors stay views of it.
void empty(const at::Tensor& memory) {
  c10::Storage storage = memory.storage();
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, memory.device()));
  storage.set_nbytes(0);
}

/// Is a part of the model whose tensors are exchanged together.
struct Unit {
  std::vector<Piece> values{};     // of all parameters; none where each rank keeps them
  std::vector<Piece> gradients{};  // of the parameters that are trained
  size_t parameters = 0, trained = 0, complete = 0;
  bool open = false;  // all values are here
};

/// Returns the parameters that only one block has, by the block's module.
std::map<const torch::nn::Module*, std::set<const void*>> owned_by_blocks(const Model& model) {
  std::map<const torch::nn::Module*, std::set<const void*>> of;
  std::map<const void*, std::set<const torch::nn::Module*>> users;
  std::vector<std::pair<std::string, const torch::nn::Module*>> blocks;
  for (const std::string& name : model.blocks()) blocks.emplace_back(name, &model.submodule(name));
  const auto block_of = [&](const std::string& name) -> const torch::nn::Module* {
    for (const auto& [block, module] : blocks)
      if (name == block || name.starts_with(block + '.')) return module;
    return nullptr;
  };
  for (const auto& item : model.module()->named_modules())
    for (const at::Tensor& parameter : item.value()->parameters(/*recurse=*/false))
      users[parameter.unsafeGetTensorImpl()].insert(block_of(item.key()));
  for (const auto& [parameter, modules] : users)
    if (modules.size() == 1 && *modules.begin()) of[*modules.begin()].insert(parameter);
  return of;
}

}  // namespace

struct ShardedExchange::State final : BlockObserver {
  class Hook;

  State(const Shard& of, const Model& model, const DataParallelOptions& with)
      : shard(of), options(with), module(model.module()) {
    make_units(model);
    set_hooks();
    if (shards_parameters()) share();
  }
  ~State() override;

  [[nodiscard]] bool shards_parameters() const { return options.shard == "parameters"; }
  [[nodiscard]] bool is_own(const Piece& piece) const { return piece.owner == shard.rank; }

  void make_units(const Model& model);
  void make_blocks(const Model& model);
  void make_buckets(const Model& model);
  void add(Unit& unit, const Parameter& one);
  void set_hooks();
  void share();

  /// Does an exchange; what it throws is explained by the group.
  template <class Do>
  void exchange(Do&& work) {
    try {
      work(*shard.group->process_group());
    } catch (const std::exception& error) {
      shard.group->explain(error);
    }
  }

  void open(Unit& unit);
  void take_values(const Unit& unit);
  void close(Unit& unit);
  void take(const torch::nn::Module& block, std::vector<at::Tensor>& inputs) override;
  void enter(const torch::nn::Module& block) override;
  void leave(const torch::nn::Module& block, const at::Tensor& output) override;

  void complete(Unit& unit, Piece& piece, Member& member);
  void send_complete();
  void send(Unit& unit);
  void receive();
  void drop();
  void send_left_out();

  Shard shard;
  DataParallelOptions options;
  std::shared_ptr<torch::nn::Module> module;
  std::vector<Unit> units;  // in the order in which a backward completes them
  std::unordered_map<const torch::nn::Module*, Unit*> by_block;
  Unit* outside = nullptr;  // of the parameters outside of blocks
  std::vector<std::pair<at::Tensor, std::unique_ptr<GradientHook>>> before;  // the hooks
  bool averages = false;  // the backward under way
  size_t next = 0;        // the unit that is sent next
  Unit* sent = nullptr;   // the one under way
  int64_t whole = 0;      // scopes in which all values are here
  bool restored = true;
};

class ShardedExchange::State::Hook final : public GradientHook {
 public:
  Hook(State& state, size_t unit, size_t piece, size_t member)
      : state_(state), unit_(unit), piece_(piece), member_(member) {}
  void operator()(const at::Tensor& /*parameter*/) override {
    if (!state_.averages) return;
    Unit& unit = state_.units[unit_];
    Piece& piece = unit.gradients[piece_];
    state_.complete(unit, piece, piece.members[member_]);
  }

 private:
  State& state_;
  size_t unit_, piece_, member_;
};

void ShardedExchange::State::make_units(const Model& model) {
  if (shards_parameters())
    make_blocks(model);
  else
    make_buckets(model);
  size_t trained = 0;
  for (const Unit& unit : units) trained += unit.trained;
  if (trained == 0)
    throw ConfigError(kWhere, "no parameter is trained, so that there is no gradient");
}

void ShardedExchange::State::add(Unit& unit, const Parameter& one) {
  const int64_t owner = shard.owners.at(one.name);
  if (shards_parameters()) add_to(unit.values, owner, one);
  ++unit.parameters;
  if (!one.tensor.requires_grad()) return;
  add_to(unit.gradients, owner, one);
  ++unit.trained;
}

void ShardedExchange::State::make_blocks(const Model& model) {
  const auto owned = owned_by_blocks(model);
  const std::vector<std::string> names = model.blocks();
  units.resize(names.size() + 1);
  outside = &units.back();
  std::unordered_map<const void*, Unit*> unit_of;
  for (size_t i = 0; i < names.size(); ++i) {
    const torch::nn::Module* block = &model.submodule(names[i]);
    Unit& unit = units[names.size() - 1 - i];
    by_block[block] = &unit;
    if (const auto found = owned.find(block); found != owned.end())
      for (const void* parameter : found->second) unit_of[parameter] = &unit;
  }
  for (const Parameter& one : model.parameters()) {
    const auto found = unit_of.find(one.tensor.unsafeGetTensorImpl());
    add(found == unit_of.end() ? *outside : *found->second, one);
  }
}

void ShardedExchange::State::make_buckets(const Model& model) {
  const auto most = static_cast<size_t>(bucket_bytes(options));
  size_t bytes = std::numeric_limits<size_t>::max();
  const auto& all = model.parameters();
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (!one->tensor.requires_grad()) continue;
    if (bytes >= most || bytes + one->tensor.nbytes() > most) {
      units.emplace_back();
      bytes = 0;
    }
    bytes += one->tensor.nbytes();
    add(units.back(), *one);
  }
}

void ShardedExchange::State::set_hooks() {
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t p = 0; p < units[u].gradients.size(); ++p) {
      const auto& members = units[u].gradients[p].members;
      for (size_t m = 0; m < members.size(); ++m) {
        const at::Tensor& parameter = members[m].parameter;
        before.emplace_back(parameter,
                            exchange_hook(parameter, std::make_unique<Hook>(*this, u, p, m)));
      }
    }
}

void ShardedExchange::State::share() {
  const c10::AutoGradMode no_grad(false);
  restored = false;
  for (Unit& unit : units) {
    for (Piece& piece : unit.values) {
      piece.memory = at::zeros({piece.elements}, piece.options);
      for (const Member& member : piece.members) {
        const at::Tensor place = member.in(piece.memory);
        place.copy_(member.parameter);
        member.parameter.set_data(place);
      }
    }
    unit.open = true;
    close(unit);
  }
}

ShardedExchange::State::~State() {
  drop();
  for (auto& [parameter, hook] : before) (void)exchange_hook(parameter, std::move(hook));
  if (restored || shard.group->is_planned()) return;
  log::warning(
      "the fit ended before the ranks could exchange their parameters: those that another "
      "rank owns are lost here; load a checkpoint");
  for (Unit& unit : units)
    for (Piece& piece : unit.values) {
      fill(piece.memory);
      if (!is_own(piece) && piece.memory.is_floating_point())
        piece.memory.fill_(std::numeric_limits<double>::quiet_NaN());
    }
}

void ShardedExchange::State::open(Unit& unit) {
  if (unit.open) return;
  unit.open = true;
  try {
    take_values(unit);
  } catch (...) {  // part of the values would be taken for all of them
    close(unit);
    throw;
  }
}

void ShardedExchange::State::take_values(const Unit& unit) {
  for (const Piece& piece : unit.values) fill(piece.memory);
  exchange([&](c10d::ProcessGroup& group) {
    std::vector<Work> under_way;
    for (const Piece& piece : unit.values) {
      std::vector<at::Tensor> list{piece.memory};
      c10d::BroadcastOptions from;
      from.rootRank = piece.owner;
      under_way.push_back(group.broadcast(list, from));
    }
    for (const Work& one : under_way) shard.group->finish(one);
  });
}

void ShardedExchange::State::close(Unit& unit) {
  if (!std::exchange(unit.open, false)) return;
  for (const Piece& piece : unit.values)
    if (!is_own(piece)) empty(piece.memory);
}

// A block with frozen parameters needs them until the gradients of its inputs are there, of which
// the first block of a model may have none.
void ShardedExchange::State::take(const torch::nn::Module& block, std::vector<at::Tensor>& inputs) {
  const auto found = by_block.find(&block);
  if (whole > 0 || found == by_block.end() || !c10::GradMode::is_enabled()) return;
  Unit& unit = *found->second;
  if (unit.trained == unit.parameters) return;
  const auto left = std::make_shared<size_t>(0);
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || !input.requires_grad()) continue;
    ++*left;
    input.register_hook([this, &unit, left](const at::Tensor&) {
      if (--*left == 0) close(unit);
    });
  }
}

void ShardedExchange::State::enter(const torch::nn::Module& block) {
  if (whole > 0) return;
  if (const auto found = by_block.find(&block); found != by_block.end()) open(*found->second);
}

void ShardedExchange::State::leave(const torch::nn::Module& block, const at::Tensor& output) {
  const auto found = by_block.find(&block);
  if (whole > 0 || found == by_block.end()) return;
  Unit& unit = *found->second;
  if (c10::GradMode::is_enabled() && output.requires_grad()) {
    output.register_hook([this, &unit](const at::Tensor&) { open(unit); });
  }
  close(unit);
}

void ShardedExchange::State::complete(Unit& unit, Piece& piece, Member& member) {
  const c10::AutoGradMode no_grad(false);
  at::Tensor& gradient = member.parameter.mutable_grad();
  if (!piece.memory.defined()) piece.memory = at::zeros({piece.elements}, piece.options);
  member.in(piece.memory).copy_(gradient);
  gradient.reset();
  member.complete = true;
  if (++unit.complete < unit.trained) return;
  // Where all are trained, each operator that needs a value has done its backward.
  if (&unit != outside && unit.trained == unit.parameters) close(unit);
  send_complete();
}

void ShardedExchange::State::send_complete() {
  while (next < units.size() && units[next].complete == units[next].trained) send(units[next++]);
}

void ShardedExchange::State::send(Unit& unit) {
  receive();
  sent = &unit;
  const double share = 1.0 / static_cast<double>(shard.group->size());
  for (Piece& piece : unit.gradients) {
    if (!piece.memory.defined()) piece.memory = at::zeros({piece.elements}, piece.options);
    piece.memory.mul_(share);
    exchange([&](c10d::ProcessGroup& group) {
      std::vector<at::Tensor> list{piece.memory};
      c10d::ReduceOptions to;
      to.rootRank = piece.owner;
      piece.work = group.reduce(list, to);
    });
  }
}

void ShardedExchange::State::receive() {
  if (!sent) return;
  const c10::AutoGradMode no_grad(false);
  Unit& unit = *std::exchange(sent, nullptr);
  for (Piece& piece : unit.gradients) {
    exchange([&](c10d::ProcessGroup&) { shard.group->finish(piece.work); });
    piece.work.reset();
    const at::Tensor memory = std::exchange(piece.memory, {});
    for (Member& member : piece.members) {
      member.complete = false;
      if (!is_own(piece)) continue;
      at::Tensor gradient = member.in(memory);
      if (member.kept.defined()) gradient = std::exchange(member.kept, {}).add_(gradient);
      member.parameter.mutable_grad() = std::move(gradient);
    }
  }
  unit.complete = 0;
}

void ShardedExchange::State::drop() {
  averages = false;
  next = 0;
  sent = nullptr;
  for (Unit& unit : units) {
    unit.complete = 0;
    for (Piece& piece : unit.gradients) {
      piece.work.reset();
      piece.memory.reset();
      for (Member& member : piece.members) {
        member.kept.reset();
        member.complete = false;
      }
    }
    close(unit);
  }
}

void ShardedExchange::State::send_left_out() {
  std::string names;
  for (size_t i = next; i < units.size(); ++i) {
    for (const Piece& piece : units[i].gradients)
      for (const Member& member : piece.members)
        if (!member.complete) names += (names.empty() ? "" : ", ") + member.name;
    units[i].complete = units[i].trained;
  }
  if (!names.empty() && !options.find_unused)
    throw ConfigError(
        kWhere, "find_unused",
        "must be true for a loss that does not depend on all parameters: the backward "
        "has left out " +
            printable(names, 300),
        "true, or layers that are frozen", "false");
  send_complete();
}

ShardedExchange::ShardedExchange(const Shard& shard, const Model& model,
                                 const DataParallelOptions& options)
    : state_(std::make_unique<State>(shard, model, options)) {}

ShardedExchange::~ShardedExchange() = default;

void ShardedExchange::begin_step() { state_->drop(); }

void ShardedExchange::open() {
  if (state_->outside) state_->open(*state_->outside);
}

void ShardedExchange::average_next() {
  State& s = *state_;
  s.averages = true;
  s.next = 0;
  for (Unit& unit : s.units)
    for (Piece& piece : unit.gradients)
      for (Member& member : piece.members) {
        at::Tensor gradient = std::exchange(member.parameter.mutable_grad(), {});
        if (gradient.defined() && s.is_own(piece)) member.kept = std::move(gradient);
      }
}

void ShardedExchange::finish() {
  State& s = *state_;
  const c10::AutoGradMode no_grad(false);
  s.averages = false;
  s.send_left_out();
  s.receive();
  for (Unit& unit : s.units)
    if (&unit != s.outside) s.close(unit);
}

void ShardedExchange::close() {
  for (Unit& unit : state_->units) state_->close(unit);
}

void ShardedExchange::restore() {
  State& s = *state_;
  const c10::AutoGradMode no_grad(false);
  s.drop();
  for (Unit& unit : s.units) {
    s.open(unit);
    for (Piece& piece : unit.values) {
      for (const Member& member : piece.members) {
        const at::Tensor own = at::empty_strided(member.sizes, member.strides, piece.options);
        own.copy_(member.in(piece.memory));
        member.parameter.set_data(own);
      }
      piece.memory.reset();
    }
    unit.values.clear();
  }
  s.restored = true;
}

ShardedExchange::Whole::Whole(ShardedExchange* exchange)
    : state_(exchange ? exchange->state_.get() : nullptr) {
  if (!state_) return;
  for (size_t i = 0; i < state_->units.size(); ++i) {
    Unit& unit = state_->units[i];
    if (unit.open) continue;
    opened_.push_back(i);
    state_->open(unit);
  }
  ++state_->whole;
}

ShardedExchange::Whole::~Whole() {
  if (!state_) return;
  --state_->whole;
  for (const size_t unit : opened_) state_->close(state_->units[unit]);
}

void clip_sharded(const std::vector<ParameterGroup>& groups, const ClipOptions& options,
                  Group& group) {
  if (options.value > 0) clip_grad_value(groups, options.value);
  if (!(options.norm > 0)) return;
  const at::Tensor own = grad_norm(groups);
  const bool has_value = own.defined() && !own.is_meta();
  const double norm = has_value ? own.item<double>() : 0;
  double squares = 0;
  for (const Group::Numbers& of_rank : group.exchange({norm * norm})) squares += of_rank.front();
  if (own.defined()) scale_to_norm(groups, at::full_like(own, std::sqrt(squares)), options.norm);
}

}  // namespace tare::parallel
