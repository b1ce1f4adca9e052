// The best structures found so far, a few of each kind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "search/kernel_shape.h"

namespace sundog::search {

// A kernel of a structure with its price for every choice of part counts.
struct PlacedKernel {
  KernelBody body;
  KernelShape shape;
  uint32_t shape_number = 0;                // of those that the body can have
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

class Incumbents {
 public:
  // `best_us`: what there is to beat already.
  explicit Incumbents(int kept_per_kind, double best_us = 1e30)
      : kept_per_kind_(kept_per_kind), best_us_(best_us) {}

  // Whether the structure is the best so far.
  bool offer(int bank, const Structure& s);
  // All that another one holds, in its order.
  bool offer_all(const Incumbents& other);
  double best_us() const { return best_us_; }
  int kept_per_kind() const { return kept_per_kind_; }

  struct Entry {
    int bank = 0;
    Structure structure;
  };
  std::vector<Entry> sorted() const;  // best first

 private:
  int kept_per_kind_;
  double best_us_;
  std::map<std::string, std::vector<Entry>> by_kind_;
};

}  // namespace sundog::search
