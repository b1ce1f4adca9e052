// The same walk as placement's, of one kernel that loads nothing but inputs, for its least time and
// nothing else.  Its kernels are priced into the same table, where placement finds them when it
// comes to them.  The result follows from the prices, which are the same whoever works them out, so
// any task may use what another one found.
#include "search/completion.h"

#include <algorithm>

#include "search/bound.h"

namespace sundog::search {
namespace {

constexpr int kMostStates = 4000;  // of one set of terms

}  // namespace

double Completion::least_us(const RankSet& terms, Quantum& quantum) {
  const uint64_t key = terms.hash();
  if (const LeastTime* known = tables_.completions().find(key)) return known->us;
  quantum_ = &quantum;
  states_ = 0;
  body_ = {};
  common_ = AxisSet(~uint64_t{0});
  double bytes = 0;
  for (int o : terms.members()) {
    body_.outputs.push_back(o);
    bytes += table_.terms[static_cast<size_t>(o)].total_bytes;
    common_ = common_ & table_.terms[static_cast<size_t>(o)].axes;
  }
  // As placement lists them: greatest first.
  std::swap(body_.outputs.front(), body_.outputs.back());
  std::sort(body_.outputs.begin() + 1, body_.outputs.end());
  best_ = pricer_.most_us_of(body_);
  fill(terms, bytes, {});
  if (quantum.cut()) return bound(bytes, {});
  const double least = states_ > kMostStates ? bound(bytes, {}) : best_;
  return tables_.completions().insert(key, {static_cast<float>(least), tables_.round()}).first->us;
}

double Completion::bound(double bytes, const WorkTime& work) const {
  return structure_bound(machine_, 1, 0) +
         std::max({bytes / hbm_peak(machine_), work.tensor, work.alu, work.sfu});
}

void Completion::fill(RankSet need, double bytes, WorkTime work) {
  if (++states_ > kMostStates || quantum_->cut() || bound(bytes, work) >= best_) return;
  const int x = need.top();
  if (x < 0) {
    leaf();
    return;
  }
  need.erase(x);
  const RankedTerm& t = table_.terms[static_cast<size_t>(x)];
  if (t.leaf == LeafKind::kConstant) {
    fill(need, bytes, work);
    return;
  }
  if (t.leaf != LeafKind::kNone) {
    body_.items.push_back({x, -1});
    fill(need, bytes + t.total_bytes, work);
    body_.items.pop_back();
    return;
  }
  for (size_t i = 0; i < t.nodes.size(); ++i) {
    const RankedNode& n = t.nodes[i];
    if (n.dropped) continue;
    if (space_.prune_duplicates && uses_absent_split(bank_, table_, common_, n)) continue;
    RankSet next = need;
    for (int o : n.operands) next.insert(o);
    WorkTime more = work;
    more += n.work;
    body_.items.push_back({x, static_cast<int>(i)});
    fill(next, bytes, more);
    body_.items.pop_back();
  }
}

void Completion::leaf() {
  const uint64_t body_hash = hash_of(body_);
  const std::vector<KernelShape>& shapes = pricer_.shapes_of(body_, body_hash);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const uint64_t hash = mix(body_hash, i);
    const Price* price = pricer_.known(hash);
    if (price == nullptr) {
      quantum_->check();
      if (quantum_->cut()) return;
      price = &pricer_.price(hash, body_, shapes[i]);
    }
    for (float us : price->us) best_ = std::min<double>(best_, us);
  }
}

}  // namespace sundog::search
