// Hash-consed index expressions.  Structural hashes do not depend on the order in which things were
// made, except through names: they order what has no other order, and two that are equal by chance
// cost a proof, never its truth.
#include "verify/canonical_index.h"

#include <algorithm>

#include "core/check.h"
#include "core/field.h"

namespace sundog::verify {
namespace {

uint64_t hash_text(uint64_t seed, const std::string& text) {
  for (const char c : text) seed = mix(seed, static_cast<unsigned char>(c));
  return seed;
}

const uint64_t* colour_of(const Colours& colours, VarId v) {
  for (const auto& [variable, colour] : colours) {
    if (variable == v) return &colour;
  }
  return nullptr;
}

}  // namespace

std::vector<VarId> merged(const std::vector<VarId>& a, const std::vector<VarId>& b) {
  std::vector<VarId> result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

bool intersect(const std::vector<VarId>& a, const std::vector<VarId>& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == b[j]) return true;
    a[i] < b[j] ? ++i : ++j;
  }
  return false;
}

bool contains(const std::vector<VarId>& sorted, VarId v) {
  return std::binary_search(sorted.begin(), sorted.end(), v);
}

std::pair<uint32_t, bool> WordTable::intern(const std::vector<uint32_t>& words) {
  uint64_t h = words.size();
  for (const uint32_t word : words) h = mix(h, word);
  const auto [begin, end] = by_hash_.equal_range(h);
  for (auto it = begin; it != end; ++it) {
    if (words_[it->second] == words) return {it->second, false};
  }
  words_.push_back(words);
  by_hash_.emplace(h, size() - 1);
  return {size() - 1, true};
}

DomainId Indices::domain(const std::string& name, std::optional<int64_t> extent) {
  domains_.push_back({name, extent, hash_text(mix(1, domains_.size()), name)});
  return static_cast<DomainId>(domains_.size() - 1);
}

DomainId Indices::range(int64_t extent, const std::string& name) {
  const auto [at, is_new] = ranges_.try_emplace(extent, 0);
  if (is_new) at->second = domain(name.empty() ? std::to_string(extent) : name, extent);
  return at->second;
}

VarId Indices::variable(const std::string& name, DomainId domain) {
  const uint64_t h = mix(hash_text(2, name), variables_.size());
  variables_.push_back({name, domain, h});
  return static_cast<VarId>(variables_.size() - 1);
}

VarId Indices::fresh(DomainId domain) {
  return variable("'" + std::to_string(variables_.size()), domain);
}

VarId Indices::bound(uint32_t level, DomainId domain, uint32_t k) {
  const auto [at, is_new] = bound_.try_emplace({level, domain, k}, 0);
  if (is_new) {
    at->second = variable(
        domains_[domain].name + "_" + std::to_string(level) + "." + std::to_string(k), domain);
    variables_.back().hash = mix(mix(mix(3, level), domains_[domain].hash), k);
  }
  return at->second;
}

SplitId Indices::split(DomainId axis, std::vector<DomainId> factors) {
  uint64_t h = mix(4, domains_[axis].hash);
  for (const DomainId f : factors) h = mix(h, domains_[f].hash);
  splits_.push_back({axis, std::move(factors), h});
  return static_cast<SplitId>(splits_.size() - 1);
}

IndexAtomId Indices::atom(IndexAtom::Kind kind, uint32_t what, const std::vector<IndexId>& parts) {
  std::vector<uint32_t> words{static_cast<uint32_t>(kind), what};
  words.insert(words.end(), parts.begin(), parts.end());
  const auto [id, is_new] = atom_table_.intern(words);
  if (is_new) {
    atoms_.push_back({kind, what, parts});
    std::vector<VarId> free;
    if (kind == IndexAtom::kVariable) free = {what};
    for (const IndexId part : parts) free = merged(free, free_[part]);
    atom_free_.push_back(std::move(free));
  }
  return id;
}

IndexId Indices::intern(Index index) {
  std::vector<uint32_t> words;
  const auto put = [&](int64_t value) {
    words.push_back(static_cast<uint32_t>(static_cast<uint64_t>(value)));
    words.push_back(static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32));
  };
  put(index.constant);
  for (const auto& [atom, coefficient] : index.items) {
    words.push_back(atom);
    put(coefficient);
  }
  const auto [id, is_new] = index_table_.intern(words);
  if (is_new) {
    std::vector<VarId> free;
    for (const auto& [atom, coefficient] : index.items) free = merged(free, atom_free_[atom]);
    free_.push_back(std::move(free));
    indices_.push_back(std::move(index));
  }
  return id;
}

