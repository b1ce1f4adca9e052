// Symbolic indices: what the indices of a proof are made of, whatever the sizes.
//
// A variable ranges over a domain, [0, its size), whose size is a symbol.  A split cuts an axis
// into factors: its position `(f1 * |f2| + f2) * |f3| + f3` is one atom, so that no product of
// symbols is ever needed.  That positions are a bijection between the values of the factors and [0,
// product of their sizes) is all that is used of them (docs/verification.md, "positions").
//
// Ids are positions in tables of one Indices object; equal ids mean equal structure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/axis.h"

namespace sundog::verify {

using DomainId = uint32_t;
using VarId = uint32_t;
using SplitId = uint32_t;
using IndexAtomId = uint32_t;
using IndexId = uint32_t;

// A table of word sequences: equal sequences have one id.
class WordTable {
 public:
  // The id, and whether it is new.
  std::pair<uint32_t, bool> intern(const std::vector<uint32_t>& words);
  const std::vector<uint32_t>& operator[](uint32_t id) const { return words_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(words_.size()); }

 private:
  std::vector<std::vector<uint32_t>> words_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

// Variables that stand for something while structures are compared: variable, what it counts as.
using Colours = std::vector<std::pair<VarId, uint64_t>>;

// A variable, the position of a split, or the size of a domain.
struct IndexAtom {
  enum Kind : uint8_t { kVariable, kPosition, kSize };
  Kind kind = kVariable;
  uint32_t what = 0;           // variable, split or domain
  std::vector<IndexId> parts;  // of a position: one index a factor, outermost first
};

class Indices {
 public:
  using Item = std::pair<IndexAtomId, int64_t>;  // atom and coefficient, never 0
  struct Index {
    int64_t constant = 0;
    std::vector<Item> items;  // sorted
  };

  // A set of indices [0, size), size at least 1.  With an extent the size is that number, else a
  // symbol.
  DomainId domain(const std::string& name, std::optional<int64_t> extent = {});
  // The one domain of all ranges of that size; the first name that it was asked for with stays.
  DomainId range(int64_t extent, const std::string& name = {});
  VarId variable(const std::string& name, DomainId domain);
  VarId fresh(DomainId domain);
  // The k-th variable over `domain` of a closed binder of nesting `level`.
  VarId bound(uint32_t level, DomainId domain, uint32_t k);
  SplitId split(DomainId axis, std::vector<DomainId> factors);

  DomainId domain_of(VarId v) const { return variables_[v].domain; }
  DomainId axis_of(SplitId s) const { return splits_[s].axis; }
  const std::vector<DomainId>& factors_of(SplitId s) const { return splits_[s].factors; }
  const std::string& name_of(DomainId d) const { return domains_[d].name; }
  const std::string& name_of_variable(VarId v) const { return variables_[v].name; }
  std::optional<int64_t> extent_of(DomainId d) const { return domains_[d].extent; }

  IndexAtomId atom(IndexAtom::Kind kind, uint32_t what, const std::vector<IndexId>& parts = {});
  IndexId constant(int64_t value);
  IndexId of_atom(IndexAtomId atom, int64_t coefficient = 1);
  IndexId of_variable(VarId v);  // 0 where the domain has that one index
  IndexId size(DomainId d);
  IndexId add(IndexId a, IndexId b, int64_t times = 1);  // a + times * b
  // at + 1 - |d|: at most 0 where an index that is not negative lies in the domain.
  IndexId beyond(IndexId at, DomainId d) { return add(add(at, constant(1)), size(d), -1); }

  const Index& operator[](IndexId id) const { return indices_[id]; }
  const IndexAtom& atom(IndexAtomId id) const { return atoms_[id]; }
  // The one variable that an index is, if it is one.
  std::optional<VarId> as_variable(IndexId id) const;

  const std::vector<VarId>& free(IndexId id) const { return free_[id]; }  // sorted
  const std::vector<VarId>& free_of_atom(IndexAtomId id) const { return atom_free_[id]; }
  uint64_t hash(IndexId id, const Colours& colours) const;
  uint64_t hash_of_atom(IndexAtomId id, const Colours& colours) const;
  uint64_t hash_of_variable(VarId v) const { return variables_[v].hash; }
  uint64_t hash_of_domain(DomainId d) const { return domains_[d].hash; }

  // Some coefficient did not fit 64 bits: nothing that was made is to be trusted.
  bool overflow() const { return overflow_; }

  // For reading: "4*q.o + k - |n|".
  std::string text(IndexId id) const;

 private:
  struct Domain {
    std::string name;
    std::optional<int64_t> extent;
    uint64_t hash = 0;
  };
  struct Variable {
    std::string name;
    DomainId domain = 0;
    uint64_t hash = 0;
  };
  struct Split {
    DomainId axis = 0;
    std::vector<DomainId> factors;
    uint64_t hash = 0;
  };
  IndexId intern(Index index);

  std::vector<Domain> domains_;
  std::vector<Variable> variables_;
  std::vector<Split> splits_;
  std::map<std::vector<uint32_t>, VarId> bound_;
  std::map<int64_t, DomainId> ranges_;
  WordTable atom_table_, index_table_;
  std::vector<IndexAtom> atoms_;
  std::vector<Index> indices_;
  std::vector<std::vector<VarId>> free_, atom_free_;
  bool overflow_ = false;
};

// Union of sorted lists.
std::vector<VarId> merged(const std::vector<VarId>& a, const std::vector<VarId>& b);
bool intersect(const std::vector<VarId>& a, const std::vector<VarId>& b);  // both sorted
bool contains(const std::vector<VarId>& sorted, VarId v);

}  // namespace sundog::verify
