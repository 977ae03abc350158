// The models of a machine's GPUs, and how fast such GPUs can be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topologies/machines/machine.hpp"

namespace ringsim {

/// The machine, as "dgx-a100 with A100", if it has no GPU of the models that a text names, such as "NVIDIA B200" or
/// "NVIDIA H100 SXM data sheet". Empty if it has one, or if they cannot be compared: a text without a GPU of a preset.
/// A machine that is no preset is compared by its architecture. A100 PCIe and SXM are one model.
std::string machine_without(const Machine& machine, std::string_view text);

/// The most floating-point operations per second that NVIDIA's data sheets state for matrix products of GPUs with the
/// compute capability of the machine's newest GPU, at any precision, without sparsity; nothing if that is not listed.
std::optional<double> most_flops_of(const Machine& machine);

/// That of matrices in fp32: the rate of TF32 if the GPU has it.
std::optional<double> most_fp32_flops_of(const Machine& machine);

}  // namespace ringsim
