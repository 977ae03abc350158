// Reports of Nsight Systems in SQLite, as `nsys export` writes them, of jobs that are made up.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/made_profiles.hpp"

namespace ringsim::test {

/// A folder for files of a test, removed at its end.
class NsightFolder {
 public:
  NsightFolder() : path_(std::filesystem::temp_directory_path() / fmt::format("ringsim-nsight-{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  NsightFolder(const NsightFolder&) = delete;
  NsightFolder& operator=(const NsightFolder&) = delete;
  ~NsightFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Runs SQL on a database, which is made if it is not there.
inline void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  char* error = nullptr;
  const int result = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error);
  INFO(sql);
  CHECK_MESSAGE(result == SQLITE_OK, std::string(error == nullptr ? "" : error));
  sqlite3_free(error);
  sqlite3_close(database);
}

/// Tables of Nsight Systems 2026.2 that matter, with the columns of its exports; ranges have payloads.
inline constexpr const char* nsight_tables_2026 = R"(
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL,
    nameEnum INTEGER NOT NULL, value TEXT NOT NULL);
  CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER);
  CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
  CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL,
    flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER, blockX INTEGER,
    graphNodeId INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
  CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
    domainId INTEGER, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
  INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2026.2.1.210');
  INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'Hostname', 619, 'node7');
  INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1790000000000000000, '', '', 0);
)";

/// Tables of Nsight Systems 2021: ranges have text and no payloads.
inline constexpr const char* nsight_tables_2021 = R"(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT, localTime TEXT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
    streamId INT NOT NULL, correlationId INT NOT NULL, globalPid INT NOT NULL, demangledName INT NOT NULL,
    shortName INT NOT NULL, gridX INT NOT NULL, blockX INT NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL,
    globalTid INT NOT NULL, correlationId INT NOT NULL, nameId INT NOT NULL);
  CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT, globalTid INT NOT NULL,
    textId INT, domainId INT);
  INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1690000000000000000, '', '');
)";

/// NCCL's calls, with the last part of the schema's number (NVTX_SID_* of NCCL's nvtx.h) and what follows the size.
struct NsightCall {
  const char* kineto;  ///< "Collective name" of PyTorch
  const char* name;
  int schema;
};
inline constexpr NsightCall nsight_calls[] = {{"allreduce", "ncclAllReduce", 5},
                                              {"_allgather_base", "ncclAllGather", 4},
                                              {"_reduce_scatter_base", "ncclReduceScatter", 7}};
inline constexpr std::int64_t first_schema = 1 << 24;  // NVTX_PAYLOAD_ENTRY_TYPE_SCHEMA_ID_STATIC_START
inline constexpr std::uint64_t made_communicator = 0x7f8c496ae9f661;

inline std::string hex_of(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += fmt::format("{:02x}", value >> (8 * i) & 0xff);
  return text;
}

/// A payload as in binaryData: domain, schema, size and where it begins, then its bytes.
inline std::string blob_of(std::int64_t schema, const std::string& payload) {
  return "x'" + hex_of(1, 8) + hex_of(static_cast<std::uint64_t>(schema), 8) + hex_of(payload.size() / 2, 8) +
         hex_of(32, 8) + payload + "'";
}

inline std::string schema_rows() {
  std::string sql;
  const auto entry = [&](int schema, int index, int type, const char* name, int offset) {
    sql += fmt::format("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, {}, {}, NULL, {}, '{}', NULL, NULL, {});",
                       first_schema + schema, index, type, name, offset == 0 ? "NULL" : fmt::to_string(offset));
  };
  for (const int schema : {4, 5, 6, 7, 8, 9, 10, 16}) {
    entry(schema, 0, 18, "NCCL communicator ID", 0);
    entry(schema, 1, 22, "Message size [bytes]", 8);
  }
  entry(5, 2, 1 << 24 | 24, "Reduction operation", 16);
  entry(6, 2, 5, "Root", 16);
  entry(0, 0, 18, "NCCL communicator ID", 0);
  entry(0, 1, 5, "No. of ranks", 8);
  entry(0, 2, 5, "Rank", 12);
  entry(0, 3, 5, "CUDA device", 16);
  return sql;
}

enum class NsightForm { payloads_2026, texts_2021 };

/// The global number of a process, as Nsight has it: bit 48, then 24 bits of the process, then those of a thread.
inline std::uint64_t made_process(std::uint32_t rank) {
  return std::uint64_t{1} << 48 | std::uint64_t{100 + rank} << 24;
}

