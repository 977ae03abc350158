// What the writers of training programs share: the variables of a model, and the tasks of one GPU.
#pragma once

#include <string>
#include <vector>

#include "algorithms/training/ddp.hpp"
#include "sim/program/program.hpp"

namespace ringsim {

/// Writes the streams of one role after another. Stream 0 computes.
class StepWriter {
 protected:
  using Task = Program::Task;
  using As = Program::Touch::As;

  /// `shards`: into how many near-equal parts the bytes of the model are cut, in the order of registration. A tensor
  /// that lies in two of them counts as two variables. `step` must outlive the writer, and so must `work`, which is
  /// told of each task.
  StepWriter(const TrainingStep& step, WatchedWork* work, int shards = 1);

  /// A tensor, or the part of it that lies in one shard.
  struct Piece {
    int gradient = 0, weights = 0;  ///< variables
    int shard = 0;
  };
  const std::vector<Piece>& pieces(std::size_t layer) const { return pieces_[layer]; }
  /// visit(piece) for all of the model, in the order of registration.
  template <class Visit>
  void each_piece(Visit visit) const {
    for (const std::vector<Piece>& of_layer : pieces_)
      for (const Piece& piece : of_layer) visit(piece);
  }
  int add_variable(std::string name);

  Stream add_stream(Program::StreamKind kind);
  /// The host's stream, if it takes time to launch.
  void add_host();
  std::vector<Task>& stream(Stream number) { return role_.streams[static_cast<std::size_t>(number)]; }
  int n_tasks(Stream number) { return static_cast<int>(stream(number).size()); }
  const LayerCost& layer(std::size_t l) const { return step_.layers[l]; }
  std::size_t n_layers() const { return step_.layers.size(); }

  /// Another step of the same iteration begins: the host launches it when the tasks of stream 0 so far are done.
  void next_step() { step_begin_ = n_tasks(0); }
  /// A task of stream 0; the host launches it first.
  Task& kernel(std::string name, Picoseconds time);
  Task& write_forward(std::size_t l);
  Task& write_backward(std::size_t l);
  Task& write_forward_pass();   ///< of all layers; the first task
  Task& write_backward_pass();  ///< the same
  Task& write_update();
  Task& write_call(Stream number, int call);

  /// All tasks of a stream, in the iteration before.
  static Program::After step_before(Stream number) { return {number, -1, 1}; }
  /// The role as written so far; the next one begins empty.
  Program::Role take_role();

  const TrainingStep& step_;
  WatchedWork* work_;
  Program out_;
  std::vector<Stream> ends_{0};  ///< the streams that the host waits for before it launches the next step

 private:
  Program::Role role_;
  Stream host_ = -1;
  int step_begin_ = 0;                      // the task of stream 0 that begins the step
  std::vector<std::vector<Piece>> pieces_;  // [layer]
};

}  // namespace ringsim
