// Cuts texts into pieces, learns which tokens are joined, and joins them.
#include "tare/data/token_merger.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_set>

#include "tare/base/utf8.h"

namespace tare {
namespace {

constexpr size_t kMostCharacters = 64;  // of a piece: joining takes the square of them

enum class Kind { word, blank, other };

/// Returns the kind of the character that begins with this byte; all beyond ASCII are of words.
Kind kind_of(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
      (byte >= 'A' && byte <= 'Z'))
    return Kind::word;
  return byte == ' ' || (byte >= '\t' && byte <= '\r') ? Kind::blank : Kind::other;
}

size_t bytes_of_first(std::string_view text) { return std::max<size_t>(1, utf8_length(text)); }

/// Is a pair of neighbouring tokens as one number.
using Pair = uint64_t;
Pair pair_of(int64_t left, int64_t right) {
  return static_cast<Pair>(left) << 32 | static_cast<Pair>(right);
}
int64_t left_of(Pair pair) { return static_cast<int64_t>(pair >> 32); }
int64_t right_of(Pair pair) { return static_cast<int64_t>(pair & 0xffffffffU); }

/// Counts the pairs within the different pieces of a text, and joins them.
class Learner {
 public:
  explicit Learner(std::string_view text) {
    std::unordered_map<std::string_view, int64_t> all;
    for (const std::string_view piece : pieces_of(text)) ++all[piece];
    const std::map<std::string_view, int64_t> counts(all.begin(), all.end());
    std::set<std::string_view> characters;  // bytewise order is that of the code points
    for (const auto& [piece, count] : counts)
      each_character(piece, [&](std::string_view character) { characters.insert(character); });
    for (const std::string_view character : characters) add(std::string(character));
    for (const auto& [piece, count] : counts) {
      std::vector<int64_t> tokens;
      each_character(piece, [&](std::string_view character) {
        tokens.push_back(numbers_.at(std::string(character)));
      });
      pieces_.push_back({std::move(tokens), count});
      const std::vector<bool> every(pieces_.back().tokens.size(), true);
      count_pairs(pieces_.size() - 1, every, +1);
    }
    queue_risen();
  }

  std::vector<std::string> learn(size_t size) {
    while (vocabulary_.size() < size) {
      const std::optional<Pair> best = most_frequent();
      if (!best) break;
      join(*best);
    }
    return std::move(vocabulary_);
  }

 private:
  struct Piece {
    std::vector<int64_t> tokens;
    int64_t count;  // in the text
  };
  struct Found {
    int64_t count = 0;           // in the text
    std::vector<size_t> pieces;  // that may have the pair
  };
  struct Queued {
    int64_t count;  // when it was queued
    Pair pair;
    bool operator<(const Queued& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  template <class Take>
  static void each_character(std::string_view piece, const Take& take) {
    while (!piece.empty()) {
      const size_t bytes = bytes_of_first(piece);
      take(piece.substr(0, bytes));
      piece.remove_prefix(bytes);
    }
  }

  /// Returns the number of a token, which is new unless another pair makes an equal text.
  int64_t add(const std::string& token) {
    const auto [found, is_new] = numbers_.emplace(token, static_cast<int64_t>(vocabulary_.size()));
    if (is_new) vocabulary_.push_back(token);
    return found->second;
  }

  /// Adds the pairs of a piece that have one of the `touched` tokens, or takes them away.
  void count_pairs(size_t index, const std::vector<bool>& touched, int64_t sign) {
    const Piece& piece = pieces_[index];
    for (size_t i = 0; i + 1 < piece.tokens.size(); ++i) {
      if (!touched[i] && !touched[i + 1]) continue;
      const Pair pair = pair_of(piece.tokens[i], piece.tokens[i + 1]);
      Found& found = pairs_[pair];
      found.count += sign * piece.count;
      if (sign < 0) continue;
      if (found.pieces.empty() || found.pieces.back() != index) found.pieces.push_back(index);
      risen_.insert(pair);
    }
  }

  void queue_risen() {
    for (const Pair pair : risen_) queue_.push({pairs_.at(pair).count, pair});
    risen_.clear();
  }

  /// Returns the pair that occurs most often, at least twice. A queued count may be too high,
  /// because pairs that became rarer are not queued anew before they come up.
  std::optional<Pair> most_frequent() {
    while (!queue_.empty() && queue_.top().count >= 2) {
      const Queued top = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(top.pair);
      const int64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count == top.count) return top.pair;
      if (count < top.count) queue_.push({count, top.pair});
    }
    return std::nullopt;
  }

