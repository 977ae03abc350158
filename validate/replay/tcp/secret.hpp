// What lets the processes of a replay tell each other from strangers: a secret, and proofs that one knows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringsim::replay {

/// Bytes that all processes of a replay know, and nobody else. They are never sent: a process proves that it knows them
/// by a keyed hash (HMAC with SHA-256, RFC 2104, of OpenSSL) over digits that both sides draw for one connection.
/// Nothing is encrypted: whoever sees the packets can read what is sent afterwards, and whoever can alter packets can
/// change it.
class Secret {
 public:
  static constexpr std::size_t least = 16, most = 4096;  ///< bytes

  /// A secret of any length, for tests.
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  /// What a file holds, without the ends of lines at its end. Throws InputError for a file that cannot be read, that
  /// others than its owner may read, and for fewer bytes than `least` or more than `most`.
  static Secret from_file(const std::string& path);
  /// 32 bytes of the system's. Throws EnvironmentError.
  static Secret random();

  /// 64 hexadecimal digits, which depend on the secret and on each of `words`.
  std::string proof(const std::vector<std::string>& words) const;

 private:
  std::string bytes_;
};

/// 64 hexadecimal digits that nobody can guess. Throws EnvironmentError.
std::string random_digits();

/// Takes as long for proofs that differ in their first digit as for those that differ in the last.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace ringsim::replay
