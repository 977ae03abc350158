// The processes that mpirun (or srun) started, of which this is one. Who starts, places and ends them is MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace ringsim::replay {

class MpiSession {
 public:
  /// Joins the others; nothing if MPI did not start this process. Throws EnvironmentError if it did, but ringsim
  /// was built without.
  static std::unique_ptr<MpiSession> join();
  /// Takes leave of MPI: waits for all others to do so.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }

  /// Which this one is of those on its machine, from 0. All call it.
  int number_on_machine() const;

  /// All call it once, and read the scenario by it: `read` does, and returns its hash. If one of them fails, or has
  /// read another scenario than rank 0, it throws the reason, and the others get false.
  bool agree(const std::function<std::string()>& read);
  /// True if all others also call it: within a second, or if this one is `patient` ever.
  bool all_come(bool patient);
  /// Waits until all others have called it, and leaves the core to them: MPI's own barrier keeps it busy.
  void wait_for_all() const;
  /// Messages are under way in memory that goes: MPI must not be entered again. Nothing is left but to abort(), and
  /// all_come() is false.
  void give_up() { given_up_ = true; }
  /// Ends all processes; mpirun's exit code becomes `code`.
  [[noreturn]] void abort(int code);

 private:
  MpiSession() = default;
  int rank_ = 0, size_ = 1;
  bool given_up_ = false;
};

}  // namespace ringsim::replay
