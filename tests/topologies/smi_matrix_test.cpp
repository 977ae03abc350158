// Machines against what `nvidia-smi topo -m` printed on real ones. A cell in capitals was published; one in small
// letters was not, and follows from the rest of that table.
#include "topologies/formats/smi_matrix.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/names.hpp"
#include "topologies/catalog.hpp"

namespace smi_matrix_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
using Row = std::vector<std::string>;

Row words(const std::string& text) {
  std::istringstream in(text);
  Row row;
  for (std::string word; in >> word;) row.push_back(word);
  return row;
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

SmiMatrix matrix_of(const std::string& preset) { return smi_matrix(build(cluster_of(preset)), 0); }

/// Holds the whole matrix to `expected`, a row a text, and its published cells to their number, so that none gets lost.
void check_matrix(const std::string& preset, const std::vector<std::string>& expected, int published,
                  const std::string& numa) {
  CAPTURE(preset);
  const SmiMatrix made = matrix_of(preset);
  REQUIRE(made.cells.size() == expected.size());
  int n_published = 0;
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const Row row = words(expected[r]);
    REQUIRE(row.size() == made.cells[r].size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      CAPTURE(made.names[r]);
      CAPTURE(made.names[c]);
      CHECK(made.cells[r][c] == capitals(row[c]));
      n_published += row[c] == capitals(row[c]) && row[c] != "X" ? 1 : 0;
    }
  }
  CHECK(n_published == published);
  Row cpus;
  for (const std::string& cpu : made.numa) {
    if (!cpu.empty()) cpus.push_back(cpu);
  }
  CHECK(cpus == words(numa));
}

/// One host, from devices and cables.
struct Tiny {
  TopologyBuilder builder;
  NodeId add(const std::string& name, NodeKind kind) {
    const NodeId id = builder.add_node(name, kind, 0);
    if (kind == NodeKind::gpu) builder.add_rank(id);
    return id;
  }
  void join(NodeId a, NodeId b, LinkKind kind = LinkKind::pcie, std::uint16_t joined = 1) {
    builder.add_cable(a, b, {.bandwidth = 1_GBps, .kind = kind, .joined = joined});
  }
  std::vector<Row> cells() { return smi_matrix(builder.build(), 0).cells; }
};
}  // namespace

TEST_CASE("dgx-1v is what nvidia-smi printed on one") {
  // Rows 0 to 6 published; row 7 was cut off and follows from the symmetry of rows 3 to 6, as do NICs across sockets.
  check_matrix("dgx-1v",
               {
                   "X    NV1  NV1  NV2  NV2  sys  sys  sys  PIX  PHB  sys  sys",
                   "NV1  X    NV2  NV1  sys  NV2  sys  sys  PIX  PHB  sys  sys",
                   "NV1  NV2  X    NV2  sys  sys  NV1  sys  PHB  PIX  sys  sys",
                   "NV2  NV1  NV2  X    sys  sys  sys  NV1  PHB  PIX  sys  sys",
                   "NV2  sys  sys  sys  X    NV1  NV1  NV2  sys  sys  PIX  PHB",
                   "sys  NV2  sys  sys  NV1  X    NV2  NV1  sys  sys  PIX  PHB",
                   "sys  sys  NV1  sys  NV1  NV2  X    NV2  sys  sys  PHB  PIX",
                   "sys  sys  sys  nv1  nv2  nv1  nv2  X    sys  sys  phb  pix",
                   "pix  pix  phb  phb  sys  sys  sys  sys  X    phb  sys  sys",
                   "phb  phb  pix  pix  sys  sys  sys  sys  phb  X    sys  sys",
                   "sys  sys  sys  sys  pix  pix  phb  phb  sys  sys  X    phb",
                   "sys  sys  sys  sys  phb  phb  pix  pix  sys  sys  phb  X",
               },
               7 * 6, "0 0 0 0 1 1 1 1");
}

