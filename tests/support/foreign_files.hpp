// The beginnings of other programs' files, made up.
#pragma once

#include <string>
#include <vector>

namespace ringsim::test {

struct ForeignFile {
  std::string name;    ///< as such a file is called
  std::string format;  ///< how the format is named
  std::string text;
};

/// A text after its length, as protobuf has it. Requires fewer than 128 bytes.
inline std::string counted(const std::string& text) { return static_cast<char>(text.size()) + text; }

inline std::vector<ForeignFile> foreign_files() {
  using namespace std::string_literals;
  const std::string node = "\x08\x01\x12"s + counted("send") + "\x18\x05";                   // id, name, type
  const std::string attribute = "\x0a"s + counted("schema") + "\xea\x01"s + counted("1.0");  // name, string_val
  return {
      {"trace.pt.trace.json", "a PyTorch profiler (Kineto) trace",
       R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [{"ph": "X")"},
      {"old-trace.json", "a PyTorch profiler (Kineto) trace",
       R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0}, "traceEvents": []})"},
      {"trace.json", "a trace in Chrome's trace event format",
       R"({"displayTimeUnit": "ns", "traceEvents": [{"name": "a", "ph": "X", "ts": 0}]})"},
      {"trace-list.json", "a trace in Chrome's trace event format",
       R"([{"name": "a", "ph": "X", "ts": 0, "dur": 1, "pid": 0, "tid": 0}])"},
      {"chakra.0.et", "a Chakra execution trace (.et)",
       counted("\x12"s + counted(attribute)) + counted(node) + counted(node)},
      {"allreduce.0.et", "a Chakra execution trace (.et)", counted("\x0a"s + counted("0.0.4")) + counted(node)},
      {"no-version.0.et", "a Chakra execution trace (.et)", counted("") + counted(node)},
      {"host.json", "a Chakra execution trace (JSON)",
       R"({"schema": "1.0.2-chakra.0.0.4", "pid": 7, "time": "2024-03-21", "nodes": [{"id": 2)"},
      {"report.nsys-rep", "an Nsight Systems report", "NVIDIA Tegra Profiler Report\n2024.4.1\n\x01\x02"s},
      {"report.qdrep", "an Nsight Systems report", "NVIDIA Tegra Profiler Report\n2020.1"},
      {"report.sqlite", "an Nsight Systems report exported to SQLite",
       "SQLite format 3\0\x10\0CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT)"s},
      {"results.sqlite", "an SQLite database", "SQLite format 3\0\x10\0CREATE TABLE results (time_us REAL)"s},
      {"inspector.log", "output of NCCL Inspector",
       R"({"header": {"id": "0x1", "rank": 0, "n_ranks": 8, "nnodes": 1}, "metadata": {"inspector_output_format_version": "v4.0"}, "coll_perf": {"coll": "AllReduce"}})"
       "\n"},
      {"inspector-header.log", "output of NCCL Inspector",
       R"({"header": {"id": "0x1"}, "metadata": {"inspector_output_format_version": "v4.3"}})"
       "\n"},
      {"nccl_trace_rank_0", "a Python pickle", "\x80\x02}q\0(X\x07\0\0\0version"s},
      {"pickle-4.pkl", "a Python pickle", "\x80\x04\x95\x10\0\0\0\0\0\0\0}"s},
      {"flight_recorder.json", "a PyTorch Flight Recorder dump",
       R"({"version": "2.4", "pg_config": {"0": {"name": "0"}}, "entries": []})"},
      {"network.yml", "an ASTRA-sim network (network.yml)",
       "# a ring\ntopology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ] # GB/s\nlatency: [ 500.0 ]\n"},
      {"system.json", "an ASTRA-sim system (system.json)",
       R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "all-reduce-implementation": ["ring"]})"},
      {"network.json", "an ASTRA-sim network", R"({"topology-name": "Hierarchical", "topologies-per-dim": ["Ring"]})"},
      {"logical.json", "an ASTRA-sim network", R"({"logical-dims": ["8", "8"]})"},
      {"logs.zip", "a zip archive", "PK\x03\x04\x14\0"s},
      {"log.zst", "a file compressed with zstd", "\x28\xB5\x2F\xFD\x04"},
      {"log.xz", "a file compressed with xz",
       "\xFD"
       "7zXZ\0\0"s},
      {"log.bz2", "a file compressed with bzip2", "BZh91AY&SY"},
      {"logs.tar", "a tar archive", "log.txt" + std::string(250, '\0') + "ustar\0"s},
      {"rows.parquet", "a Parquet table", "PAR1\x15\x04"},
      {"rows.h5", "an HDF5 file", "\x89HDF\r\n\x1a\n\0"s},
  };
}

}  // namespace ringsim::test
