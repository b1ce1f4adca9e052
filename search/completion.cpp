// The same walk as placement's, of one kernel that loads nothing but inputs, for its least time and
// nothing else.  A kernel is looked at only as far as it may be faster than the best so far: at the
// sizes of those before it most are not, so that few are sized.  That depends on the order in which
// they come, so these prices are not placement's, which comes to few of the kernels, and then knows
// good sizes of theirs.  The result follows from what was known when the round began, so any task
// of the round may use what another one found.
#include "search/completion.h"

#include <algorithm>

#include "search/bound.h"

namespace sundog::search {
namespace {

constexpr int kMostStates = 4000;  // of one set of terms

}  // namespace

double Completion::least_us(const RankSet& terms, Quantum& quantum, PlacementNews& news) {
  const uint64_t key = terms.hash();
  const LeastTime* known = tables_.completions().find(key);
  if (known == nullptr) {
    quantum_ = &quantum;
    LeastTime worked_out = work_out(terms);
    if (quantum.cut()) return worked_out.us;
    const auto [entry, fresh] = tables_.completions().insert(key, std::move(worked_out));
    known = entry;
    if (fresh) counts_ += priced_;
  }
  if (known->round == tables_.round() && told_.insert(key).second) {
    quantum.spend_work(kStatesOfPrice * known->kernels);
    for (const auto& [at, sizes] : known->sizes) keep_better(at, sizes, news.good_sizes);
  }
  return known->us;
}

LeastTime Completion::work_out(const RankSet& terms) {
  states_ = 0;
  body_ = {};
  sizes_.clear();
  priced_ = {};
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
  const bool whole = states_ <= kMostStates && !quantum_->cut();
  return {static_cast<float>(whole ? best_ : bound(bytes, {})), tables_.round(),
          static_cast<uint32_t>(priced_.priced), std::move(sizes_)};
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
    Price fresh;
    // What another task has worked out in this round may not be there next time.
    if (price == nullptr || price->round == tables_.round()) {
      quantum_->check();
      if (quantum_->cut()) return;
      fresh = pricer_.price_below(best_, sizes_, body_, shapes[i]);
      price = &fresh;
      priced_ += KernelPricer::count_of(fresh);
      KernelPricer::note_sizes(fresh, sizes_);
    }
    for (float us : price->us) best_ = std::min<double>(best_, us);
  }
}

}  // namespace sundog::search
