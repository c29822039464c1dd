// SHA-256 by OpenSSL. Internal.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <new>
#include <span>
#include <string>

namespace tare {

/// The hash of the bytes added so far.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::bad_alloc();
  }
  void add(std::span<const char> bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  /// 64 lower-case hexadecimal digits. Nothing can be added after it.
  [[nodiscard]] std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += "0123456789abcdef"[digest[i] >> 4];
      text += "0123456789abcdef"[digest[i] & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace tare