TEST_CASE("dgx-a100 is what nvidia-smi printed on one") {
  // NVIDIA/nccl issue 1505 has the GPUs and their NICs; rapidsai/ucx-py issue 749 all NICs of all GPUs, and row mlx5_0.
  const std::string nv = "NV12 NV12 NV12 NV12 NV12 NV12 NV12 ";
  const auto gpu = [&](int g, const std::string& nics) {
    Row row = words(nv);
    row.insert(row.begin() + g, "X");
    std::string text;
    for (const std::string& word : row) text += word + " ";
    return text + nics;
  };
  const std::string first = "PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS SYS SYS";
  const std::string second = "SYS SYS PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS";
  const std::string third = "SYS SYS SYS SYS SYS SYS PXB PXB SYS SYS SYS SYS";
  const std::string fourth = "SYS SYS SYS SYS SYS SYS SYS SYS PXB PXB SYS SYS";
  check_matrix("dgx-a100",
               {
                   gpu(0, first),
                   gpu(1, first),
                   gpu(2, second),
                   gpu(3, second),
                   gpu(4, third),
                   gpu(5, third),
                   gpu(6, fourth),
                   gpu(7, fourth),
                   "PXB PXB SYS SYS SYS SYS SYS SYS  X   PXB SYS SYS SYS SYS SYS SYS SYS SYS SYS SYS",
                   "PXB PXB SYS SYS SYS SYS SYS SYS  PXB X   sys sys sys sys sys sys sys sys sys sys",
                   "sys sys pxb pxb sys sys sys sys  sys sys X   pxb sys sys sys sys sys sys sys sys",
                   "sys sys pxb pxb sys sys sys sys  sys sys pxb X   sys sys sys sys sys sys sys sys",
                   "sys sys sys sys sys sys sys sys  sys sys sys sys X   pix sys sys sys sys sys sys",
                   "sys sys sys sys sys sys sys sys  sys sys sys sys pix X   sys sys sys sys sys sys",
                   "sys sys sys sys pxb pxb sys sys  sys sys sys sys sys sys X   pxb sys sys sys sys",
                   "sys sys sys sys pxb pxb sys sys  sys sys sys sys sys sys pxb X   sys sys sys sys",
                   "sys sys sys sys sys sys pxb pxb  sys sys sys sys sys sys sys sys X   pxb sys sys",
                   "sys sys sys sys sys sys pxb pxb  sys sys sys sys sys sys sys sys pxb X   sys sys",
                   "sys sys sys sys sys sys sys sys  sys sys sys sys sys sys sys sys sys sys X   pix",
                   "sys sys sys sys sys sys sys sys  sys sys sys sys sys sys sys sys sys sys pix X",
               },
               8 * 19 + 19 + 9, "3 3 1 1 7 7 5 5");
}

TEST_CASE("hgx-h100-4nic is what nvidia-smi printed on one") {
  // NVIDIA/nccl issue 1357. The rows of the NICs mirror the columns; NIC to NIC was not given.
  check_matrix("hgx-h100-4nic",
               {
                   "X    NV18 NV18 NV18 NV18 NV18 NV18 NV18  PIX SYS SYS SYS SYS SYS",
                   "NV18 X    NV18 NV18 NV18 NV18 NV18 NV18  SYS SYS SYS SYS SYS SYS",
                   "NV18 NV18 X    NV18 NV18 NV18 NV18 NV18  SYS PIX SYS SYS SYS SYS",
                   "NV18 NV18 NV18 X    NV18 NV18 NV18 NV18  SYS SYS SYS SYS SYS SYS",
                   "NV18 NV18 NV18 NV18 X    NV18 NV18 NV18  SYS SYS PIX SYS SYS SYS",
                   "NV18 NV18 NV18 NV18 NV18 X    NV18 NV18  SYS SYS SYS SYS SYS SYS",
                   "NV18 NV18 NV18 NV18 NV18 NV18 X    NV18  SYS SYS SYS PIX SYS SYS",
                   "NV18 NV18 NV18 NV18 NV18 NV18 NV18 X     SYS SYS SYS SYS SYS SYS",
                   "PIX  SYS  SYS  SYS  SYS  SYS  SYS  SYS   X   sys sys sys sys sys",
                   "SYS  SYS  PIX  SYS  SYS  SYS  SYS  SYS   sys X   sys sys sys sys",
                   "SYS  SYS  SYS  SYS  PIX  SYS  SYS  SYS   sys sys X   sys sys sys",
                   "SYS  SYS  SYS  SYS  SYS  SYS  PIX  SYS   sys sys sys X   sys sys",
                   "SYS  SYS  SYS  SYS  SYS  SYS  SYS  SYS   sys sys sys sys X   sys",
                   "SYS  SYS  SYS  SYS  SYS  SYS  SYS  SYS   sys sys sys sys sys X",
               },
               8 * 13 + 6 * 8, "0 0 0 0 1 1 1 1");
}

