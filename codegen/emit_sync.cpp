#include "codegen/emit_sync.h"

#include <algorithm>

namespace sundog::codegen {
namespace {

bool overlap(const Region& a, const Region& b) { return a.begin < b.end && b.begin < a.end; }

Hazards::Need worse(Hazards::Need a, Hazards::Need b) { return a < b ? b : a; }

}  // namespace

Hazards::Need Hazards::before_read(const Region& region) const {
  Need need = Need::kNothing;
  for (const Access& a : pending_) {
    if (!a.is_write || !overlap(a.region, region)) continue;
    need = worse(need, a.is_copy ? Need::kWaitAndBarrier : Need::kBarrier);
  }
  return need;
}

Hazards::Need Hazards::before_write(const Region& region) const {
  Need need = Need::kNothing;
  for (const Access& a : pending_) {
    if (!overlap(a.region, region)) continue;
    need = worse(need, a.is_copy ? Need::kWaitAndBarrier : Need::kBarrier);
  }
  return need;
}

Hazards::Need Hazards::before_loop() const {
  Need need = Need::kNothing;
  for (const Access& a : pending_) {
    if (a.is_write) need = worse(need, a.is_copy ? Need::kWaitAndBarrier : Need::kBarrier);
  }
  return need;
}

void Hazards::barrier(bool waited) {
  std::erase_if(pending_, [&](const Access& a) { return waited || !a.is_copy; });
}

void Hazards::add(const Access& access) {
  if (std::find(pending_.begin(), pending_.end(), access) == pending_.end()) {
    pending_.push_back(access);
  }
}

void Hazards::merge(const Hazards& other) {
  for (const Access& a : other.pending_) add(a);
}

bool Hazards::covers(const Hazards& other) const {
  return std::all_of(other.pending_.begin(), other.pending_.end(), [&](const Access& a) {
    return std::find(pending_.begin(), pending_.end(), a) != pending_.end();
  });
}

}  // namespace sundog::codegen
