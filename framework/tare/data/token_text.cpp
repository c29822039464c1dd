// Reads a text as windows of tokens.
#include "tare/data/token_text.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/utf8.h"
#include "tare/config/scalar.h"
#include "tare/data/datasets.h"
#include "tare/data/gather.h"
#include "tare/data/npy.h"
#include "tare/data/token_merger.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

constexpr int64_t kLimitBytes = int64_t{4} << 30;
constexpr int64_t kVocabulary = 512;      // of bpe
constexpr uint64_t kMove = ~uint64_t{1};  // the number of no sample

/// Calls `take` with each character.
template <class Take>
void each_character(std::string_view text, const std::filesystem::path& path, const Take& take) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_length(text.substr(at));
    if (size == 0)
      throw FormatError("data.text", path.string(), "byte " + std::to_string(at),
                        "is no part of a character of UTF-8; tokenizer: bytes takes any file");
    take(text.substr(at, size));
    at += size;
  }
}

/// Gives windows of a text's tokens.
class TokenWindows final : public Dataset {
 public:
  TokenWindows(const TokenText& text, const TokenWindowOptions& options)
      : tokens_(text.tokens.contiguous()), labels_(text.vocabulary), options_(options) {
    if (options.context < 1)
      throw ConfigError("data.text", "context", "must be >= 1", "",
                        std::to_string(options.context));
    // The last window has a next token behind it; a move takes up to context - 1 tokens more.
    const int64_t moved = options.move ? options.context - 1 : 0;
    size_ = (tokens_.numel() - 1 - moved) / options.context;
    if (size_ < 1)
      throw ConfigError("data.text", "context",
                        "is too long for a split of " + format_count(tokens_.numel()) + " tokens",
                        "a shorter context, or another split", std::to_string(options.context));
  }
  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return {options_.context}; }
  [[nodiscard]] std::vector<std::string> labels() const override { return labels_; }
  [[nodiscard]] std::string content() const override {
    return content_hash({static_cast<const std::byte*>(tokens_.const_data_ptr()),
                         static_cast<size_t>(tokens_.nbytes())});
  }
  void account(Ledger& ledger) const override { ledger.add(Category::other, "tokens", tokens_); }

  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    check_indices(request.indices, size_);
    const auto samples = static_cast<int64_t>(request.indices.size());
    at::Tensor input = at::empty({samples, options_.context}, at::kLong);
    at::Tensor next = at::empty({samples, options_.context}, at::kLong);
    const int64_t move = options_.move && request.training
                             ? static_cast<int64_t>(derive_seed(request.seed, kMove) %
                                                    static_cast<uint64_t>(options_.context))
                             : 0;
    if (tokens_.scalar_type() == at::kByte)
      copy<uint8_t>(request.indices, move, input, next);
    else
      copy<int32_t>(request.indices, move, input, next);
    return Batch({{"tokens", std::move(input)}}, {{"next", std::move(next)}});
  }

 private:
  template <class Token>
  void copy(std::span<const int64_t> indices, int64_t move, at::Tensor& input,
            at::Tensor& next) const {
    const Token* tokens = tokens_.const_data_ptr<Token>();
    int64_t *in = input.mutable_data_ptr<int64_t>(), *out = next.mutable_data_ptr<int64_t>();
    for (const int64_t index : indices) {
      const Token* first = tokens + index * options_.context + move;
      in = std::copy_n(first, options_.context, in);
      out = std::copy_n(first + 1, options_.context, out);
    }
  }

  at::Tensor tokens_;
  std::vector<std::string> labels_;
  TokenWindowOptions options_;
  int64_t size_ = 0;
};

/// Returns the tokens of a part of the splits.
int64_t tokens_of(const char* field, double size, int64_t all, int64_t context) {
  if (size < 0 || (size > 1 && size != std::floor(size)))
    throw ConfigError("data.text", field, "is neither a fraction nor a number of samples", ">= 0",
                      config::number_text(size));
  return size <= 1 ? static_cast<int64_t>(std::floor(size * static_cast<double>(all)))
                   : static_cast<int64_t>(size) * context + 1;
}

