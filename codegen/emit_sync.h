// Which shared bytes other threads may still be writing or reading: decides where barriers stand.
#pragma once

#include <cstdint>
#include <vector>

namespace sundog::codegen {

// Bytes [begin, end) of the arena.
struct Region {
  int64_t begin = 0, end = 0;
  bool operator==(const Region&) const = default;
};

class Hazards {
 public:
  enum class Need { kNothing, kBarrier, kWaitAndBarrier };

  // What has to happen before the block reads (writes) the region.
  Need before_read(const Region& region) const;
  Need before_write(const Region& region) const;

  void read(const Region& region) { add({region, false, false}); }
  void write(const Region& region) { add({region, true, false}); }
  void copy(const Region& region) { add({region, true, true}); }  // cp.async

  // What lets a loop start whose iterations do not begin with a barrier: nothing is pending.
  Need before_loop() const;

  // A barrier; copies under way stay so unless waited for.
  void barrier(bool waited);

  void merge(const Hazards& other);
  bool covers(const Hazards& other) const;

 private:
  struct Access {
    Region region;
    bool is_write = false, is_copy = false;
    bool operator==(const Access&) const = default;
  };
  void add(const Access& access);
  std::vector<Access> pending_;
};

}  // namespace sundog::codegen