TEST_CASE("polaris is what its operator says of it") {
  // argonne-lcf/user-guides 7d04a3f91d5e docs/polaris/index.md
  check_matrix("polaris",
               {
                   "X   NV4 NV4 NV4  SYS SYS",
                   "NV4 X   NV4 NV4  SYS PHB",
                   "NV4 NV4 X   NV4  SYS SYS",
                   "NV4 NV4 NV4 X    PHB SYS",
                   "SYS SYS SYS PHB  X   sys",
                   "SYS PHB SYS SYS  sys X",
               },
               4 * 5 + 2 * 4, "3 2 1 0");
}

TEST_CASE("other machines have the rows of GPUs that nvidia-smi printed on them") {
  struct Published {
    std::string preset;
    std::size_t row;
    std::string nvlink, nics;  ///< of every other GPU; of the first NICs
  };
  const std::vector<Published> rows = {
      // NVIDIA/nccl-tests issue 78
      {"dgx-2", 0, "NV6", "PIX PXB NODE NODE SYS SYS SYS SYS"},
      {"dgx-2", 1, "NV6", "PIX PXB NODE NODE SYS SYS SYS SYS"},
      {"dgx-2", 2, "NV6", "PXB PIX NODE NODE SYS SYS SYS SYS"},
      {"dgx-2", 3, "NV6", "PXB PIX NODE NODE SYS SYS SYS SYS"},
      {"dgx-2", 4, "NV6", "NODE NODE PIX PXB SYS SYS SYS SYS"},
      // NVIDIA/nccl issue 1264, without the two NICs that are SYS to all
      {"hgx-h100", 0, "NV18", "PIX SYS SYS SYS SYS SYS SYS SYS"},
      {"hgx-h100", 3, "NV18", "SYS SYS SYS PIX SYS SYS SYS SYS"},
      {"hgx-h100", 7, "NV18", "SYS SYS SYS SYS SYS SYS SYS PIX"},
      // the-dsvolk.github.io/ai-perf/ai-infra/B200-explorer.html
      {"hgx-b200", 0, "NV18", "PIX PIX NODE NODE"},
      {"hgx-b200", 1, "NV18", "PIX PIX NODE NODE"},
      {"hgx-b200", 2, "NV18", "NODE NODE PIX PIX"},
      {"hgx-b200", 3, "NV18", "NODE NODE PIX PIX"},
      {"hgx-b200", 4, "NV18", "SYS SYS SYS SYS"},
      {"hgx-b200", 7, "NV18", "SYS SYS SYS SYS"},
      // deepseek-ai/DeepEP issue 590
      {"hgx-b300", 0, "NV18", "PXB NODE NODE NODE SYS SYS SYS SYS"},
      {"hgx-b300", 1, "NV18", "NODE PXB NODE NODE SYS SYS SYS SYS"},
      {"hgx-b300", 2, "NV18", "NODE NODE PXB NODE SYS SYS SYS SYS"},
      {"hgx-b300", 3, "NV18", "NODE NODE NODE PXB SYS SYS SYS SYS"},
      {"hgx-b300", 4, "NV18", "SYS SYS SYS SYS PXB NODE NODE NODE"},
      {"hgx-b300", 5, "NV18", "SYS SYS SYS SYS NODE PXB NODE NODE"},
      // NVIDIA/nvbandwidth issue 23, one module: its GPU is SYS to its own NICs
      {"gh200", 0, "NV6", "SYS"},
  };
  for (const Published& published : rows) {
    CAPTURE(published.preset);
    CAPTURE(published.row);
    const SmiMatrix made = matrix_of(published.preset);
    const std::size_t n_gpus = node_preset(published.preset).n_gpus();
    for (std::size_t g = 0; g < n_gpus; ++g) {
      CHECK(made.cells[published.row][g] == (g == published.row ? "X" : published.nvlink));
    }
    const Row nics = words(published.nics);
    CHECK(Row(made.cells[published.row].begin() + static_cast<std::ptrdiff_t>(n_gpus),
              made.cells[published.row].begin() + static_cast<std::ptrdiff_t>(n_gpus + nics.size())) == nics);
  }
}

