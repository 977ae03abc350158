// Measured steps of large models with their plans: how many GPUs trained which model with which tensor, pipeline, data,
// context and expert parallel ranks, and how long a step took.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/training/transformer_card.hpp"

namespace ringsim {

/// A model card, and what the scenario of a plan cannot state.
struct PlanModel {
  std::string name;
  TransformerCard card;
  bool flash = false;   ///< attention in one kernel that keeps no scores
  std::string special;  ///< what ringsim has no words for: "latent attention (mla)"; empty: nothing
};

/// A row of a table, as printed.
struct PlanFigure {
  std::string file;   ///< the name of its table, without folders
  std::string where;  ///< file:line
  std::string id, source, system, model, gpu, checked;
  std::int64_t gpus = 0, node = 0, sequence = 0, micro_batch = 0, global_batch = 0;  ///< node 0: not stated
  std::int64_t tensor = 1, pipeline = 1, chunks = 1, context = 1, expert = 1;
  std::optional<std::int64_t> data;
  std::string shard;      ///< in the words of scenarios: "none", "optimizer", "optimizer_gradients", "full"
  std::string recompute;  ///< likewise; the row's own word if ringsim has none for it
  std::string precision;
  bool sequence_parallel = false;
  std::vector<std::string> overlap;  ///< in the row's words: "dp", "tp"
  double step = 0;                   ///< seconds
  std::optional<double> memory_gib;
  std::string machine;          ///< a preset, if more is known of the nodes than their GPU
  std::int64_t link_gbits = 0;  ///< of a NIC's cable, if the table says it; 0: the machine's
  std::optional<PlanModel> card;
  std::string flaw;  ///< why the row cannot be read; empty: it can
};

/// The rows that were read, and notes on what was not.
struct PlanFigures {
  std::vector<PlanFigure> rows;
  std::vector<std::string> tables;  ///< the files that they are from
  std::vector<std::string> notes;   ///< "open.csv: columns that are not read: release"
};

/// Reads a table of plans; nothing if its columns are those of no such table. Two forms: one row a plan with the
/// columns model, gpu, gpus, seq, mbs, gbs, tp, pp and step_s or tokens_per_s_per_gpu (others as in PlanFigure), and
/// that of vTrain's measurements ("# GPUs", "tensor parallelism", "iteration time (ms)"). Columns are in any order;
/// lines that begin with # are comments. An empty cell means not stated, and so does "?". A cell that means nothing
/// makes its row flawed. Throws InputError for a line with another number of cells than the header, and for a header
/// with most of the columns but not all.
std::optional<PlanFigures> parse_plan_rows(std::string_view text, const std::string& name,
                                           const std::vector<PlanModel>& models);

/// Reads models.json: {"gpt-22b": {"layers": 48, "hidden": 6144, "heads": 64, "ffn": 24576, "vocab": 51200}}, with
/// kv_heads, head_dim, gated, tied, flash, biases, experts, topk, expert_ffn, shared_ffn, dense_layers and mla. A GPT
/// (not gated, no flash, no experts) has biases and its head is the embedding, unless it says otherwise. Throws
/// InputError at file: /pointer.
std::vector<PlanModel> parse_plan_models(std::string_view text, const std::string& name);

/// All tables of plans of a folder, in the order of their names, with the models of its models.json; or one table, with
/// those next to it. Tables of other kinds become notes. Throws InputError.
PlanFigures plan_figures_in(const std::string& path);

}  // namespace ringsim