/// Returns the tokens in the smallest dtype of TokenText::tokens.
at::Tensor stored(const std::vector<int64_t>& tokens, size_t vocabulary) {
  const auto fill = [&](auto* out) {
    for (const int64_t token : tokens)
      *out++ = static_cast<std::remove_pointer_t<decltype(out)>>(token);
  };
  const bool are_bytes = vocabulary <= 256;
  at::Tensor all =
      at::empty({static_cast<int64_t>(tokens.size())}, are_bytes ? at::kByte : at::kInt);
  if (are_bytes)
    fill(all.mutable_data_ptr<uint8_t>());
  else
    fill(all.mutable_data_ptr<int32_t>());
  return all;
}

}  // namespace

TokenText byte_tokens(std::string_view text) {
  TokenText result{.tokens = at::empty({static_cast<int64_t>(text.size())}, at::kByte)};
  std::ranges::copy(text, result.tokens.mutable_data_ptr<uint8_t>());
  return result;
}

TokenText character_tokens(std::string_view text, const std::filesystem::path& path) {
  std::map<std::string_view, int32_t> numbers;  // bytewise order is that of the code points
  int64_t count = 0;
  each_character(text, path, [&](std::string_view character) {
    numbers.emplace(character, 0);
    ++count;
  });
  TokenText result;
  for (auto& [character, number] : numbers) {
    number = static_cast<int32_t>(result.vocabulary.size());
    result.vocabulary.emplace_back(character);
  }
  std::vector<int64_t> tokens;
  tokens.reserve(static_cast<size_t>(count));
  each_character(text, path, [&](std::string_view character) {
    tokens.push_back(numbers.find(character)->second);
  });
  result.tokens = stored(tokens, result.vocabulary.size());
  return result;
}

TokenText bpe_tokens(std::string_view text, int64_t vocabulary, const std::filesystem::path& path) {
  each_character(text, path, [](std::string_view) {});  // throws for what is no UTF-8
  TokenText result{.vocabulary = learnt_vocabulary(text, static_cast<size_t>(vocabulary))};
  const TokenMerger merger(result.vocabulary);
  std::unordered_map<std::string_view, std::vector<int64_t>> known;  // by piece
  std::vector<int64_t> tokens;
  for (const std::string_view piece : pieces_of(text)) {
    auto [found, is_new] = known.try_emplace(piece);
    if (is_new) merger.append(piece, found->second, [](std::string_view) {});
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
  }
  result.tokens = stored(tokens, result.vocabulary.size());
  return result;
}

TokenText stored_tokens(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& problem) {
    throw FormatError("data.text", path.string(), "array", problem);
  };
  const at::Tensor array = read_npy(path);
  if (array.dim() != 1 || !c10::isIntegralType(array.scalar_type(), /*includeBool=*/false))
    refuse("is " + numpy_dtype(array) + " " + c10::str(array.sizes()) +
           ", and tokens are whole numbers in one dimension");
  if (array.numel() == 0) refuse("is empty: give a file that has some tokens");
  const at::Tensor wide = array.to(at::kLong);
  const int64_t* tokens = wide.const_data_ptr<int64_t>();
  const auto [least, most] = std::minmax_element(tokens, tokens + wide.numel());
  if (*least < 0 || *most > INT32_MAX)
    refuse("has the token " + std::to_string(*least < 0 ? *least : *most) +
           ": give numbers from 0 to 2,147,483,647");
  return {.tokens = wide.to(*most <= UINT8_MAX ? at::kByte : at::kInt)};
}

DatasetPtr token_windows(const TokenText& text, const TokenWindowOptions& options) {
  return std::make_shared<TokenWindows>(text, options);
}

