// NCCL_IB_HCA, held to the examples of NCCL's user guide.
#include "topologies/nccl/nic_selection.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tests/support/complaint.hpp"

namespace nic_selection_test {

using namespace ringsim;
using nccl::read_ib_hca;
using nccl::Selected;

namespace {

bool selects(const std::string& list, const std::string& name, int port = 1) {
  return read_ib_hca(list).selects(name, port);
}
Selected selected(const std::string& list, const std::map<std::string, std::string>& attributes) {
  const Machine::Device nic{.name = "nic0", .kind = NodeKind::nic, .port = {}, .attributes = attributes};
  return nccl::selected(read_ib_hca(list), nic);
}
std::string refusal(const std::string& list) {
  return test::complaint([&] { read_ib_hca(list); });
}

}  // namespace

TEST_CASE("names of NCCL_IB_HCA are prefixes, whole names after =, exceptions after ^, and may have a port") {
  CHECK(selects("mlx5", "mlx5_7"));
  CHECK(selects("mlx5", "mlx5_7", 2));
  CHECK_FALSE(selects("mlx5", "mlx4_0"));
  CHECK(selects("mlx5_1", "mlx5_10"));
  CHECK_FALSE(selects("=mlx5_1", "mlx5_10"));
  CHECK(selects("=mlx5_0:1,mlx5_1:1", "mlx5_1", 1));
  CHECK_FALSE(selects("=mlx5_0:1,mlx5_1:1", "mlx5_1", 2));
  CHECK_FALSE(selects("=mlx5_0:1,mlx5_1:1", "mlx5_2", 1));
  CHECK_FALSE(selects("^=mlx5_3,mlx5_4", "mlx5_4"));
  CHECK(selects("^=mlx5_3,mlx5_4", "mlx5_40"));
  CHECK_FALSE(selects("^mlx5_3,mlx5_4", "mlx5_40"));
  CHECK(selects("^mlx5_3:2", "mlx5_3", 1));
  CHECK_FALSE(selects("^mlx5_3:2", "mlx5_3", 2));
  CHECK(selects(",mlx5_0,,", "mlx5_0"));
}

TEST_CASE("a NIC is selected by its name in the machine, or by those of its adapter's ports") {
  const std::map<std::string, std::string> two_ports{
      {"net0.name", "mlx5_4"}, {"net0.port", "1"}, {"net1.name", "mlx5_4"}, {"net1.port", "2"}};
  for (const char* list : {"nic0", "=nic0", "nic0:1", "mlx5", "=mlx5_4", "=mlx5_4:1,mlx5_4:2", "^nic1", "^=mlx5"})
    CHECK_MESSAGE(selected(list, two_ports) == Selected::yes, list);
  for (const char* list : {"mlx5_4:2", "=mlx5_4:1", "^mlx5_4:1"})
    CHECK_MESSAGE(selected(list, two_ports) == Selected::in_part, list);
  for (const char* list : {"nic1", "=mlx5", "mlx5_4:3", "^mlx5", "^nic0", "^=nic0"})
    CHECK_MESSAGE(selected(list, two_ports) == Selected::no, list);
  CHECK(selected("mlx5_0", {{"name", "mlx5_0"}}) == Selected::yes);
  CHECK(selected("mlx5_0", {{"busid", "mlx5_0"}}) == Selected::no);  // which is no name
}

TEST_CASE("a list of NICs without names, and a port that is no number, are refused") {
  const std::string none =
      "expected names of NICs, found none in \"^=\"\n  hint: such as \"mlx5_0,mlx5_1\"; \"^mlx5_2\" excludes, and "
      "\"=mlx5_1\" does not match mlx5_10";
  CHECK(refusal("^=") == none);
  CHECK(refusal("mlx5_0:a") ==
        "expected the number of a port after the colon, found \"mlx5_0:a\"\n  hint: such as \"mlx5_0:1\"");
  CHECK(refusal("mlx5_0:") ==
        "expected the number of a port after the colon, found \"mlx5_0:\"\n  hint: such as \"mlx5_0:1\"");
  // A prefix without a letter would be every NIC's.
  CHECK(refusal(":1") == "expected the name of a NIC before the colon, found \":1\"\n  hint: such as \"mlx5_0:1\"");
  CHECK(refusal("=^mlx5_0") == "expected ^ before =, found \"=^mlx5_0\"\n  hint: such as \"^=mlx5_3\"");
}

}  // namespace nic_selection_test