TEST_CASE("every word of nvidia-smi once") {
  //  g0 = NV3 = g1     g0 - s0 - s1 - root0 - cpu0 - cpu1 - root2 - g3 = xgmi = g4
  //                    g1 - s0   n0     n1 - root1 - '      n2 - cpu1, n3 - cpu1, n4 alone
  for (const bool apart : {false, true}) {
    CAPTURE(apart);
    Tiny t;
    const NodeId g0 = t.add("g0", NodeKind::gpu), g1 = t.add("g1", NodeKind::gpu), g3 = t.add("g3", NodeKind::gpu),
                 g4 = t.add("g4", NodeKind::gpu);
    const NodeId n0 = t.add("n0", NodeKind::nic), n1 = t.add("n1", NodeKind::nic), n2 = t.add("n2", NodeKind::nic),
                 n3 = t.add("n3", NodeKind::nic);
    t.add("n4", NodeKind::nic);
    const NodeId s0 = t.add("s0", NodeKind::pcie_switch), s1 = t.add("s1", NodeKind::pcie_switch);
    const NodeId root0 = t.add("root0", NodeKind::host_bridge), root1 = t.add("root1", NodeKind::host_bridge),
                 root2 = t.add("root2", NodeKind::host_bridge);
    const NodeId cpu0 = t.add("cpu0", NodeKind::cpu), cpu1 = t.add("cpu1", NodeKind::cpu);
    t.join(g0, g1, LinkKind::nvlink, 2);
    t.join(g0, g1, LinkKind::nvlink);
    t.join(g3, g4, LinkKind::xgmi);
    t.join(g0, s0), t.join(g1, s0), t.join(s0, s1), t.join(n0, s1), t.join(s1, root0), t.join(n1, root1);
    t.join(root0, cpu0), t.join(root1, cpu0), t.join(root2, cpu1), t.join(cpu0, cpu1, LinkKind::socket);
    t.join(g3, root2), t.join(g4, root2), t.join(n2, cpu1), t.join(n3, cpu1);
    t.builder.describe_host(0, {.bridges_apart = apart});
    const std::vector<Row> cells = t.cells();
    const std::string between = apart ? "SYS" : "NODE";
    CHECK(cells[0] == words("X NV3 SYS SYS  PXB " + between + " SYS SYS -"));
    CHECK(cells[2] == words("SYS SYS X XGMI  SYS SYS " + between + " " + between + " -"));
    CHECK(cells[4] == words("PXB PXB SYS SYS  X " + between + " SYS SYS -"));
    CHECK(cells[6] == words("SYS SYS " + between + " " + between + "  SYS SYS X PHB -"));
    CHECK(cells[8] == words("- - - -  - - - - X"));
  }
}

TEST_CASE("two devices below one host bridge are PHB, below one switch PIX") {
  Tiny t;
  const NodeId g0 = t.add("g0", NodeKind::gpu), g1 = t.add("g1", NodeKind::gpu), n0 = t.add("n0", NodeKind::nic);
  const NodeId root = t.add("root0", NodeKind::host_bridge), s = t.add("s0", NodeKind::pcie_switch);
  t.join(g0, s), t.join(n0, s), t.join(s, root), t.join(g1, root);
  CHECK(t.cells() == std::vector<Row>{words("X PHB PIX"), words("PHB X PHB"), words("PIX PHB X")});
}

TEST_CASE("NVLinks are counted on the row's side, over all NVSwitches that both GPUs are on") {
  Tiny t;
  const NodeId g0 = t.add("g0", NodeKind::gpu), g1 = t.add("g1", NodeKind::gpu);
  const NodeId a = t.add("a", NodeKind::nvswitch), b = t.add("b", NodeKind::nvswitch),
               c = t.add("c", NodeKind::nvswitch);
  t.join(g0, a, LinkKind::nvlink, 6), t.join(g1, a, LinkKind::nvlink, 4);
  t.join(g0, b, LinkKind::nvlink, 2), t.join(g1, b, LinkKind::nvlink, 2);
  t.join(g0, c, LinkKind::nvlink, 9);
  CHECK(t.cells() == std::vector<Row>{words("X NV8"), words("NV6 X")});
}

TEST_CASE("a matrix is of one host, named as its topology") {
  const Topology t = build(cluster_of("abci-v", 2, StarFabric{{.bandwidth = 100_Gbps, .latency = 1_ps}}));
  const SmiMatrix second = smi_matrix(t, 1);
  CHECK(second.names == Row{"node1.gpu0", "node1.gpu1", "node1.gpu2", "node1.gpu3", "node1.nic0", "node1.nic1"});
  CHECK(second.numa == Row{"0", "0", "1", "1", "", ""});
  CHECK(second.cells == smi_matrix(t, 0).cells);
}

}  // namespace smi_matrix_test
