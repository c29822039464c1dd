// Meets the ranks of a job by a store, and exchanges tensors by Gloo and by libraries of devices.
#include "tare/parallel/group.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Logging.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "tare/base/host_name.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/collectives.h"
#include "tare/memory/oom.h"
#include "tare/parallel/device_link.h"
#include "tare/parallel/exchange_choice.h"
#include "tare/parallel/gloo_backend.h"
#include "tare/parallel/planned_process_group.h"
#include "tare/parallel/where.h"

namespace tare::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kWordOfOthers{700};  // in which a rank that lives says so after an error

milliseconds as_milliseconds(double seconds) {
  return milliseconds(static_cast<int64_t>(seconds * 1000));
}

/// Returns the first line of an error of LibTorch or Gloo, without where it was thrown.
std::string first_line(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  const std::string text = ours ? ours->what_without_backtrace() : error.what();
  return printable(text.substr(0, text.find('\n')), 300);
}

/// Returns what an error says; unset for a RankError.
std::optional<std::string> text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RankError&) {
    return std::nullopt;
  } catch (const std::exception& own) {
    return first_line(own);
  } catch (...) {  // what it is cannot be said
    return "an error that is no std::exception";
  }
}

/// Keeps LibTorch's lines about connections, each with a stack, from standard error as long as it
/// lives: what fails becomes an error of ours. Not where the user sets LibTorch's level.
class WithoutLibTorchsLines {
 public:
  WithoutLibTorchsLines() {
    if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = kFatal;
  }
  ~WithoutLibTorchsLines() { FLAGS_caffe2_log_level = before_; }
  WithoutLibTorchsLines(const WithoutLibTorchsLines&) = delete;
  WithoutLibTorchsLines& operator=(const WithoutLibTorchsLines&) = delete;

 private:
  static constexpr int kFatal = 3;
  int before_ = FLAGS_caffe2_log_level;
};

/// Waits for an exchange, but not longer than `most`; returns whether it has ended, also by an
/// error.
bool is_over_within(const c10::intrusive_ptr<c10d::Work>& work, milliseconds most) {
  try {
    work->wait(most);
  } catch (const std::exception&) {
    return work->isCompleted();
  }
  return true;
}

c10::intrusive_ptr<c10d::Store> store_of(const World& world, milliseconds timeout) {
  if (world.is_alone()) return c10::make_intrusive<c10d::HashStore>();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(world.port);
  options.isServer = world.rank == 0 && !world.store_is_served;
  options.waitWorkers = false;
  options.timeout = timeout;
  const std::string place = world.address + ':' + std::to_string(world.port);
  const auto until = Clock::now() + timeout;
  try {
    // LibTorch's own wait for the server takes its time twice.
    while (!options.isServer && !answers(world.address, world.port)) {
      if (Clock::now() > until)
        throw std::runtime_error("nobody answers there within " +
                                 std::to_string(timeout.count() / 1000) + " s");
      std::this_thread::sleep_for(milliseconds(50));
    }
    return c10::make_intrusive<c10d::PrefixStore>(
        "tare/" + std::to_string(world.attempt),
        c10::make_intrusive<c10d::TCPStore>(world.address, options));
  } catch (const std::exception& error) {
    if (options.isServer)
      throw ConfigError(kWhere, "rank 0 cannot serve the store at " + place + ": " +
                                    first_line(error) + "; give another MASTER_PORT");
    throw RankError(
        {0}, "rank " + std::to_string(world.rank) + " cannot reach the store at " + place +
                 ", which " + (world.store_is_served ? world.started_by : "rank 0") + " serves: " +
                 first_line(error) + "; start all ranks, and check MASTER_ADDR and MASTER_PORT");
  }
}

}  // namespace

RankError::RankError(std::vector<int64_t> ranks, const std::string& what)
    : Error("[" + std::string(kWhere) + "] " + what), ranks_(std::move(ranks)) {}

