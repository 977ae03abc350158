// The formats of results.
#pragma once

namespace ringsim::tools {

enum class Format { table, json, jsonl, csv, nccl_tests };

}  // namespace ringsim::tools