/// Adds to a report a process that is a rank: its kernels, their launches 8 us earlier, and ranges around those. Every
/// other call is made in a group, whose end launches it.
inline void add_nsight_rank(const std::string& path, NsightForm form, std::uint32_t rank, std::uint32_t world,
                            const std::vector<MadeKernel>& kernels, bool with_init = true) {
  const bool is_new = form == NsightForm::payloads_2026;
  if (!std::filesystem::exists(path)) {
    run_sql(path, is_new ? nsight_tables_2026 + schema_rows() : std::string(nsight_tables_2021));
    run_sql(path, R"(INSERT INTO StringIds VALUES (1, 'ncclDevKernel_Any'), (2, 'gemm'), (3, 'cuLaunchKernelEx'),
      (10, 'ncclGroupStart'), (11, 'ncclGroupEnd'), (12, 'ncclCommInitRank'), (13, 'ncclAllReduce'),
      (14, 'ncclAllGather'), (15, 'ncclReduceScatter'), (16, 'ncclCommCount'))");
  }
  const std::uint64_t process = made_process(rank), thread = process + 7;
  std::string sql = "BEGIN;";
  const auto range = [&](std::int64_t begin, std::int64_t end, const std::string& name, const std::string& blob) {
    const std::string text_id = is_new ? fmt::format("(SELECT id FROM StringIds WHERE value = '{}')", name) : "NULL";
    const std::string text = is_new ? "NULL" : "'" + name + "'";
    sql += is_new
               ? fmt::format(
                     "INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, NULL, NULL, NULL, NULL, {}, NULL, {}, 1, "
                     "NULL, NULL, {});",
                     begin, end, thread, text_id, blob)
               : fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, {}, {}, NULL, 0);", begin, end, text, thread);
  };
  if (with_init && is_new)
    range(10, 20, "ncclCommInitRank",
          blob_of(first_schema,
                  hex_of(made_communicator, 8) + hex_of(world, 4) + hex_of(rank, 4) + hex_of(rank, 4) + hex_of(0, 4)));
  if (with_init && !is_new)
    sql += fmt::format(
        "INSERT INTO NVTX_EVENTS VALUES (10, NULL, 34, 'commHash 0x{:x} commId 0x1 rank {} nranks {} pid 5', {}, NULL, "
        "0);",
        made_communicator, rank, world, thread);
  std::int64_t id = 1000;
  for (const MadeKernel& kernel : kernels) {
    const std::int64_t begin = std::llround(kernel.begin * 1000), end = begin + std::llround(kernel.duration * 1000);
    const std::int64_t launch = begin - 8000;
    const bool is_nccl = !kernel.op.empty();
    ++id;
    sql += is_new ? fmt::format(
                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 1, 0, {}, {}, {}, {}, {}, {}, "
                        "544, NULL);",
                        begin, end, rank, kernel.stream, id, process, is_nccl ? 1 : 2, is_nccl ? 1 : 2, kernel.blocks)
                  : fmt::format(
                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, {}, {}, {}, {}, {}, {}, 544);",
                        begin, end, rank, kernel.stream, id, process, is_nccl ? 1 : 2, is_nccl ? 1 : 2, kernel.blocks);
    sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {}, {}, 3{});", launch,
                       launch + 1500, thread, id, is_new ? ", 0, NULL" : "");
    for (const NsightCall& call : nsight_calls) {
      if (kernel.op != call.kineto) continue;
      const std::int64_t share = call.schema == 7 ? kernel.elements / world : kernel.elements;
      const std::string payload = hex_of(made_communicator, 8) + hex_of(static_cast<std::uint64_t>(4 * share), 8) +
                                  (call.schema == 4 ? "" : hex_of(0, 8));
      const std::string name =
          is_new ? call.name
                 : fmt::format("{}(): commHash 0x{:x}, stream 0x55, data_size {}, type_size 4, red_op 0, pid 5",
                               call.name, made_communicator, 4 * share);
      if (id % 2 == 0) {
        range(launch - 900, launch - 800, "ncclGroupStart", "NULL");
        range(launch - 700, launch - 500, name, blob_of(first_schema + call.schema, payload));
        range(launch - 100, launch + 2000, "ncclGroupEnd", "NULL");
      } else {
        range(launch - 100, launch + 2000, name, blob_of(first_schema + call.schema, payload));
      }
    }
  }
  run_sql(path, sql + "COMMIT;");
}

}  // namespace ringsim::test