  void join(Pair pair) {
    const int64_t left = left_of(pair), right = right_of(pair);
    const int64_t joined =
        add(vocabulary_[static_cast<size_t>(left)] + vocabulary_[static_cast<size_t>(right)]);
    const std::vector<size_t> pieces = std::move(pairs_.at(pair).pieces);
    for (const size_t index : pieces) {
      const std::vector<int64_t> before = pieces_[index].tokens;
      std::vector<int64_t> after;
      std::vector<bool> parts(before.size()), joins;
      for (size_t i = 0; i < before.size(); ++i) {
        const bool is_pair = i + 1 < before.size() && before[i] == left && before[i + 1] == right;
        after.push_back(is_pair ? joined : before[i]);
        joins.push_back(is_pair);
        if (!is_pair) continue;
        parts[i] = parts[i + 1] = true;
        ++i;
      }
      if (after.size() == before.size()) continue;  // another pair has taken its tokens
      count_pairs(index, parts, -1);
      pieces_[index].tokens = std::move(after);
      count_pairs(index, joins, +1);
    }
    pairs_.erase(pair);
    risen_.erase(pair);
    queue_risen();
  }

  std::vector<std::string> vocabulary_;
  std::map<std::string, int64_t> numbers_;
  std::vector<Piece> pieces_;
  std::unordered_map<Pair, Found> pairs_;
  std::priority_queue<Queued> queue_;
  std::unordered_set<Pair> risen_;  // since the queue was filled
};

}  // namespace

std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const bool leads = text.size() > 1 && text.front() == ' ' && kind_of(text[1]) == Kind::word;
    size_t bytes = leads ? 1 : 0, characters = bytes;
    const Kind kind = kind_of(text[bytes]);
    while (bytes < text.size() && kind_of(text[bytes]) == kind && characters < kMostCharacters) {
      // The last blank of a run belongs to the word behind it.
      if (kind == Kind::blank && characters > 0 && text[bytes] == ' ' && bytes + 1 < text.size() &&
          kind_of(text[bytes + 1]) == Kind::word)
        break;
      bytes += bytes_of_first(text.substr(bytes));
      ++characters;
    }
    pieces.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return pieces;
}

std::vector<std::string> learnt_vocabulary(std::string_view text, size_t size) {
  return Learner(text).learn(size);
}

TokenMerger::TokenMerger(const std::vector<std::string>& vocabulary) {
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    numbers_.emplace(vocabulary[i], static_cast<int64_t>(i));
    merges_ = merges_ || bytes_of_first(vocabulary[i]) < vocabulary[i].size();
  }
}

void TokenMerger::append(std::string_view piece, std::vector<int64_t>& tokens,
                         const std::function<void(std::string_view)>& refuse) const {
  struct Part {
    std::string_view text;
    int64_t number;
  };
  std::vector<Part> parts;
  for (size_t at = 0; at < piece.size();) {
    const std::string_view character = piece.substr(at, bytes_of_first(piece.substr(at)));
    const auto found = numbers_.find(character);
    if (found == numbers_.end()) refuse(character);
    parts.push_back({character, found->second});
    at += character.size();
  }
  while (merges_) {
    size_t best = parts.size();
    int64_t lowest = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string_view both(parts[i].text.data(),
                                  parts[i].text.size() + parts[i + 1].text.size());
      const auto found = numbers_.find(both);
      if (found == numbers_.end() || (best < parts.size() && found->second >= lowest)) continue;
      best = i;
      lowest = found->second;
    }
    if (best == parts.size()) break;
    parts[best] = {{parts[best].text.data(), parts[best].text.size() + parts[best + 1].text.size()},
                   lowest};
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  for (const Part& part : parts) tokens.push_back(part.number);
}

}  // namespace tare
