// Placement: which kernel computes which term, and how.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "search/kernel_shape.h"
#include "search/limits.h"
#include "search/lower.h"
#include "search/machine.h"
#include "search/search_space.h"
#include "search/sizes.h"

namespace sundog::search {

// A kernel of a structure with its price for every choice of part counts.
struct PlacedKernel {
  KernelBody body;
  KernelShape shape;
  std::vector<float> us;                    // by choice of part counts; infinite: does not fit
  std::vector<std::vector<int64_t>> tiles;  // likewise
};

// Kernels in the order of launching.
struct Structure {
  std::vector<PlacedKernel> kernels;
  size_t choice = 0;  // of part counts
  double us = 0;
  std::string kind;  // kernels, loops, parts: structures of one kind are variations of each other
  std::string key;   // decisions in order: ties are broken by it
};

// The best structures found so far, a few of each kind.  Shared by the runs over several banks.
class Incumbents {
 public:
  explicit Incumbents(int kept_per_kind) : kept_per_kind_(kept_per_kind) {}
  void offer_time(double us) { best_us_ = std::min(best_us_, us); }
  // Whether the structure is the best so far.
  bool offer(int bank, const Structure& s);
  double best_us() const { return best_us_; }

  struct Entry {
    int bank = 0;
    Structure structure;
  };
  std::vector<Entry> sorted() const;

 private:
  int kept_per_kind_;
  double best_us_ = 1e30;
  std::map<std::string, std::vector<Entry>> by_kind_;
};

struct PlacementCounts {
  uint64_t states = 0, kernels_priced = 0, structures = 0;
  uint64_t cut_by_bound = 0, cut_as_duplicate = 0, cut_as_dominated = 0, cut_unfit = 0;
};

// Enumerates structures of at most `most_kernels` kernels over one bank.
class Placement {
 public:
  Placement(const Bank& bank, const TermTable& table, const Machine& machine,
            const SearchSpace& space, int bank_number, Incumbents& incumbents, Limits& limits,
            PlacementCounts& counts);

  void run(int most_kernels);

  // Numbers of parts of each cut axis, for each choice.
  const std::vector<std::vector<int64_t>>& part_choices() const { return choices_; }

 private:
  void kernels(const RankSet& pending);
  void fill(RankSet need, RankSet later, double bytes, WorkTime work);
  void leaf(const RankSet& later, const WorkTime& work);
  bool does_more(const KernelBody& body, const KernelShape& shape, const WorkTime& work);
  void record();
  double slack() const;
  bool is_cut(const RankSet& later, double bytes, const WorkTime& work);
  double least(const std::vector<float>& us) const;
  const std::vector<PlacedKernel>& place(const KernelBody& body, const WorkTime& work);
  bool price(PlacedKernel& kernel);
  bool is_dominated(const RankSet& pending);
  bool uses_absent_split(const RankedNode& n) const;
  std::string kind() const;
  std::string key() const;

  const Bank& bank_;
  const TermTable& table_;
  const Machine& machine_;
  const SearchSpace& space_;
  int bank_number_;
  Incumbents& incumbents_;
  Limits& limits_;
  PlacementCounts& counts_;
  std::vector<std::vector<int64_t>> choices_;

  int most_kernels_ = 1;
  std::vector<PlacedKernel> done_;  // last kernel first
  std::vector<float> done_us_;      // by choice
  KernelBody body_;                 // being filled
  AxisSet common_;                  // axes that all outputs of it share
  std::vector<int> readers_;        // of each input, in all kernels so far
  double input_bytes_ = 0, read_bytes_ = 0;
  std::unordered_map<uint64_t, std::vector<PlacedKernel>> placed_;
  std::unordered_map<uint64_t, std::vector<std::vector<float>>> reached_;
  struct Effort {
    WorkTime work;
    size_t items = 0;
  };
  std::map<std::vector<uint64_t>, std::vector<int64_t>> good_tiles_;  // of kernels cut alike
  std::unordered_map<uint64_t, std::vector<Effort>> efforts_;  // of kernels that reduce alike
};

}  // namespace sundog::search