void check_backend(const std::string& where, const std::string& backend) {
  if (backend != "auto" && backend != "gloo" && backend != "nccl")
    throw ConfigError(where, "backend", "is not known", "auto, gloo, nccl", printable(backend));
}

struct StoreServer::State {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

StoreServer::StoreServer() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  try {
    state_ =
        std::make_unique<State>(State{c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options)});
  } catch (const std::exception& error) {
    throw IoError("ranks.serve", "a port of 127.0.0.1", first_line(error));
  }
}

StoreServer::~StoreServer() = default;

int64_t StoreServer::port() const { return state_->store->getPort(); }

struct Group::State {
  World world;
  milliseconds answer;
  std::string backend{};  // GroupOptions::backend
  c10::intrusive_ptr<c10d::Store> store{};
  c10::intrusive_ptr<GlooBackend> gloo{};
  std::unique_ptr<DeviceLink> link{};  // between devices; null: there is none
  c10::intrusive_ptr<c10d::ProcessGroup> group{};
  std::optional<c10::Device> device{};               // that exchange_on() was given
  const memory::Collectives* collectives = nullptr;  // that make the link
  Sockets sockets{};                                 // of Gloo
  bool is_broken = false;                            // an exchange has failed
  std::string left{};                                // the error for which this rank has left
  bool is_planned = false;                           // the other ranks are not there
  int64_t generation = 0;  // of groups: one more whenever the ranks start over
  int64_t links = 0;       // made so far

  [[nodiscard]] static std::string key(const std::string& what, int64_t rank) {
    return what + '/' + std::to_string(rank);
  }
  [[nodiscard]] std::string addresses_key(int64_t rank) const {  // of its ends of the connections
    return key("addresses/" + std::to_string(generation), rank);
  }

  /// Waits until all ranks have said that they are there, and that they are of one job.
  void meet(milliseconds timeout) const {
    const std::string own =
        std::to_string(world.size) + " ranks, Tare " TARE_VERSION ", LibTorch " +
        std::to_string(TORCH_VERSION_MAJOR) + '.' + std::to_string(TORCH_VERSION_MINOR);
    if (store->add(key("count", world.rank), 1) > 1)
      throw ConfigError(kWhere, "rank " + std::to_string(world.rank) +
                                    " is there twice: give each process a number of its own");
    store->set(key("here", world.rank), own);
    const auto until = Clock::now() + timeout;
    std::vector<int64_t> missing;
    std::string different;
    do {
      missing = missing_after(milliseconds(0), "here");
      for (int64_t rank = 0; rank < world.size && different.empty(); ++rank) {
        if (std::ranges::find(missing, rank) != missing.end()) continue;
        const std::string other = store->get_to_str(key("here", rank));
        if (other != own)
          different = ", and rank " + std::to_string(rank) + " of " + printable(other);
      }
    } while (different.empty() && !missing.empty() && Clock::now() < until);
    store->set(key("met", world.rank), "1");
    if (different.empty() && missing.empty()) return;
    if (different.empty())
      throw RankError(missing, "rank " + std::to_string(world.rank) + " of " +
                                   std::to_string(world.size) + " has waited " +
                                   std::to_string(timeout.count() / 1000) + " s for " +
                                   named(missing) + ": start all ranks");
    serve_until_all_have("met");
    throw ConfigError(kWhere, "rank " + std::to_string(world.rank) + " is of " + own + different +
                                  ": start all ranks alike");
  }

  /// Keeps the store for a moment where this rank serves it, until the others have set a key.
  void serve_until_all_have(const std::string& what) const {
    constexpr milliseconds kMoment{2000};
    if (world.rank == 0 && !world.store_is_served) (void)missing_after(kMoment, what);
  }

  void connect() {
    const Sockets before = Sockets::open();
    gloo = connect_gloo(
        c10::make_intrusive<c10d::PrefixStore>("gloo/" + std::to_string(generation), store), world,
        answer);
    sockets = Sockets::open().without(before);
    store->set(addresses_key(world.rank), nlohmann::json(sockets.own_addresses()).dump());
    make_group();
  }

