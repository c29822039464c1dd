// The one place that knows how each library reports that memory is out.
#include <array>
#include <new>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/memory/oom.h"

namespace tare::memory {
namespace {

constexpr size_t kMessageBytes = 2000;

struct KnownText {
  std::string_view text;
  OutOfMemorySource source;
  bool certain = true;
};

constexpr std::array kTexts = {
    KnownText{"DefaultCPUAllocator: can't allocate memory", OutOfMemorySource::libtorch},
    KnownText{"DefaultCPUAllocator: not enough memory", OutOfMemorySource::libtorch},
    KnownText{"CUDA out of memory", OutOfMemorySource::libtorch},
    KnownText{"CUDA error: out of memory", OutOfMemorySource::cuda},
    KnownText{"CUDA driver error: out of memory", OutOfMemorySource::cuda},
    KnownText{"CUDA_ERROR_OUT_OF_MEMORY", OutOfMemorySource::cuda},
    KnownText{"cudaErrorMemoryAllocation", OutOfMemorySource::cuda},
    KnownText{"STATUS_ALLOC_FAILED", OutOfMemorySource::cuda},  // cuBLAS, cuDNN, cuSOLVER, cuSPARSE
    KnownText{"CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", OutOfMemorySource::cuda},
    KnownText{"CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", OutOfMemorySource::cuda},
    KnownText{"CUFFT_ALLOC_FAILED", OutOfMemorySource::cuda},
    KnownText{"Cuda failure 'out of memory'", OutOfMemorySource::cuda},  // NCCL
    KnownText{"Cuda failure 2 'out of memory'", OutOfMemorySource::cuda},
    KnownText{"cuDNN error: CUDNN_STATUS_NOT_SUPPORTED", OutOfMemorySource::cuda, false},
    // LibTorch, when no algorithm of cuDNN got memory for its workspace (cudnn/Conv_v8.cpp).
    KnownText{"unable to find an engine to execute this computation", OutOfMemorySource::cuda,
              false},
};

constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation

/// Returns the bytes that follow a word of the text: "400 bytes", "2.00 GiB."
std::optional<int64_t> bytes_behind(std::string_view text, std::string_view before) {
  const auto at = text.find(before);
  if (at == text.npos) return {};
  text.remove_prefix(at + before.size());
  const auto number_end = text.find(' ');
  if (number_end == text.npos) return {};
  const auto unit_end = text.find_first_of(" .,;)\n", number_end + 1);
  const auto unit =
      text.substr(number_end + 1, unit_end == text.npos ? text.npos : unit_end - number_end - 1);
  std::string amount(text.substr(0, number_end));
  if (unit != "bytes") amount += std::string(unit);
  return parse_bytes(amount);
}

/// Parses "tried to allocate 400 bytes", "Tried to allocate 2.00 GiB."
std::optional<int64_t> asked_bytes(std::string_view text) {
  return bytes_behind(text, "ried to allocate ");
}

/// Words a refusal of CUDA's caching allocator as Tare's own are worded; empty: the text is
/// another. It is of the form "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB
/// of which 1.00 GiB is free. [...] 3.00 GiB allowed; ...", the last where there is a budget.
std::string words_for_card(std::string_view text) {
  constexpr std::string_view kCard = " GPU ", kTotal = " has a total capacity of ";
  const auto card = text.find(kCard), end = text.find(kTotal);
  const auto asked = asked_bytes(text), total = bytes_behind(text, kTotal),
             free = bytes_behind(text, " of which ");
  if (card == text.npos || end == text.npos || end < card || !asked || !total || !free) return {};
  const auto number = text.substr(card + kCard.size(), end - card - kCard.size());
  const std::string refused = "[memory.allocate] out of memory on cuda:" + std::string(number) +
                              ": asked for " + format_bytes(*asked);
  constexpr std::string_view kAllowed = " allowed;";
  if (const auto allowed = text.find(kAllowed); allowed != text.npos) {
    const auto start = text.rfind(". ", allowed);  // the end of the sentence before
    const auto budget = start == text.npos ? std::nullopt : bytes_behind(text.substr(start), ". ");
    if (budget)
      return refused + ", which is above what is left of a budget of " + format_bytes(*budget) +
             "; raise the budget, or take a smaller batch or model";
  }
  return refused + ", and " + format_bytes(*free) + " of " + format_bytes(*total) +
         " is free; take a smaller batch or model, or another card: `tare top` shows which "
         "processes hold the memory of each";
}

/// Explains a refusal of the card itself, in which no allocator of LibTorch had a part.
constexpr const char* kOfCard =
    "; the card has no memory left for what a process takes beside its tensors (its context, "
    "libraries): end other processes on the card, which `tare top` shows, or take another card";

/// Returns what of an error's text says what was refused. The lines behind the first one of an
/// error of CUDA are about debugging kernels, and the end of that of its caching allocator is
/// advice about the allocator's settings.
std::string_view without_advice(std::string_view text, bool of_card) {
  if (of_card) return text.substr(0, text.find('\n'));
  text = text.substr(0, text.find(" Of the allocated memory"));
  return text.substr(0, text.find_last_not_of("; ") + 1);
}

OutOfMemoryInfo describe(OutOfMemorySource source, std::string_view text) {
  OutOfMemoryInfo info;
  info.source = source;
  info.asked_bytes = asked_bytes(text);
  info.message = printable(without_advice(text, source == OutOfMemorySource::cuda), kMessageBytes);
  if (source == OutOfMemorySource::libtorch && text.find("DefaultCPUAllocator") != text.npos)
    info.device = c10::kCPU;
  if (std::string words = words_for_card(text); !words.empty())
    info.detail = std::exchange(info.message, std::move(words));
  return info;
}

std::optional<OutOfMemoryInfo> by_text(std::string_view text) {
  for (const auto& known : kTexts) {
    if (text.find(known.text) == text.npos) continue;
    auto info = describe(known.source, text);
    info.certain = known.certain;
    return info;
  }
  return {};
}

std::exception_ptr cause_of(const std::exception& error) {
  const auto* nested = dynamic_cast<const std::nested_exception*>(&error);
  return nested ? nested->nested_ptr() : nullptr;
}

std::optional<OutOfMemoryInfo> by_text_or_cause(std::string_view text,
                                                const std::exception& error) {
  if (auto info = by_text(text)) return info;
  return classify(cause_of(error));
}

}  // namespace

std::optional<OutOfMemoryInfo> classify(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const OutOfMemory& e) {
    return OutOfMemoryInfo{OutOfMemorySource::tare, e.device(), e.asked_bytes(),
                           printable(e.what_without_backtrace(), kMessageBytes)};
  } catch (const c10::OutOfMemoryError& e) {
    return describe(OutOfMemorySource::libtorch, e.what_without_backtrace());
  } catch (const c10::AcceleratorError& e) {
    if (e.get_error_code() == kMemoryAllocation) {
      auto info = describe(OutOfMemorySource::cuda, e.what_without_backtrace());
      info.message += kOfCard;
      return info;
    }
    return classify(cause_of(e));
  } catch (const c10::Error& e) {
    return by_text_or_cause(e.what_without_backtrace(), e);
  } catch (const std::bad_alloc& e) {
    return describe(OutOfMemorySource::standard_library, e.what());
  } catch (const std::exception& e) {
    return by_text_or_cause(e.what(), e);
  } catch (...) {
    return {};
  }
}

}  // namespace tare::memory
