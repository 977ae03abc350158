#include "validate/replay/tcp/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "sim/base/error.hpp"

namespace ringsim::replay {

namespace {

using Sha256 = std::array<unsigned char, 32>;

std::string digits_of(const Sha256& bytes) {
  std::string digits;
  for (const unsigned char byte : bytes) digits += fmt::format("{:02x}", byte);
  return digits;
}

Sha256 random_bytes() {
  Sha256 bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw EnvironmentError("the system did not provide random numbers for the secret of a replay");
  return bytes;
}

/// At most one byte more than a secret may have.
std::string read_secret(const std::string& path) {
  const auto cannot = [&]() -> InputError {
    if (errno == EINTR) throw Interrupted("stopped while it waited for the secret in " + path);  // of a pipe
    return InputError(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file == -1) throw cannot();
  struct stat state {};
  std::string bytes(Secret::most + 1, '\0');
  std::size_t n = 0;
  ssize_t got = fstat(file, &state);
  while (got >= 0 && n < bytes.size()) {
    got = read(file, bytes.data() + n, bytes.size() - n);
    if (got <= 0) break;
    n += static_cast<std::size_t>(got);
  }
  const int why = errno;
  close(file);
  errno = why;
  if (got < 0) throw cannot();
  if ((state.st_mode & (S_IRGRP | S_IROTH)) != 0)
    throw InputError(
        path, fmt::format("expected a secret that only its owner can read, found mode {:o}", state.st_mode & 0777U),
        fmt::format("chmod 600 {}", path));
  bytes.resize(n);
  return bytes;
}

}  // namespace

Secret Secret::from_file(const std::string& path) {
  std::string bytes = read_secret(path);
  const bool too_long = bytes.size() > most;
  bytes.erase(bytes.find_last_not_of("\r\n") + 1);
  if (too_long || bytes.size() < least)
    throw InputError(path,
                     fmt::format("expected a secret of {} to {} bytes, found {}", least, most,
                                 too_long ? "more" : fmt::format("{}", bytes.size())),
                     fmt::format("openssl rand -hex 32 > {}", path));
  if (bytes.find_first_not_of(" \t\r\n\v\f") == std::string::npos)
    throw InputError(path, "expected a secret, found only whitespace", fmt::format("openssl rand -hex 32 > {}", path));
  return Secret(std::move(bytes));
}

Secret Secret::random() { return Secret(digits_of(random_bytes())); }

std::string Secret::proof(const std::vector<std::string>& words) const {
  std::string text;  // each with its length: no two lists of words give one text
  for (const std::string& word : words) text += fmt::format("{}:{}\n", word.size(), word);
  Sha256 hash{};
  unsigned int length = 0;
  const auto* in = reinterpret_cast<const unsigned char*>(text.data());
  ensure(HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()), in, text.size(), hash.data(), &length) !=
                 nullptr &&
             length == hash.size(),
         "a keyed hash can be made of every text");
  return digits_of(hash);
}

std::string random_digits() { return digits_of(random_bytes()); }

bool same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace ringsim::replay
