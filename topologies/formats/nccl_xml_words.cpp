// The elements and attributes of NCCL's topology XML: what may lie where, and what each attribute decides.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/text/spelling.hpp"
#include "topologies/formats/nccl_xml_reader.hpp"

namespace ringsim::nccl {

namespace {

struct Word {
  std::string name;
  std::vector<std::string> within;      ///< elements in which NCCL reads it (src/graph/xml.cc, ncclTopoXmlLoad*)
  std::vector<std::string> attributes;  ///< that NCCL or RCCL writes
};

/// Read here, and so used as NCCL uses them: numaid, host_hash, arch, vendor, familyid, modelid of a <cpu>; busid,
/// class, link_speed, link_width of a <pci>, and its four ids, which tell Broadcom's switches (nccl_xml_shape.cpp);
/// dev, sm, gdr, gcn, mlopart of a <gpu>; target, count, tclass, bw of links; name, dev, speed, latency, port, guid,
/// gdr, net of a <net>. A rank, rail or plane that would matter is a warning. The others change no time:
///  - affinity: NCCL binds its threads by it, whose work has its costs elsewhere.
///  - maxconn: the most channels of a NIC, up to NCCL 2.17 (src/graph/search.cc); the search modeled here gives each
///    NIC one. Later releases read it and use it nowhere.
///  - coll, gin, rma: roles of the NIC for CollNet, which needs NCCL_COLLNET_ENABLE and is not modeled, and for
///    transfers that kernels and users start themselves. The nets of collectives are those whose "net" is not 0.
///  - arch of a <gpu>: AMD's number for what gcn says. keep: a mark that NCCL takes off before it dumps.
const std::vector<Word>& words() {
  static const std::vector<Word> all{
      {"system", {}, {"version", "name"}},
      {"cpu", {"system"}, {"numaid", "host_hash", "affinity", "arch", "vendor", "familyid", "modelid"}},
      {"pci",
       {"cpu", "pci"},
       {"busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"}},
      {"nic", {"cpu", "pci"}, {}},
      {"gpu", {"pci"}, {"dev", "sm", "rank", "gdr", "mlopart", "gcn", "arch"}},
      {"net",
       {"nic"},
       {"name", "dev", "speed", "latency", "port", "guid", "maxconn", "gdr", "coll", "rail", "plane", "net", "gin",
        "rma"}},
      {"nvlink", {"gpu"}, {"target", "count", "tclass"}},
      {"xgmi", {"gpu"}, {"target", "count", "tclass"}},
      {"c2c", {"gpu"}, {"bw", "count"}},
      {"pcilink", {"pci"}, {"target"}}};
  return all;
}

const Word* word_of(const std::string& name) {
  const auto found = std::find_if(words().begin(), words().end(), [&](const Word& word) { return word.name == name; });
  return found == words().end() ? nullptr : &*found;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string tags(const std::vector<std::string>& names) { return fmt::format("<{}>", fmt::join(names, "> or <")); }

class WordCheck {
 public:
  explicit WordCheck(XmlImport& import) : import_(import) {}

  void check(const XmlElement& element, const Word& word) {
    for (const auto& [attribute, value] : element.attributes) check_attribute(element, word, attribute);
    for (const XmlElement& child : element.children) {
      const Word* known = word_of(child.name);
      if (known == nullptr) {
        check_unknown(child, word.name);
      } else if (!contains(known->within, word.name)) {
        fail_misplaced(child, *known, word.name);
      } else {
        check(child, *known);
      }
    }
  }

 private:
  void check_attribute(const XmlElement& element, const Word& word, const std::string& attribute) {
    if (attribute == "keep" || contains(word.attributes, attribute)) return;
    if (!said_.emplace(word.name, attribute).second) return;
    const std::string hint = did_you_mean(attribute, word.attributes);
    import_.warn(element, fmt::format("attribute \"{}\" of <{}> is unknown and ignored{}", attribute, word.name,
                                      hint.empty() ? "" : ": " + hint));
  }

  /// NCCL passes over elements that it does not know. One that was meant to be known, or has such in it, would leave
  /// another machine.
  void check_unknown(const XmlElement& element, const std::string& within) const {
    std::vector<std::string> fitting;
    for (const Word& word : words())
      if (contains(word.within, within)) fitting.push_back(word.name);
    const std::string hint = did_you_mean(element.name, fitting);
    const XmlElement* inside = known_in(element);
    if (inside == nullptr && hint.empty())
      return import_.warn(element, fmt::format("<{}> within <{}> is unknown and ignored", element.name, within));
    import_.fail(element,
                 fmt::format("expected {} in a <{}>, found <{}>{}", fitting.empty() ? "nothing" : tags(fitting), within,
                             element.name, inside == nullptr ? "" : fmt::format(" with a <{}> in it", inside->name)),
                 hint.empty() ? "NCCL skips unknown elements and everything inside them" : hint);
  }

  static const XmlElement* known_in(const XmlElement& element) {
    for (const XmlElement& child : element.children) {
      if (word_of(child.name) != nullptr) return &child;
      if (const XmlElement* deeper = known_in(child)) return deeper;
    }
    return nullptr;
  }

  [[noreturn]] void fail_misplaced(const XmlElement& element, const Word& word, const std::string& within) const {
    import_.fail(
        element,
        word.within.empty()
            ? fmt::format("expected one <{}>, the root of the file, found another in a <{}>", word.name, within)
            : fmt::format("expected <{}> in a {}, found it in a <{}>", word.name, tags(word.within), within),
        word.name == "gpu" ? "NCCL does not read it there; the enclosing <pci> has the bus id and the link"
                           : "NCCL does not read it there; move it");
  }

  XmlImport& import_;
  std::set<std::pair<std::string, std::string>> said_;  // once for each attribute of an element
};

}  // namespace

bool is_known_attribute(const std::string& element, const std::string& attribute) {
  const Word* word = word_of(element);
  return word != nullptr && contains(word->attributes, attribute);
}

void check_words(XmlImport& import, const XmlElement& root) { WordCheck(import).check(root, *word_of("system")); }

}  // namespace ringsim::nccl
