// Removes what terminals, web pages and jobs' logs add to a program's output.
#pragma once

#include <string>
#include <string_view>

namespace ringsim {

/// Removes terminal codes: colors, cursor movements and titles (ECMA-48), also if a copy has lost the escape character
/// ("[32m") or spells it out ("^[[32m", "\x1b[32m"). Replaces the spaces of web pages (U+00A0, U+2007, U+2009, U+202F)
/// and the minus sign U+2212 by their ASCII characters, and removes zero-width marks (U+200B, U+FEFF). Line breaks
/// stay.
std::string plain_text(std::string_view text);

/// Removes the prefixes that a job's log adds to a line: ranks ("[1,0]<stdout>:" of mpirun, "0: " of srun -l), host
/// names
/// ("node1: ", "worker-1  | "), time stamps, Kubernetes' "stdout F ", and "> " of quotes. Returns a line without a
/// prefix unchanged, with its leading blanks.
std::string_view without_log_prefix(std::string_view line);

/// Removes blanks, tabs and carriage returns at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace ringsim
