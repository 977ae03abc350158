// The names of machines as people write them, and the answers to unknown names.
#include "topologies/machines/preset_names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/complaint.hpp"
#include "topologies/machines/machine.hpp"

namespace preset_names_test {

using namespace ringsim;

namespace {

using Texts = std::vector<std::string>;

std::string compact(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The GPU that a name says, of those that are sold, whether a preset has it or not; empty: none. Looked for in another
/// way than the answers look for it: in the letters and digits alone, the longest first.
std::string gpu_said(const std::string& name) {
  static const Texts sold{"rtxpro6000", "rtx2080ti", "rtx4090", "rtx3090", "mi300x", "mi300a", "mi250x",
                          "mi325x",     "gb200",     "gb300",   "gh200",   "l40s",   "a40",    "v100",
                          "p100",       "a100",      "h100",    "h200",    "h800",   "a800",   "b100",
                          "b200",       "b300",      "k80",     "h20",     "l40"};
  const std::string letters = compact(name);
  for (const std::string& gpu : sold)
    for (std::size_t at = letters.find(gpu); at != std::string::npos; at = letters.find(gpu, at + 1)) {
      const std::size_t end = at + gpu.size();
      const bool goes_on = end < letters.size() && std::isdigit(static_cast<unsigned char>(gpu.back())) != 0 &&
                           std::isdigit(static_cast<unsigned char>(letters[end])) != 0;
      if (!goes_on) return gpu;
    }
  return "";
}

/// The presets that an answer names.
std::vector<const PresetNames*> named_in(const std::string& answer) {
  std::vector<const PresetNames*> found;
  std::string word;
  for (const char c : answer + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-') {
      word += c;
      continue;
    }
    for (const PresetNames& preset : preset_names())
      if (preset.name == word) found.push_back(&preset);
    word.clear();
  }
  return found;
}

Texts names_of(const PresetNames& preset) {
  Texts names{preset.name};
  names.insert(names.end(), preset.also.begin(), preset.also.end());
  names.insert(names.end(), preset.taken_for.begin(), preset.taken_for.end());
  return names;
}

}  // namespace

TEST_CASE("every name of a machine is that of one preset alone, and none is another preset's") {
  std::map<std::string, std::string> owner;
  std::size_t n_also = 0;
  for (const PresetNames& preset : preset_names()) {
    Texts names = names_of(preset);
    for (const PresetNames::Near& near : preset.near) names.push_back(near.name);
    for (const std::string& name : names) {
      CAPTURE(name);
      CAPTURE(preset.name);
      const auto entered = owner.emplace(plain_machine_name(name), preset.name);
      CAPTURE(entered.first->second);
      CHECK(entered.second);
    }
    n_also += preset.also.size();
    CHECK(gpu_said(preset.gpu) == compact(preset.gpu));  // a GPU that is sold, so that the other cases see it
  }
  CHECK(n_also >= 40);
}

TEST_CASE("a machine is found by the names of clouds, vendors and NVIDIA, in any case, with _ and spaces for -") {
  struct Row {
    const char* name;
    const char* preset;
  };
  for (const Row& row : std::vector<Row>{{"dgx-h100", "hgx-h100"},
                                         {"DGX H100", "hgx-h100"},
                                         {"DGX_H200", "hgx-h200"},
                                         {"dgx-b200", "hgx-b200"},
                                         {"dgx-a100-80gb", "dgx-a100"},
                                         {"DGX-A100", "dgx-a100"},
                                         {"h100", "hgx-h100"},
                                         {"H100-SXM", "hgx-h100"},
                                         {"h200", "hgx-h200"},
                                         {"a100", "dgx-a100"},
                                         {"b200", "hgx-b200"},
                                         {"v100", "dgx-1v"},
                                         {"dgx-1", "dgx-1v"},
                                         {"p5.48xlarge", "aws-p5"},
                                         {"ml.p5.48xlarge", "aws-p5"},
                                         {"p5en.48xlarge", "aws-p5en"},
                                         {"p4d.24xlarge", "aws-p4d"},
                                         {"p4de.24xlarge", "aws-p4de"},
                                         {"p3dn.24xlarge", "aws-p3dn"},
                                         {"p6-b200.48xlarge", "aws-p6-b200"},
                                         {"p2.8xlarge", "k80x8"},
                                         {"a3-megagpu-8g", "gcp-a3-mega"},
                                         {"a3-highgpu-8g", "gcp-a3-high"},
                                         {"dgx-b300", "hgx-b300"},
                                         {"Standard_ND96isr_H200_v5", "hgx-h200"},
                                         {"a3-ultragpu-8g", "gcp-a3-ultra"},
                                         {"nd-h100-v5", "azure-ndv5"},
                                         {"nd-a100-v4", "azure-ndv4"},
                                         {"Standard_ND96isr_H100_v5", "azure-ndv5"},
                                         {"Standard_ND96asr_v4", "azure-ndv4"},
                                         {"Standard_ND96amsr_A100_v4", "azure-ndv4"},
                                         {"Standard_ND40rs_v2", "azure-ndv2"},
                                         {"Standard_NC96ads_A100_v4", "azure-ncv4"},
                                         {"BM.GPU.H100.8", "oci-h100"},
                                         {"bm.gpu4.8", "oci-a100"},
                                         {"BM.GPU.A100-v2.8", "oci-a100"},
                                         {"gb200", "gb200-nvl72"},
                                         {"DGX GB200", "gb200-nvl72"},
                                         {"dgx-gb300", "gb300-nvl72"},
                                         {"MI300X", "mi300x"},
                                         {"rtx-4090", "rtx4090-pcie"},
                                         {"L40S", "l40s-pcie"},
                                         {"quad-gh200", "gh200"},
                                         {"alcf-polaris", "polaris"},
                                         {"dgx-2", "dgx-2"}}) {
    CAPTURE(row.name);
    const PresetNames* preset = preset_named(row.name);
    REQUIRE(preset != nullptr);
    CHECK(preset->name == row.preset);
    CHECK(node_preset(row.name).name == row.preset);
  }
  for (const char* none : {"", "-", "h100x", "nvl72", "a4-highgpu-8g", "p5e.48xlarge"}) {
    CAPTURE(none);
    CHECK(preset_named(none) == nullptr);
  }
}

// Data sheets and instance pages, as in the files.
TEST_CASE("a name that says the memory of the GPUs gives them that memory") {
  struct Row {
    const char* name;
    int gib;
  };
  for (const Row& row : {Row{"dgx-a100", 80},
                         {"dgx-a100-80gb", 80},
                         {"DGX-A100-40GB", 40},
                         {"dgx-a100-320gb", 40},
                         {"a100-40gb", 40},
                         {"nd-a100-v4", 40},
                         {"Standard_ND96amsr_A100_v4", 80},
                         {"BM.GPU4.8", 40},
                         {"BM.GPU.A100-v2.8", 80}}) {
    CAPTURE(row.name);
    for (const Machine::Device& device : node_preset(row.name).devices)
      if (device.kind == NodeKind::gpu) CHECK(device.memory == Bytes{std::int64_t{row.gib} << 30});
  }
  for (const PresetNames& preset : preset_names())
    for (const PresetNames::Memory& memory : preset.memories) {
      // The first one stands for the others in scenarios, so it must leave nothing open.
      CHECK(preset_note(memory.names.at(0)) == "");
      for (const std::string& name : memory.names) {
        CAPTURE(name);
        CHECK(preset_named(name) == &preset);
        CHECK(preset.choice_of(name) == plain_machine_name(memory.names.front()));
      }
    }
}

TEST_CASE("a name that leaves something open is answered with what is taken, and with what else it may be") {
  CHECK(preset_note("dgx-h100") == "");
  CHECK(preset_note("hgx-h100") == "");
  CHECK(preset_note("V100") ==
        "assumed to be dgx-1v, NVIDIA DGX-1: 8 V100 in a hybrid cube mesh of NVLink2, 2 Xeon sockets, 4 EDR NICs; "
        "other machines with V100: abci-v, aws-p3dn, azure-ndv2, dgx-2, lambda-hyperplane-8-v100");
  for (const PresetNames& preset : preset_names())
    for (const std::string& open : preset.taken_for) {
      CAPTURE(open);
      CHECK(preset_note(open).starts_with("assumed to be " + preset.name + ", "));
    }
}

TEST_CASE("an unknown name is answered by its parts: the GPU first, then the maker, never by another GPU") {
  const std::string nowhere = "`ringsim list nodes` lists all; `ringsim topology import` reads your own machine";
  struct Row {
    std::string name;
    std::string hint;
  };
  for (const Row& row : std::vector<Row>{
           {"supermicro-h100",
            "did you mean one of these? aws-p5, azure-ndv5, gcp-a3-high, gcp-a3-mega, hgx-h100, hgx-h100-4nic, "
            "oci-h100"},
           {"azure-h100", "did you mean \"azure-ndv5\"?"},
           {"aws-h100", "did you mean \"aws-p5\"?"},
           {"google_h200", "did you mean \"gcp-a3-ultra\"?"},
           {"nvl72", "did you mean one of these? gb200-nvl72, gb300-nvl72"},
           {"h100x8",
            "did you mean one of these? aws-p5, azure-ndv5, gcp-a3-high, gcp-a3-mega, hgx-h100, hgx-h100-4nic, "
            "oci-h100"},
           {"hgxh100", "did you mean \"hgx-h100\"?"},
           {"hgx-h100-4nics", "did you mean \"hgx-h100-4nic\"?"},
           {"dgx",
            "did you mean one of these? dgx-1p, dgx-1v, dgx-2, dgx-a100, gb200-nvl72, gb300-nvl72, hgx-b200, hgx-b300 "
            "and 2 more"},
           {"polari", "did you mean \"polaris\"?"},
           {"dgx-v1", "did you mean \"dgx-1v\"?"},
           {"dgx-1vv", "did you mean \"dgx-1v\"?"},
           {"polaris2", nowhere},
           {"p4dn.24xlarge", "did you mean \"aws-p4d\"?"},  // the p3dn has V100
           {"dgx-gh200", "did you mean one of these? gh200, gh200-one"},
           {"dgx-b100", nowhere},  // no preset has it; by its letters it is near to three with others
           {"dgx-h10", nowhere},
           {"t4", nowhere},
           {"g5.48xlarge", nowhere},
           {"mi300a", nowhere},
           {"a4-highgpu-8g",
            "a4-highgpu-8g is not a preset; the nearest is hgx-b200, with these differences: its eight NICs of 400 "
            "Gb/s are RoCE instead of InfiniBand"},
           {"P5E.48XLARGE",
            "p5e.48xlarge is not a preset; the nearest is aws-p5en, with these differences: 32 EFA NICs, four per GPU "
            "as in aws-p5, instead of 16"},
           {std::string(65, 'h'), nowhere}}) {
    CAPTURE(row.name);
    CHECK(preset_hint(row.name) == row.hint);
    CHECK(test::complaint([&] { node_preset(row.name); }) ==
          "expected the name of a node preset, found \"" + row.name + "\"\n  hint: " + row.hint);
  }
}

TEST_CASE("the maker of one preset and the GPU of another lead to presets with that GPU alone") {
  std::size_t answered = 0;
  for (const PresetNames& a : preset_names())
    for (const PresetNames& b : preset_names()) {
      const std::string word = a.name.substr(0, a.name.find('-')) + '-' + compact(b.gpu);
      if (preset_named(word) != nullptr) continue;
      // A first word that is a GPU itself, as of mi300x, makes two of them.
      if (!gpu_said(a.name.substr(0, a.name.find('-'))).empty()) continue;
      CAPTURE(word);
      const std::string hint = preset_hint(word);
      CAPTURE(hint);
      const auto named = named_in(hint);
      CHECK(!named.empty());
      for (const PresetNames* preset : named) CHECK(preset->gpu == b.gpu);
      ++answered;
    }
  CHECK(answered > 500);
}

namespace {

/// The name with one mistake of 40: at one of eight places a character left out, doubled, replaced, swapped, or a digit
/// changed.
std::string misspelt(std::string name, std::size_t mistake) {
  const std::size_t at = mistake % 8 * name.size() / 8;
  switch (mistake / 8) {
    case 0:
      return name.erase(at, 1);
    case 1:
      return name.insert(at, 1, name[at]);
    case 2:
      name[at] = name[at] == 'a' ? 'h' : 'a';
      return name;
    case 3:
      if (at + 1 < name.size()) std::swap(name[at], name[at + 1]);
      return name;
    default:
      if (std::isdigit(static_cast<unsigned char>(name[at])) != 0)
        name[at] = name[at] == '9' ? '0' : static_cast<char>(name[at] + 1);
      return name;
  }
}

}  // namespace

TEST_CASE("40 misspellings of each name with a GPU in it never lead to a machine with another GPU") {
  std::size_t answered = 0, tried = 0;
  for (const PresetNames& preset : preset_names())
    for (const std::string& name : names_of(preset)) {
      if (gpu_said(name) != compact(preset.gpu)) continue;
      for (std::size_t mistake = 0; mistake < 40; ++mistake) {
        const std::string word = misspelt(name, mistake);
        if (preset_named(word) != nullptr) continue;  // another name, or the same
        CAPTURE(word);
        const std::string hint = preset_hint(word);
        CAPTURE(hint);
        const std::string said = gpu_said(word).empty() ? compact(preset.gpu) : gpu_said(word);
        const auto named = named_in(hint);
        for (const PresetNames* other : named) CHECK(compact(other->gpu) == said);
        ++tried;
        if (!named.empty()) ++answered;
      }
    }
  CHECK(tried > 1500);
  CHECK(answered > tried / 2);  // else it would be easy
}

TEST_CASE("a preset says its GPU, and a machine's file the form of its other names") {
  const auto refused = [](const std::string& keys) {
    return test::complaint([&] {
      parse_machine(R"({"name": "x", "summary": "y", )" + keys +
                        R"(, "devices": [{"name": "gpu0", "kind": "gpu"}], "links": []})",
                    "x.json");
    });
  };
  CHECK(refused(R"("gpu": "H100", "also": ["a"], "taken_for": ["b"],
                   "near": [{"name": "c", "differs": "d", "source": "e"}])") == "");
  CHECK(refused(R"("gpu": 100)") == "x.json: /gpu: expected a text");
  CHECK(refused(R"("also": "a")") == "x.json: /also: expected a list");
  CHECK(refused(R"("taken_for": [""])") == "x.json: /taken_for/0: expected a text");
  CHECK(refused(R"("near": [{"name": "c", "differs": "d"}])") == "x.json: /near/0: expected a key \"source\"");
  CHECK(refused(R"("near": [{"name": "c", "differ": "d", "source": "e"}])") ==
        "x.json: /near/0/differ: unknown key \"differ\"\n  hint: did you mean \"differs\"?");
}

}  // namespace preset_names_test
