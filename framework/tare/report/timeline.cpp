// Reads a timeline file, and reduces it to buckets of time.
#include "tare/report/timeline.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>

#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/memory/timeline_columns.h"

namespace tare::report {
namespace {

/// Names in order of their first use, each with its index; at most kGroups.
class Names {
 public:
  size_t index(const std::string& name) {
    const auto known = index_.find(name);
    if (known != index_.end()) return known->second;
    if (names_.size() == kGroups) return kGroups - 1;
    names_.push_back(names_.size() + 1 == kGroups ? "more" : name);
    return index_[names_.back()] = names_.size() - 1;
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, size_t> index_;
};

using Totals = std::array<int64_t, kGroups>;

struct Moment {
  double time_s = 0;
  int64_t sum = 0;
  Totals bytes{};
};

struct Bucket {
  Moment low, high;
  std::array<double, kGroups> phase_s{};

  void add(const Moment& moment) {
    if (moment.sum < low.sum) low = moment;
    if (moment.sum > high.sum) high = moment;
  }
};

/// Equal stretches of time from 0 on. When they are used up, each two become one.
class Buckets {
 public:
  /// Makes `from` hold from its time until `until_s`, which never falls.
  void hold(const Moment& from, size_t phase, double until_s) {
    double time = from.time_s;
    enter(from);
    while (until_s > time) {
      const double end = std::min(until_s, static_cast<double>(buckets_.size()) * width_s_);
      buckets_.back().phase_s[phase] += end - time;
      time = end;
      if (until_s <= time) break;
      Moment next = from;
      next.time_s = time;
      enter(next);
    }
  }
  void add(const Moment& moment) {
    enter(moment);
    buckets_.back().add(moment);
  }
  [[nodiscard]] const std::vector<Bucket>& all() const { return buckets_; }
  [[nodiscard]] double width_s() const { return width_s_; }

 private:
  /// Makes the last bucket the one of this moment, whose state has held since the bucket before.
  void enter(const Moment& moment) {
    while (moment.time_s >= width_s_ * static_cast<double>(kBuckets)) join_pairs();
    while (buckets_.empty() || moment.time_s >= static_cast<double>(buckets_.size()) * width_s_)
      buckets_.push_back({.low = moment, .high = moment});
  }
  void join_pairs() {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      Bucket& target = buckets_[i / 2];
      if (i % 2 == 0) {
        target = buckets_[i];
        continue;
      }
      target.add(buckets_[i].low);
      target.add(buckets_[i].high);
      for (size_t p = 0; p < kGroups; ++p) target.phase_s[p] += buckets_[i].phase_s[p];
    }
    buckets_.resize((buckets_.size() + 1) / 2);
    width_s_ *= 2;
  }

  std::vector<Bucket> buckets_;
  double width_s_ = 1e-6;
};

struct Block {
  int64_t bytes = 0;
  size_t group = 0, phase = 0;
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    read_csv(path, [this](const std::vector<std::string>& fields, size_t line) {
      line_ = line;
      if (columns_.empty())
        take_header(fields);
      else
        take(fields);
    });
    if (!started_) refuse("the file", "has no line 'start'");
  }

  [[nodiscard]] Timeline result() {
    Timeline t;
    t.by_category = category_ != columns_.end();
    t.events = events_;
    t.end_s = now_.time_s;
    t.groups = groups_.all();
    t.phases = phases_.all();
    t.peak_bytes = peak_.sum;
    t.peak_s = peak_.time_s;
    t.peak_phase = t.phases[peak_phase_];
    t.at_peak.assign(peak_.bytes.begin(), peak_.bytes.begin() + count(t.groups));
    write_curves(t);
    write_left(t);
    return t;
  }

 private:
  using Fields = std::vector<std::string>;

  static std::ptrdiff_t count(const std::vector<std::string>& names) {
    return static_cast<std::ptrdiff_t>(names.size());
  }

  [[noreturn]] void refuse(const std::string& part, const char* problem) const {
    throw FormatError("report.timeline", path_.string(), part, problem);
  }
  [[noreturn]] void refuse(const char* problem) const {
    refuse("line " + std::to_string(line_), problem);
  }

  void take_header(const Fields& fields) {
    for (size_t i = 0; i < fields.size(); ++i) columns_[fields[i]] = i;
    const auto& all = memory::kTimelineColumns;
    const char* const last = all.back();
    for (const char* name : all)
      if (name != last && !columns_.contains(name))
        refuse("is not the header of a memory timeline");
    width_ = fields.size();
    category_ = columns_.find(last);
  }

