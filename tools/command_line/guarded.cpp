#include "tools/command_line/guarded.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <new>
#include <system_error>

#include "sim/base/error.hpp"
#include "tools/exit.hpp"
#include "tools/output/color.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

Ending failed(Exit code, const char* kind, const std::string& what) {
  const std::string head = styled(Style::red, fmt::format("ringsim: {}:", kind), has_color(STDERR_FILENO));
  return {code, fmt::format("{} {}\n", head, safe_to_print(what))};
}

}  // namespace

Ending ending_of(const std::function<int()>& command) {
  try {
    return {command(), ""};
  } catch (const UsageError& error) {
    return failed(bad_command_line, "error", error.what());
  } catch (const InputError& error) {
    return failed(bad_input, "error", error.what());
  } catch (const EnvironmentError& error) {
    return failed(lacking, "error", error.what());
  } catch (const Interrupted& how_far) {
    return failed(interrupted, "interrupted", how_far.what());
  } catch (const InvariantError& error) {
    return failed(broken, "the simulation is wrong, not your input",
                  std::string(error.what()) + "\n  hint: please report it and attach the scenario");
  } catch (const std::bad_alloc&) {
    return failed(lacking, "error", "out of memory: this machine is too small for the scenario");
  } catch (const std::system_error& error) {
    return failed(lacking, "error", error.what());
  } catch (const std::exception& error) {
    return failed(broken, "internal error, not caused by your input",
                  std::string(error.what()) + "\n  hint: please report it and attach the scenario");
  }
}

}  // namespace ringsim::tools