Splits split_text(const TokenText& text, int64_t context, const SplitSizes& sizes) {
  const int64_t all = text.tokens.numel();
  const int64_t train = tokens_of("train", sizes.train, all, context),
                valid = tokens_of("valid", sizes.valid, all, context),
                test = tokens_of("test", sizes.test, all, context);
  if (train == 0)
    throw ConfigError(
        "data.text", "train",
        "leaves no training split of " + format_count(all) + (all == 1 ? " token" : " tokens"),
        sizes.train > 0 ? "a longer text" : "a part above 0", config::number_text(sizes.train));
  if (train + valid + test > all)
    throw ConfigError("data.text", test > 0 ? "test" : "valid",
                      "leaves too few: the splits need " + format_count(train + valid + test) +
                          " tokens together",
                      "parts of at most " + format_count(all), config::number_text(sizes.valid));
  const auto part = [&](int64_t begin, int64_t length, bool move) -> DatasetPtr {
    if (length == 0) return nullptr;
    return token_windows({text.tokens.narrow(0, begin, length), text.vocabulary},
                         {.context = context, .move = move});
  };
  return {.train = part(0, train, true),
          .valid = part(train, valid, false),
          .test = part(train + valid, test, false)};
}

}  // namespace tare

namespace tare::datasets {
namespace {

TokenText tokens_of_text(const DataOptions& o, int64_t vocabulary) {
  const std::string text = io::read_text(o.file, kLimitBytes);
  if (text.empty())
    throw FormatError("data.text", o.file, "text", "is empty: give a file that has some text");
  if (o.tokenizer == "bytes") return byte_tokens(text);
  return o.tokenizer == "bpe" ? bpe_tokens(text, vocabulary, o.file)
                              : character_tokens(text, o.file);
}

Found windows(const DataOptions& o, bool) {
  const auto refuse = [](const char* field, const std::string& problem, const std::string& allowed,
                         const std::string& got) {
    throw ConfigError("data.make", field, problem, allowed, got);
  };
  if (o.file.empty()) refuse("file", "is needed by the data set text", "a file of text", "");
  const std::string tokenizer = o.tokenizer.empty() ? "characters" : o.tokenizer;
  if (tokenizer != "characters" && tokenizer != "bytes" && tokenizer != "bpe")
    refuse("tokenizer",
           "is not a tokenizer" + did_you_mean(tokenizer, {"characters", "bytes", "bpe"}),
           "characters, bytes, bpe", tokenizer);
  if (o.vocabulary > 0 && tokenizer != "bpe")
    refuse("vocabulary", "is decided by the tokenizer " + tokenizer, "omit it, or tokenizer: bpe",
           std::to_string(o.vocabulary));
  if (o.vocabulary == 1) refuse("vocabulary", "is too small", "at least 2, or 0 for 512", "1");
  if (o.folds > 0)
    refuse("folds", "are parts of single samples, and a text is cut into its splits", "omit it",
           std::to_string(o.folds));
  const bool has_tokens = std::filesystem::path(o.file).extension() == ".npy";
  if (has_tokens && !o.tokenizer.empty())
    refuse("tokenizer", "is for texts, and an array has tokens already", "omit it", o.tokenizer);
  const int64_t vocabulary = o.vocabulary > 0 ? o.vocabulary : kVocabulary;
  const TokenText tokens = has_tokens ? stored_tokens(o.file) : tokens_of_text(o, vocabulary);
  if (tokenizer == "bpe" && std::ssize(tokens.vocabulary) > vocabulary)
    refuse("vocabulary", "is less than the characters of the file",
           "at least " + std::to_string(tokens.vocabulary.size()), std::to_string(vocabulary));
  const int64_t context = o.context > 0 ? o.context : TokenWindowOptions{}.context;
  Splits splits = split_text(tokens, context, {o.train, o.valid, o.test});
  std::string description = format_count(tokens.tokens.numel()) + ' ' +
                            (has_tokens || tokenizer == "bpe" ? "tokens" : tokenizer) + " of " +
                            printable(o.file);
  if (!tokens.vocabulary.empty())
    description += ", " + std::to_string(tokens.vocabulary.size()) + " different ones";
  return {.description = std::move(description),
          .data = splits.train,
          .valid = splits.valid,
          .test = splits.test,
          .are_splits = true};
}

}  // namespace

void add_token_text(Registry& all) {
  all.add("text", "reads a file of text as windows of tokens, for a language model", [] {
    return Kind{
        .fields = {"file", "context", "tokenizer", "vocabulary"}, .make = windows, .images = false};
  });
}

}  // namespace tare::datasets
