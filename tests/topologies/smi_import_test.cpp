// The matrix of `nvidia-smi topo -m`.
#include <doctest/doctest.h>

#include <fmt/ranges.h>
#include <algorithm>

#include <random>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/message_page.hpp"
#include "topologies/catalog.hpp"
#include "topologies/formats/smi_import.hpp"
#include "topologies/formats/smi_matrix.hpp"

namespace smi_import_test {

using namespace ringsim;
using namespace ringsim::literals;
using test::device;

namespace {

std::string text(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

/// One link of each kind, with different speeds; a GPU has three pairs of NVLinks.
Machine like() {
  Machine m{.name = "model"};
  m.devices = {{"g0", NodeKind::gpu, {}, {{"sm", "70"}}},
               {"g1", NodeKind::gpu, {}, {}},
               {"n", NodeKind::nic, LinkSpec{.bandwidth = 12_GBps, .kind = LinkKind::infiniband}, {}},
               {"p", NodeKind::pcie_switch, {}, {}},
               {"c0", NodeKind::cpu, {}, {}},
               {"c1", NodeKind::cpu, {}, {}},
               {"m", NodeKind::memory, {}, {}}};
  m.cables = {{0, 1, {.bandwidth = 120_GBps, .kind = LinkKind::nvlink, .joined = 6}},
              {0, 3, {.bandwidth = 13_GBps, .kind = LinkKind::pcie}},
              {4, 5, {.bandwidth = 7_GBps, .kind = LinkKind::socket}},
              {6, 4, {.bandwidth = 50_GBps, .kind = LinkKind::memory, .duplex = Duplex::half}}};
  m.host.peer_cost = 1.2;
  return m;
}

std::string complaint(const std::string& matrix, const Machine& model = like()) {
  return ringsim::test::complaint([&] { import_nvidia_smi(matrix, "m.txt", model); });
}

}  // namespace

TEST_CASE("switches, host bridges and CPUs are those that the matrix tells apart") {
  const Machine m = import_nvidia_smi(test::read_file(test::sample("matrix.txt")), "matrix.txt", like());
  // GPU0-2 share a switch (PIX); NIC0 is one more away (PXB); NIC2 is on another host bridge of that CPU (NODE).
  // GPU3 and NIC1 hang on the other CPU's host bridge (PHB), SYS from the rest. NV2: two NVLinks of 20 GB/s.
  CHECK(text(test::cables_of(m)) ==
        text({"mem0 - cpu0: memory 50 GB/s", "bridge0 - cpu0: pcie 50 GB/s", "pcie0 - bridge0: pcie 13 GB/s",
              "pcie1 - pcie0: pcie 13 GB/s", "gpu0 - pcie1: pcie 13 GB/s", "gpu1 - pcie1: pcie 13 GB/s",
              "gpu2 - pcie1: pcie 13 GB/s", "pcie2 - pcie0: pcie 13 GB/s", "nic0 - pcie2: pcie 13 GB/s",
              "bridge1 - cpu0: pcie 50 GB/s", "nic2 - bridge1: pcie 13 GB/s", "mem1 - cpu1: memory 50 GB/s",
              "gpu3 - cpu1: pcie 13 GB/s", "nic1 - cpu1: pcie 13 GB/s", "cpu0 - cpu1: socket 7 GB/s",
              "gpu0 - gpu1: nvlink 40 GB/s x2", "gpu2 - gpu3: nvlink 20 GB/s"}));
  CHECK(text(m.warnings) == "");
  CHECK(device(m, "nic2").attributes.at("name") == "mlx5_bond_0");
  CHECK(device(m, "nic2").port->bandwidth == 12_GBps);
  CHECK(device(m, "gpu3").attributes.at("sm") == "70");
  CHECK(m.host.peer_cost == 1.2);
}

TEST_CASE("old drivers: spaces, SOC, NICs by their own names") {
  const Machine m = import_nvidia_smi(test::read_file(test::sample("old_matrix.txt")), "old_matrix.txt", like());
  CHECK(text(test::cables_of(m)) ==
        text({"mem0 - cpu0: memory 50 GB/s", "gpu0 - cpu0: pcie 13 GB/s", "gpu1 - cpu0: pcie 13 GB/s",
              "mem1 - cpu1: memory 50 GB/s", "gpu2 - cpu1: pcie 13 GB/s", "nic0 - cpu1: pcie 13 GB/s",
              "cpu0 - cpu1: socket 7 GB/s"}));
  CHECK(device(m, "nic0").attributes.at("name") == "mlx5_0");
}

TEST_CASE("equal NVLinks between all GPUs are direct as long as a GPU has so many, else through an NVSwitch") {
  // A GPU of the model has 6 NVLinks: NV3 to two others is 6, NV4 would be 8.
  const auto three = [](const std::string& cell) {
    return "GPU0 GPU1 GPU2\nGPU0 X " + cell + " " + cell + "\nGPU1 " + cell + " X " + cell + "\nGPU2 " + cell + " " +
           cell + " X\n";
  };
  const auto nvlinks = [&](const std::string& matrix) {
    std::vector<std::string> lines;
    for (const std::string& line : test::cables_of(import_nvidia_smi(matrix, "m.txt", like()))) {
      if (line.find("nvlink") != std::string::npos) lines.push_back(line);
    }
    return text(lines);
  };
  CHECK(nvlinks(three("NV3")) ==
        text({"gpu0 - gpu1: nvlink 60 GB/s x3", "gpu0 - gpu2: nvlink 60 GB/s x3", "gpu1 - gpu2: nvlink 60 GB/s x3"}));
  CHECK(nvlinks(three("NV4")) == text({"gpu0 - nvswitch0: nvlink 80 GB/s x4", "gpu1 - nvswitch0: nvlink 80 GB/s x4",
                                       "gpu2 - nvswitch0: nvlink 80 GB/s x4"}));
  // NV6 is what a GPU of the model has, NV7 is not.
  const auto warnings = [&](const char* cell) { return import_nvidia_smi(three(cell), "m.txt", like()).warnings; };
  const std::string warning =
      "m.txt: the matrix shows 7 NVLinks per GPU, but a GPU of " + like().name + " has 6: check that --like names a ";
  const auto is_said = [&](const std::vector<std::string>& all) {
    return std::any_of(all.begin(), all.end(), [&](const std::string& each) { return each.starts_with(warning); });
  };
  CHECK_FALSE(is_said(warnings("NV6")));
  CHECK(is_said(warnings("NV7")));
}

namespace {

/// The lines of a text, each put into `{}` of the pattern.
std::string each_line(const std::string& text, const std::string& before, const std::string& after = "") {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += before + text.substr(at, end - at) + after + "\n";
    at = end + 1;
  }
  return out;
}

std::string as_markdown(const std::string& text) {
  std::string out;
  for (const char c : each_line(text, "| ", " |")) {
    if (c == '\t') out += " | ";
    if (c != '\t') out += c;
  }
  return out;
}

}  // namespace

TEST_CASE("a matrix in a job's log, a quotation or a table is read as it is alone") {
  const std::string rows =
      "GPU0\t X \tNV1\tPIX\tSYS\t0-15\t0\t\tN/A\n"
      "GPU1\tNV1\t X \tSYS\tPIX\t16-31\t1\t\tN/A\n"
      "NIC0\tPIX\tSYS\t X \tSYS\t\t\t\n"
      "NIC1\tSYS\tPIX\tSYS\t X \t\t\t\n";
  const std::string legend =
      "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
      "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_0\n";
  const std::string header = "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  const std::string plain = header + rows + legend;
  const auto read = [&](const std::string& matrix) {
    const Machine m = import_nvidia_smi(matrix, "m.txt", like());
    CHECK(text(m.warnings) == "");
    CHECK(device(m, "nic1").attributes.at("name") == "mlx5_bond_0");
    return text(test::cables_of(m));
  };
  const std::string cables = read(plain);
  const std::string noise = "node01:1234 NCCL INFO Bootstrap: Using eth0\n# Rank 0 on GPU0 of node01, GPU1 is next\n";
  for (const std::string& matrix :
       {each_line(plain, "[1,0]<stdout>:"), each_line(plain.substr(1), "[1,0]<stdout>:"),
        each_line(plain, "[1,0]<stdout>: "), each_line(plain, "> "), each_line(plain, ">> "),
        each_line(plain, "2026-11-02T10:00:01.123 node01 "), each_line(plain, "0: "), each_line(plain, "    "),
        noise + each_line(plain, "[1,0]<stdout>:") + noise, "```\n" + plain + "```\n",
        noise + "```\n" + plain + "```\n", as_markdown(plain),
        as_markdown(header) + "|---|---|:-:|--:|---|---|---|---|\n" + as_markdown(rows + legend),
        noise + each_line(header, "[1,0]<stdout>:") + noise + each_line(rows + legend, "[1,0]<stdout>:")}) {
    CAPTURE(matrix);
    CHECK(read(matrix) == cables);
  }
  // Of two nodes that print at once, nothing says which is meant.
  CHECK(complaint(each_line(plain, "[1,0]<stdout>:") + each_line(plain, "[1,1]<stdout>:")) ==
        "m.txt:17: expected one matrix, found the row of GPU0 again\n  hint: keep only the lines of one node in the "
        "text");
  // A row that is not there is missed, however much else the log has.
  CHECK(complaint(each_line(header + rows.substr(0, rows.find("NIC1\t")), "> ") + noise) ==
        "m.txt:6: expected a row for NIC1, found the end of the file");
}

TEST_CASE("a CPU of the matrix has its share of the memory of a socket of the model") {
  // Two sockets of two NUMA domains, 50 GB/s each.
  Machine model = like();
  model.host.domains = 2;
  for (int i = 0; i < 2; ++i) model.devices.push_back({"c" + std::to_string(2 + i), NodeKind::cpu, {}, {}});
  const auto memory = [&](const std::string& rows, const Machine& from) {
    const std::string header = "GPU0 GPU1 CPU Affinity NUMA Affinity\n";
    const Machine m = import_nvidia_smi(header + rows, "m.txt", from);
    CHECK(m.host.domains >= 1);
    for (const std::string& warning : m.warnings)
      if (warning.find("memory of") != std::string::npos) return test::cables_of(m)[0] + "; " + warning;
    return test::cables_of(m)[0];
  };
  CHECK(memory("GPU0 X PIX 0-7 0\nGPU1 PIX X 0-7 0\n", model) ==
        "mem0 - cpu0: memory 100 GB/s; m.txt: model has 2 NUMA domains per socket, but the matrix has 1; each CPU is "
        "assumed to have the memory of 2 of the domains of model, 100 GB/s");
  // Two CPUs, numbers 0 and 1: two sockets of one domain.
  CHECK(memory("GPU0 X SYS 0-7 0\nGPU1 SYS X 8-15 1\n", model).starts_with("mem0 - cpu0: memory 100 GB/s;"));
  // Numbers 1 and 3: the two between have no GPU, and are there.
  CHECK(memory("GPU0 X SYS 0-7 1\nGPU1 SYS X 8-15 3\n", model) == "mem0 - cpu0: memory 50 GB/s");
  CHECK(memory("GPU0 X PIX 0-7 2-3\nGPU1 PIX X 0-7 2-3\n", model) == "mem0 - cpu0: memory 50 GB/s");
  // Of four domains per socket 0 to 2 are there: two sockets, of two domains each.
  model.host.domains = 4;
  for (int i = 0; i < 4; ++i) model.devices.push_back({"c" + std::to_string(4 + i), NodeKind::cpu, {}, {}});
  CHECK(memory("GPU0 X SYS 0-7 0\nGPU1 SYS X 8-15 2\n", model)
            .ends_with("model has 4 NUMA domains per socket, but the matrix has 2; each CPU is assumed to have the "
                       "memory of 2 of the domains of model, 100 GB/s"));
  // A model of a domain per socket: numbers beyond its own (POWER9 counts 0, 8) say nothing.
  CHECK(memory("GPU0 X SYS 0-7 0\nGPU1 SYS X 8-15 8\n", like()) == "mem0 - cpu0: memory 50 GB/s");
  CHECK(memory("GPU0 X PIX N/A N/A\nGPU1 PIX X N/A N/A\n", like()) == "mem0 - cpu0: memory 50 GB/s");
  // The preset that lent a quarter of its socket: four domains of 38.4 GB/s.
  CHECK(memory("GPU0 X NODE 0-31 0\nGPU1 NODE X 0-31 0\n", node_preset("azure-ncv4"))
            .starts_with("mem0 - cpu0: memory 153.6 GB/s;"));
  CHECK(node_preset("dgx-a100").host.domains == 4);
}

TEST_CASE("NICs of a model without any have the rate that the user says; else one warning counts them") {
  const std::string matrix = "GPU0 NIC0 NIC1\nGPU0 X PIX PIX\nNIC0 PIX X PIX\nNIC1 PIX PIX X\n";
  Machine bare = like();
  bare.devices[2].port.reset();
  CHECK(text(import_nvidia_smi(matrix, "m.txt", bare).warnings) ==
        "m.txt: model has no NIC that could supply the rate of the 2 NICs in the matrix; to cable them, set it with "
        "--nic RATE (\"nic\" in a scenario's topology)");
  const LinkSpec said{.bandwidth = 200_Gbps};
  for (const Machine& model : {bare, like()}) {
    const Machine m = import_nvidia_smi(matrix, "m.txt", model, said);
    CHECK(text(m.warnings) == "");
    CHECK(device(m, "nic1").port->bandwidth == 200_Gbps);
  }
  CHECK(device(import_nvidia_smi(matrix, "m.txt", like(), said), "nic0").port->kind == LinkKind::infiniband);
  CHECK(text(import_nvidia_smi("GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n", "m.txt", like(), said).warnings) ==
        "m.txt: the NIC rate that you set is not used, because the matrix has no NICs");
}

TEST_CASE("GPUs whose place on PCIe NVLink hides share the CPU of their affinity, and a warning says so") {
  const Machine m = import_nvidia_smi(
      "GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV2 NV2 0-7\nGPU1 NV2 X NV2 8-15\nGPU2 NV2 NV2 X 0-7\n", "m.txt", like());
  const std::string cables = text(test::cables_of(m));
  // cpu0 has two host bridges, one per GPU; cpu1 with its only GPU is one itself.
  CHECK(cables.find("gpu0 - bridge0") != std::string::npos);
  CHECK(cables.find("gpu2 - bridge1") != std::string::npos);
  CHECK(cables.find("bridge1 - cpu0") != std::string::npos);
  CHECK(cables.find("gpu1 - cpu1") != std::string::npos);
  CHECK(text(m.warnings) ==
        "m.txt: the matrix does not show which devices share a PCIe switch with GPU0, GPU1, GPU2; each is assumed to "
        "be attached to the CPU with the same affinity");
}

TEST_CASE("the matrix of every machine, printed and read, prints the same again") {
  int n = 0;
  for (const PresetFile& preset : preset_files()) {
    CAPTURE(preset.name);
    const Machine machine = node_preset(std::string(preset.name));
    const auto matrix_of = [](const Machine& m) {
      return smi_matrix(build(Cluster{{{std::make_shared<Machine>(m), 1}}, std::nullopt}), 0);
    };
    const SmiMatrix matrix = matrix_of(machine);
    std::string printed;
    for (const std::string& name : matrix.names) {
      const bool gpu = name.find("gpu") != std::string::npos;
      printed += (gpu ? "GPU" : "NIC") + name.substr(name.find_first_of("0123456789", name.find('.'))) + '\t';
    }
    std::vector<std::string> names;
    for (std::size_t at = 0; at < printed.size(); at = printed.find('\t', at) + 1) {
      names.push_back(printed.substr(at, printed.find('\t', at) - at));
    }
    // One CPU whose bridges count as SYS (GH200) reads as several CPUs.
    const auto is_cpu = [](const Machine::Device& device) { return device.kind == NodeKind::cpu; };
    const bool one_cpu = std::count_if(machine.devices.begin(), machine.devices.end(), is_cpu) == 1;
    bool readable = true;  // nvidia-smi knows neither xGMI nor devices that nothing joins
    std::string rows;
    for (std::size_t row = 0; row < names.size(); ++row) {
      rows += names[row];
      for (const std::string& cell : matrix.cells[row]) {
        rows += '\t' + cell;
        readable = readable && cell != "XGMI" && cell != "-" && !(one_cpu && cell == "SYS");
      }
      rows += '\t' + (matrix.numa[row].empty() ? "" : "cpu" + matrix.numa[row]) + '\n';
    }
    if (!readable || names.size() > 128) continue;
    const SmiMatrix again = matrix_of(import_nvidia_smi(printed + "CPU Affinity\n" + rows, "m.txt", machine));
    CHECK(again.cells == matrix.cells);
    ++n;
  }
  CHECK(n >= 20);
}

TEST_CASE("a text that is no matrix, or a matrix that contradicts itself, is refused with row and column") {
  const std::string good = "GPU0 GPU1 NIC0\nGPU0 X PIX SYS\nGPU1 PIX X SYS\nNIC0 SYS SYS X\n";
  CHECK(complaint(good) == "");
  Machine bare = like();
  bare.cables.erase(bare.cables.begin());
  CHECK(complaint("GPU0 GPU1\nGPU0 X NV1\nGPU1 NV1 X\n", bare) ==
        "m.txt: the matrix has NVLinks (NV#), but model has no nvlink link that could supply the speed\n  hint: name a "
        "machine that has one; `ringsim list nodes` lists all");
  const std::vector<std::string> rows{"hello\n",
                                      "GPU0 GPU0\n",
                                      "GPU0 GPU1\nGPU0 X PIX\n",
                                      "GPU0 GPU1\nGPU0 X PIX\nGPU2 PIX X\n",
                                      "GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX\n",
                                      "GPU0\nGPU0 X\nGPU1 X\n",
                                      "GPU0 GPU1\nGPU0 X PIY\nGPU1 PIX X\n",
                                      "GPU0 GPU1\nGPU0 PIX X\nGPU1 PIX X\n",
                                      "GPU0 NIC0\nGPU0 X NV1\nNIC0 NV1 X\n",
                                      "GPU0 GPU1\nGPU0 X PIX\nGPU1 PXB X\n",
                                      "GPU0 GPU1 NIC0\nGPU0 X PIX SYS\nGPU1 PIX X PIX\nNIC0 SYS PIX X\n"};
  ringsim::test::MessagePage page("nvidia_smi");
  for (const std::string& text : rows) page.add(text, complaint(text));
  page.check();
}

TEST_CASE("a matrix that its own CPU affinities contradict is taken with a warning") {
  // GPUs that share nothing have a warning of their own; it comes after this one.
  const auto first = [](const std::string& rows) {
    const Machine m = import_nvidia_smi("GPU0 GPU1 CPU Affinity NUMA Affinity\n" + rows, "m.txt", like());
    return m.warnings.empty() || m.warnings[0].find("affinities") == std::string::npos ? "" : m.warnings[0];
  };
  const std::string taken = "; the matrix is used, although a virtual machine may show either incorrectly";
  CHECK(first("GPU0 X PIX 0-7 0\nGPU1 PIX X 0-7 0\n") == "");
  CHECK(first("GPU0 X SYS 0-7 0\nGPU1 SYS X 8-15 1\n") == "");
  CHECK(first("GPU0 X SYS N/A N/A\nGPU1 SYS X N/A N/A\n") == "");
  CHECK(first("GPU0 X PIX 0-7 0\nGPU1 PIX X 8-15 1\n") ==
        "m.txt: row GPU1, column GPU0 (PIX), but the CPU affinities are different" + taken);
  CHECK(first("GPU0 X SYS 0-7 0\nGPU1 SYS X 0-7 0\n") ==
        "m.txt: row GPU1, column GPU0 (SYS), but the CPU affinities are the same" + taken);
}

TEST_CASE("a damaged matrix is read or refused, never a crash") {
  int read = 0, refused = 0;
  for (const auto& path : test::files_in(test::sample(""), ".txt")) {
    const std::string matrix = test::read_file(path);
    for (unsigned seed = 0; seed < 1000; ++seed) {
      CAPTURE(seed);
      std::mt19937 random(seed);
      try {
        const Machine m = import_nvidia_smi(test::damaged(matrix, random), "damaged.txt", like());
        build(Cluster{{{std::make_shared<Machine>(m), 1}}, std::nullopt});
        ++read;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  CHECK(read > 100);
  CHECK(refused > 100);
}

}  // namespace smi_import_test