  void take(const Fields& fields) {
    if (fields.size() != width_) refuse("has not as many fields as the header");
    const auto& event = field(fields, "event");
    const auto bytes = number<int64_t>(fields, "bytes");
    const auto sum = number<int64_t>(fields, "allocated_bytes");
    if (event == "start") return start(sum);
    if (!started_) refuse("comes before the line 'start'");
    const auto time_s = number<double>(fields, "time_s");
    if (!(time_s >= now_.time_s) || !std::isfinite(time_s)) refuse("goes back in time");
    if (bytes < 0) refuse("has negative bytes");
    buckets_.hold(now_, phase_, time_s);
    phase_ = phases_.index(field(fields, "phase"));
    now_.time_s = time_s;
    if (event == "allocation")
      allocate(fields, bytes);
    else if (event == "free")
      free(number<uint64_t>(fields, "block"), bytes);
    else
      refuse("has an unknown event");
    if (sum != now_.sum) refuse("has allocated_bytes that do not follow from the lines before");
    buckets_.add(now_);
    if (now_.sum > peak_.sum) {
      peak_ = now_;
      peak_phase_ = phase_;
    }
    ++events_;
  }

  void start(int64_t sum) {
    if (started_ || sum < 0) refuse("is not the start of a timeline");
    started_ = true;
    before_ = groups_.index("before the trace");
    phase_ = phases_.index("none");
    now_.bytes[before_] = now_.sum = sum;
    peak_ = now_;
  }

  void allocate(const Fields& fields, int64_t bytes) {
    const Block block{bytes,
                      groups_.index(category_ == columns_.end() ? field(fields, "allocated_in")
                                                                : fields[category_->second]),
                      phases_.index(field(fields, "allocated_in"))};
    if (!alive_.emplace(number<uint64_t>(fields, "block"), block).second)
      refuse("allocates a block that is alive");
    change(block.group, bytes);
  }

  void free(uint64_t number, int64_t bytes) {
    const auto known = alive_.find(number);
    if (known == alive_.end()) return change(before_, -bytes);
    if (known->second.bytes != bytes) refuse("frees a block of another size");
    change(known->second.group, -bytes);
    alive_.erase(known);
  }

  void change(size_t group, int64_t bytes) {
    if (__builtin_add_overflow(now_.sum, bytes, &now_.sum) ||
        __builtin_add_overflow(now_.bytes[group], bytes, &now_.bytes[group]) ||
        now_.bytes[group] < 0)
      refuse("frees or allocates more than there can be");
  }

  const std::string& field(const Fields& fields, const char* name) const {
    return fields[columns_.find(name)->second];
  }

  template <class T>
  T number(const Fields& fields, const char* name) const {
    const std::string& text = field(fields, name);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      refuse("has text where a number should be");
    return value;
  }

  void write_curves(Timeline& t) const {
    t.bytes.resize(t.groups.size());
    t.shares.resize(t.phases.size());
    const auto add = [&t](double time_s, const Moment& highest, int64_t lowest) {
      t.stretch_s.push_back(time_s);
      for (size_t g = 0; g < t.groups.size(); ++g)
        t.bytes[g].push_back(static_cast<double>(highest.bytes[g]));
      t.lowest_bytes.push_back(static_cast<double>(lowest));
    };
    for (const auto& bucket : buckets_.all()) {
      add(buckets_.width_s() * static_cast<double>(t.stretch_s.size()), bucket.high,
          bucket.low.sum);
      double whole = 0;
      for (const double seconds : bucket.phase_s) whole += seconds;
      for (size_t p = 0; p < t.phases.size(); ++p)
        t.shares[p].push_back(whole > 0 ? bucket.phase_s[p] / whole : 0);
    }
    if (t.stretch_s.empty()) return;
    add(std::max(t.end_s, t.stretch_s.back()), now_, now_.sum);
    for (auto& share : t.shares) share.push_back(share.back());
  }

  void write_left(Timeline& t) const {
    std::map<std::pair<size_t, size_t>, AliveGroup> sums;
    for (const auto& [number, block] : alive_) {
      auto& sum = sums[{block.group, block.phase}];
      sum.group = t.groups[block.group];
      sum.phase = t.phases[block.phase];
      ++sum.blocks;
      sum.bytes += block.bytes;
    }
    for (auto& [key, sum] : sums) t.left.push_back(std::move(sum));
    std::ranges::stable_sort(t.left, std::ranges::greater{}, &AliveGroup::bytes);
  }

  const std::filesystem::path& path_;
  size_t line_ = 0, width_ = 0;
  std::map<std::string, size_t, std::less<>> columns_;
  std::map<std::string, size_t, std::less<>>::const_iterator category_ = columns_.end();
  Names groups_, phases_;
  Buckets buckets_;
  std::unordered_map<uint64_t, Block> alive_;
  bool started_ = false;
  int64_t events_ = 0;
  Moment now_, peak_;
  size_t phase_ = 0, peak_phase_ = 0, before_ = 0;
};

}  // namespace

Timeline read_timeline(const std::filesystem::path& path) { return Reader(path).result(); }

}  // namespace tare::report
