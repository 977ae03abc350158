// Operations and element types by the names that PyTorch and NCCL write.
#pragma once

#include <optional>
#include <string_view>

#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// An operation's name, taken apart.
struct NamedOp {
  CallOp op = CallOp::unknown;
  bool sizes_differ = false;  ///< all_to_allv
  bool coalesced = false;     ///< several calls in one kernel
};

/// "allreduce", "nccl:_all_gather_base", "AllReduce", "nccl:send 0->1", "reduce_scatter_tensor_coalesced".
/// Source of the names: PyTorch's ProcessGroupNCCL.cpp, NCCL's ncclFuncToString.
NamedOp named_op(std::string_view name);

/// Bytes of an element: "Float", "float", "c10::BFloat16", "long int", "Float8_e4m3fn". Nothing for unknown names.
std::optional<int> element_bytes(std::string_view dtype);

}  // namespace ringsim::profiles