  /// Makes a group that exchanges all tensors by Gloo.
  void make_group() {
    group = c10::make_intrusive<c10d::ProcessGroup>(store, static_cast<int>(world.rank),
                                                    static_cast<int>(world.size));
    using Type = c10d::ProcessGroup::BackendType;
    group->setBackend(c10::DeviceType::CPU, Type::GLOO, gloo);
    group->setBackend(c10::DeviceType::CUDA, Type::GLOO, gloo);
    group->setDefaultBackend(Type::GLOO);
  }

  /// Connects the devices of the ranks where they were chosen to exchange their tensors directly.
  /// `exchange` returns the text of each rank. Where they cannot be connected all ranks throw
  /// RankError with one text, or go on by Gloo where any backend will do.
  void link_devices(
      const std::function<std::vector<std::string>(const std::string& own)>& exchange) {
    link.reset();
    make_group();
    if (!collectives) return;
    std::string problem;
    try {
      link = std::make_unique<DeviceLink>(
          *collectives, memory::CollectivesMember{.rank = world.rank,
                                                  .size = world.size,
                                                  .device = *device,
                                                  .timeout = answer,
                                                  .store = c10::make_intrusive<c10d::PrefixStore>(
                                                      "link/" + std::to_string(links++), store)});
    } catch (const std::exception& error) {
      problem = first_line(error);
    }
    std::string problems;
    const std::vector<std::string> all = exchange(problem);
    for (size_t rank = 0; rank < all.size(); ++rank)
      if (!all[rank].empty())
        problems += (problems.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " +
                    printable(all[rank], 300);
    if (problems.empty()) {
      group->setBackend(device->type(), c10d::ProcessGroup::strToBackendType(link->name()),
                        link->backend());
      return;
    }
    link.reset();
    const std::string what = collectives->name() + " cannot connect the cards (" + problems + ")";
    if (backend != "auto") throw RankError({}, what + "; take --backend gloo");
    collectives = nullptr;
    if (world.rank == 0) log::warning("[ranks] " + what + ", so gloo exchanges through the host");
  }

  /// Throws RankError where this rank has left the job.
  void require() const {
    if (!group)
      throw RankError({world.rank}, "rank " + std::to_string(world.rank) + " of " +
                                        std::to_string(world.size) +
                                        " has failed: " + printable(left, 1000));
  }

  /// Destroys a group whose sockets are closed. An exchange of Gloo may miss that, and then waits
  /// for its timeout, which must not hold up this thread.
  static void end_beside(c10::intrusive_ptr<c10d::ProcessGroup> old,
                         c10::intrusive_ptr<c10d::Backend> by) {
    const auto done = std::make_shared<std::promise<void>>();
    const std::future<void> ended = done->get_future();
    std::thread([old = std::move(old), by = std::move(by), done]() mutable {
      old.reset();
      by.reset();
      done->set_value();
    }).detach();
    (void)ended.wait_for(kWordOfOthers);
  }

  /// Ends what is under way: Gloo has no call for that, and its end would wait.
  void disconnect() {
    sockets.shut_down();
    link.reset();
    if (group) end_beside(std::move(group), std::move(gloo));
    gloo.reset();
  }

  /// Waits until all ranks have set a key, and returns those that have not.
  [[nodiscard]] std::vector<int64_t> missing_after(milliseconds timeout,
                                                   const std::string& what) const {
    const auto until = Clock::now() + timeout;
    std::vector<int64_t> missing;
    do {
      missing.clear();
      for (int64_t rank = 0; rank < world.size; ++rank)
        if (!store->check({key(what, rank)}) && !store->check({key("failed", rank)}))
          missing.push_back(rank);
      if (missing.empty()) break;
      std::this_thread::sleep_for(milliseconds(10));
    } while (Clock::now() < until);
    return missing;
  }

  /// Whether a rank starts over, or has failed.
  [[nodiscard]] bool others_have_left() const {
    return store->check({"over/" + std::to_string(generation)}) || store->check({"failure"});
  }

  /// Returns the ranks to which the connections of this one are closed.
  [[nodiscard]] std::set<int64_t> disconnected() const {
    const std::vector<std::string> closed = sockets.closed_addresses();
    std::set<int64_t> ranks;
    for (int64_t rank = 0; rank < world.size && !closed.empty(); ++rank) {
      if (rank == world.rank || !store->check({addresses_key(rank)})) continue;
      for (const auto& one : nlohmann::json::parse(store->get_to_str(addresses_key(rank))))
        if (std::ranges::find(closed, one.get<std::string>()) != closed.end()) ranks.insert(rank);
    }
    return ranks;
  }

  /// Says that this rank lives, and returns those that do not say so: only ended ones where some
  /// have, because a rank that computes does not notice them yet.
  [[nodiscard]] std::vector<int64_t> silent() const {
    store->set(key("lives", world.rank), "1");
    const std::vector<int64_t> missing = missing_after(kWordOfOthers, "lives");
    const std::set<int64_t> closed = disconnected();
    std::vector<int64_t> ended;
    for (const int64_t rank : missing)
      if (closed.contains(rank)) ended.push_back(rank);
    return ended.empty() ? missing : ended;
  }

  [[nodiscard]] std::optional<std::pair<int64_t, std::string>> first_failure() const {
    if (!store->check({"failure"})) return std::nullopt;
    const auto found = nlohmann::json::parse(store->get_to_str("failure"));
    return std::pair(found.at(0).get<int64_t>(), found.at(1).get<std::string>());
  }
};

Group::Group(const World& world, const GroupOptions& options)
    : state_(std::make_unique<State>(
          State{world, as_milliseconds(options.answer_seconds), options.backend})) {
  check_backend(kWhere, options.backend);
  const milliseconds meeting = as_milliseconds(options.meeting_seconds);
  const WithoutLibTorchsLines quiet;
  state_->store = store_of(world, meeting);
  try {
    state_->meet(meeting);
    state_->connect();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    explain(error);
  }
}

Group::Group(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::shared_ptr<Group> Group::planned(int64_t rank, int64_t size) {
  auto state = std::make_unique<State>(
      State{.world = {.rank = rank, .size = size}, .answer = milliseconds(0)});
  state->is_planned = true;
  state->group =
      c10::make_intrusive<PlannedProcessGroup>(static_cast<int>(rank), static_cast<int>(size));
  return std::shared_ptr<Group>(new Group(std::move(state)));
}

Group::~Group() {
  if (state_->link) state_->link->leave(state_->sockets);
  if (state_->group && state_->is_broken) state_->disconnect();  // nothing is under way else
}

void Group::finish(const c10::intrusive_ptr<c10d::Work>& work) const {
  // A send of Gloo may miss that its socket was closed, and then waits for its timeout.
  while (!state_->is_planned && !is_over_within(work, kWordOfOthers))
    if (state_->others_have_left()) throw std::runtime_error("Gloo's other ranks have left");
  work->wait();
  if (state_->gloo) state_->gloo->settle(state_->answer);
}

const World& Group::world() const { return state_->world; }

bool Group::is_planned() const { return state_->is_planned; }

const c10::intrusive_ptr<c10d::ProcessGroup>& Group::process_group() const { return state_->group; }

std::string Group::backend() const { return state_->link ? state_->link->name() : "gloo"; }

void Group::exchange_on(c10::Device device) {
  State& s = *state_;
  device = memory::backend(device).device();  // with its number
  if (s.device == device) return;
  const memory::Collectives* const found = memory::collectives_of(device.type());
  const RankPlace own{.backend = s.backend,
                      .host = host_name(),
                      .device = device.str(),
                      .library = found ? found->name() : "",
                      .hardware = found ? found->hardware(device) : ""};
  std::vector<RankPlace> all;
  for (const std::string& place : texts(to_text(own))) all.push_back(parse_place(place));
  const ExchangeChoice choice = choose_exchange(all);
  try {
    if (s.link) s.link->leave(s.sockets);
    s.device = device;
    s.collectives = choice.direct ? found : nullptr;
    s.link_devices([this](const std::string& text) { return texts(text); });
  } catch (const RankError&) {
    throw;
  } catch (const std::exception& error) {
    explain(error);
  }
  if (!is_first() || device.is_cpu() || choice.direct != (s.link != nullptr)) return;
  log::info("[ranks] tensors of cards are exchanged by " + backend() +
            (choice.direct ? "" : ", through the host, as " + choice.why));
}

void Group::settle() {
  try {
    if (state_->gloo) state_->gloo->settle(state_->answer);
    if (state_->link) state_->link->wait(state_->sockets);
  } catch (const std::exception& error) {
    explain(error);
  }
}

void Group::broadcast(const std::vector<at::Tensor>& tensors, int64_t from) {
  state_->require();
  std::map<c10::ScalarType, std::vector<at::Tensor>> by_type;
  for (const at::Tensor& one : tensors) by_type[one.scalar_type()].push_back(one.detach());
  c10d::BroadcastOptions options;
  options.rootRank = from;
  try {
    for (const auto& [type, some] : by_type) {
      std::vector<at::Tensor> rows;
      for (const at::Tensor& one : some) rows.push_back(one.reshape({-1}));
      std::vector<at::Tensor> sent{at::cat(rows)};
      rows.clear();
      finish(state_->group->broadcast(sent, options));
      if (rank() == from) continue;
      int64_t at = 0;
      for (const at::Tensor& one : some) {
        one.copy_(sent.front().narrow(0, at, one.numel()).view(one.sizes()));
        at += one.numel();
      }
    }
  } catch (const std::exception& error) {
    explain(error);
  }
}

void Group::sum(const std::vector<at::Tensor>& tensors) {
  state_->require();
  try {
    for (const at::Tensor& one : tensors) {
      std::vector<at::Tensor> list{one.detach()};
      finish(state_->group->allreduce(list));
    }
  } catch (const std::exception& error) {
    explain(error);
  }
}

struct Group::Exchange::State {
  const Group* group;
  Numbers numbers;
  std::vector<at::Tensor> all;  // one: [ranks, numbers]
  c10::intrusive_ptr<c10d::Work> work{};
};

Group::Exchange::Exchange() = default;
Group::Exchange::Exchange(std::unique_ptr<State> state) : state_(std::move(state)) {}
Group::Exchange::Exchange(Exchange&&) noexcept = default;
Group::Exchange& Group::Exchange::operator=(Exchange&&) noexcept = default;
Group::Exchange::~Exchange() {
  if (!state_) return;
  try {  // not for long: an exchange may miss that a rank starts over
    state_->work->wait(kWordOfOthers);
  } catch (...) {  // what follows finds that the rank is missing
  }
}

std::vector<Group::Numbers> Group::Exchange::wait() {
  const std::unique_ptr<State> state = std::move(state_);
  try {
    state->group->finish(state->work);
  } catch (const std::exception& error) {
    state->group->explain(error);
  }
  const auto ranks = static_cast<size_t>(state->group->size());
  if (state->group->state_->is_planned) return std::vector<Numbers>(ranks, state->numbers);
  const double* data = state->all.front().const_data_ptr<double>();
  const size_t count = state->numbers.size();
  std::vector<Numbers> numbers;
  for (size_t rank = 0; rank < ranks; ++rank, data += count)
    numbers.emplace_back(data, data + count);
  return numbers;
}

Group::Exchange Group::start(const Numbers& own) {
  state_->require();
  auto state = std::make_unique<Exchange::State>();
  state->group = this;
  state->numbers = own;
  // A sum of rows that are 0 on all ranks but one: Gloo's gathering would take memory meanwhile.
  const at::Tensor rows =
      at::zeros({size(), static_cast<int64_t>(own.size())}, at::TensorOptions(at::kDouble));
  if (!state_->is_planned)
    std::ranges::copy(own, rows.mutable_data_ptr<double>() + rank() * std::ssize(own));
  state->all = {rows};
  try {
    state->work = state_->group->allreduce(state->all);
  } catch (const std::exception& error) {
    explain(error);
  }
  return Exchange(std::move(state));
}

std::vector<std::string> Group::texts(const std::string& own) {
  const auto length = static_cast<int64_t>(own.size());
  at::Tensor bytes = at::empty({length}, at::TensorOptions(at::kByte));
  if (!state_->is_planned) std::memcpy(bytes.mutable_data_ptr<uint8_t>(), own.data(), own.size());
  const auto received = tensors({bytes});
  if (state_->is_planned) return std::vector<std::string>(received.size(), own);
  std::vector<std::string> all;
  for (const auto& of_rank : received) {
    const at::Tensor& one = of_rank.front();
    const auto* data = reinterpret_cast<const char*>(one.const_data_ptr<uint8_t>());
    all.emplace_back(data, static_cast<size_t>(one.numel()));
  }
  return all;
}

void Group::require_equal(const std::string& own, const std::string& otherwise) {
  const std::vector<std::string> all = texts(own);
  for (size_t other = 1; other < all.size(); ++other)
    if (all[other] != all.front())
      throw ConfigError(kWhere, "rank " + std::to_string(other) + ' ' + otherwise);
}

namespace {

/// Describes the tensors of a rank: for each its dtype, its dimensions and their sizes.
Group::Numbers layout_of(const std::vector<at::Tensor>& tensors) {
  Group::Numbers layout{static_cast<double>(tensors.size())};
  for (const at::Tensor& one : tensors) {
    layout.push_back(one.defined() ? static_cast<double>(one.scalar_type()) : -1);
    layout.push_back(one.defined() ? static_cast<double>(one.dim()) : 0);
    if (one.defined())
      for (const int64_t size : one.sizes()) layout.push_back(static_cast<double>(size));
  }
  return layout;
}

std::vector<at::Tensor> tensors_of(const Group::Numbers& layout) {
  std::vector<at::Tensor> tensors;
  size_t at = 1;
  for (auto left = static_cast<size_t>(layout.front()); left > 0; --left) {
    const auto type = static_cast<int>(layout[at++]);
    std::vector<int64_t> sizes(static_cast<size_t>(layout[at++]));
    for (int64_t& size : sizes) size = static_cast<int64_t>(layout[at++]);
    tensors.push_back(
        type < 0 ? at::Tensor()
                 : at::empty(sizes, at::TensorOptions(static_cast<c10::ScalarType>(type))));
  }
  return tensors;
}

std::vector<at::Tensor> tensors_of(const std::vector<Group::Layout>& layouts) {
  std::vector<at::Tensor> tensors;
  for (const Group::Layout& one : layouts)
    tensors.push_back(at::empty(one.sizes, at::TensorOptions(one.type)));
  return tensors;
}

}  // namespace

std::vector<std::vector<at::Tensor>> Group::tensors(
    const std::vector<at::Tensor>& own, const std::vector<std::vector<Layout>>& planned) {
  Numbers layout = layout_of(own);
  const auto lengths = exchange({static_cast<double>(layout.size())});
  double longest = 0;
  for (const Numbers& length : lengths) longest = std::max(longest, length.front());
  layout.resize(static_cast<size_t>(longest));
  const auto layouts = exchange(layout);
  std::vector<std::vector<at::Tensor>> all;
  for (int64_t rank = 0; rank < size(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    all.push_back(planned.empty() ? tensors_of(layouts[at]) : tensors_of(planned.at(at)));
    const bool as_own = rank == this->rank() || (is_planned() && planned.empty());
    std::vector<at::Tensor> sent;
    for (size_t i = 0; i < all.back().size(); ++i) {
      at::Tensor& one = all.back()[i];
      if (!one.defined()) continue;
      if (as_own) one.copy_(own[i]);
      if (one.numel() > 0) sent.push_back(one);
    }
    broadcast(sent, rank);
  }
  return all;
}

void Group::meet() {
  state_->require();
  settle();
  try {
    finish(state_->group->barrier());
  } catch (const std::exception& error) {
    explain(error);
  }
}

void Group::fail(const std::exception_ptr& error) noexcept {
  if (state_->is_planned) return;
  try {
    const auto reason = text_of(error);
    if (!reason) return;
    state_->left = *reason;
    const std::string text = nlohmann::json{rank(), *reason}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
    state_->store->set(State::key("failed", rank()), "1");
    state_->store->compareSet("failure", "", text);
    state_->disconnect();  // so that no rank waits for this one
    state_->serve_until_all_have("knows");
  } catch (...) {  // the store is gone, and the others know
  }
}

bool Group::is_of_exchange(const std::exception& error) {
  if (dynamic_cast<const RankError*>(&error)) return true;
  if (dynamic_cast<const c10::DistError*>(&error)) return true;
  const std::string text = error.what();
  for (const char* name : {"gloo", "Gloo", "NCCL"})
    if (text.find(name) != std::string::npos) return true;
  return false;
}

void Group::start_over() {
  State& s = *state_;
  if (s.is_planned) return;
  try {
    s.store->set("over/" + std::to_string(s.generation), "1");
    s.disconnect();
    ++s.generation;
    const std::string again = "again/" + std::to_string(s.generation);
    s.store->set(State::key(again, rank()), "1");
    const auto missing = s.missing_after(s.answer, again);
    if (!missing.empty())
      throw RankError(missing, named(missing) + " of " + std::to_string(size()) +
                                   " did not start over after a rank ran out of memory");
    s.connect();
    // No rank goes on before all are connected, because it may start over again at once.
    const std::string connected = "connected/" + std::to_string(s.generation);
    s.store->set(State::key(connected, rank()), "1");
    if (const auto late = s.missing_after(s.answer, connected); !late.empty())
      throw RankError(late, named(late) + " of " + std::to_string(size()) +
                                " did not connect again after a rank ran out of memory");
    s.link_devices([this](const std::string& text) { return texts(text); });
    s.is_broken = false;
  } catch (const RankError&) {
    throw;
  } catch (const std::exception& error) {
    explain(error);
  }
}

void Group::explain(const std::exception& error) const {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) throw;  // of this rank
  state_->is_broken = true;
  if (state_->link) state_->link->stop();
  if (dynamic_cast<const Error*>(&error) || state_->is_planned) throw;
  const std::string whole = std::to_string(size());
  const WithoutLibTorchsLines quiet;
  std::vector<int64_t> missing;
  try {
    if (state_->store->check({"over/" + std::to_string(state_->generation)}))
      throw OutOfMemory(c10::kCPU, 0, 0, {}, "another rank ran out of memory");
    missing = state_->silent();
    const auto failed = state_->first_failure();
    state_->store->set(State::key("knows", rank()), "1");
    if (failed)
      throw RankError({failed->first}, "rank " + std::to_string(failed->first) + " of " + whole +
                                           " has failed: " + printable(failed->second, 1000));
  } catch (const RankError&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception&) {  // the store does not answer
    const bool served = world().store_is_served;
    throw RankError(served ? std::vector<int64_t>() : std::vector<int64_t>{0},
                    served ? "the store of " + world().started_by + " has ended"
                           : "rank 0 of " + whole + " has ended without a word");
  }
  if (!missing.empty())
    throw RankError(missing, named(missing) + " of " + whole +
                                 (missing.size() == 1 ? " has" : " have") +
                                 " ended without a word, or " +
                                 (missing.size() == 1 ? "does" : "do") + " not answer");
  throw RankError({},
                  "an exchange between " + whole + " ranks has failed: " + first_line(error) +
                      (state_->collectives ? "; --backend gloo exchanges through the host" : ""));
}

}  // namespace tare::parallel