IndexId Indices::constant(int64_t value) { return intern({value, {}}); }

IndexId Indices::of_atom(IndexAtomId atom, int64_t coefficient) {
  if (coefficient == 0) return constant(0);
  return intern({0, {{atom, coefficient}}});
}

IndexId Indices::of_variable(VarId v) {
  if (domains_[variables_[v].domain].extent == 1) return constant(0);
  return of_atom(atom(IndexAtom::kVariable, v));
}

IndexId Indices::size(DomainId d) {
  if (domains_[d].extent) return constant(*domains_[d].extent);
  return of_atom(atom(IndexAtom::kSize, d));
}

IndexId Indices::add(IndexId a, IndexId b, int64_t times) {
  const Index &x = indices_[a], &y = indices_[b];
  std::map<IndexAtomId, int64_t> sum;
  const auto plus = [&](int64_t& to, int64_t factor, int64_t value) {
    int64_t product = 0;
    overflow_ |= __builtin_mul_overflow(factor, value, &product);
    overflow_ |= __builtin_add_overflow(to, product, &to);
  };
  for (const auto& [atom, coefficient] : x.items) sum[atom] = coefficient;
  for (const auto& [atom, coefficient] : y.items) plus(sum[atom], times, coefficient);
  Index result{x.constant, {}};
  plus(result.constant, times, y.constant);
  for (const auto& [atom, coefficient] : sum) {
    if (coefficient != 0) result.items.emplace_back(atom, coefficient);
  }
  return intern(std::move(result));
}

std::optional<VarId> Indices::as_variable(IndexId id) const {
  const Index& index = indices_[id];
  if (index.constant != 0 || index.items.size() != 1 || index.items[0].second != 1) return {};
  const IndexAtom& only = atoms_[index.items[0].first];
  if (only.kind != IndexAtom::kVariable) return {};
  return only.what;
}

uint64_t Indices::hash_of_atom(IndexAtomId id, const Colours& colours) const {
  const IndexAtom& a = atoms_[id];
  switch (a.kind) {
    case IndexAtom::kVariable: {
      const uint64_t* colour = colour_of(colours, a.what);
      return mix(11, colour != nullptr ? *colour : variables_[a.what].hash);
    }
    case IndexAtom::kPosition: {
      uint64_t h = mix(12, splits_[a.what].hash);
      for (const IndexId part : a.parts) h = mix(h, hash(part, colours));
      return h;
    }
    case IndexAtom::kSize:
      return mix(13, domains_[a.what].hash);
  }
  SUNDOG_CHECK(false);
}

uint64_t Indices::hash(IndexId id, const Colours& colours) const {
  const Index& index = indices_[id];
  uint64_t sum = 0;
  for (const auto& [atom, coefficient] : index.items) {
    sum += mix(hash_of_atom(atom, colours), static_cast<uint64_t>(coefficient));
  }
  return mix(mix(14, static_cast<uint64_t>(index.constant)), sum);
}

std::string Indices::text(IndexId id) const {
  const Index& index = indices_[id];
  std::string result;
  for (const auto& [a, coefficient] : index.items) {
    if (!result.empty())
      result += coefficient < 0 ? " - " : " + ";
    else if (coefficient < 0)
      result += "-";
    const int64_t size = coefficient < 0 ? -coefficient : coefficient;
    if (size != 1) result += std::to_string(size) + "*";
    const IndexAtom& atom = atoms_[a];
    if (atom.kind == IndexAtom::kVariable) {
      result += variables_[atom.what].name;
    } else if (atom.kind == IndexAtom::kSize) {
      result += "|" + domains_[atom.what].name + "|";
    } else {
      result += domains_[splits_[atom.what].axis].name + "(";
      for (size_t i = 0; i < atom.parts.size(); ++i) {
        result += (i == 0 ? "" : ", ") + text(atom.parts[i]);
      }
      result += ")";
    }
  }
  if (index.constant != 0 || result.empty()) {
    const std::string sign = index.constant < 0 ? " - " : " + ";
    result += result.empty() ? std::to_string(index.constant)
                             : sign + std::to_string(std::abs(index.constant));
  }
  return result;
}

}  // namespace sundog::verify
