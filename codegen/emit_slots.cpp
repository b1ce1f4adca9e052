#include "codegen/emit_slots.h"

#include <algorithm>

namespace sundog::codegen {

std::string digit_text(const Mode& mode, int warps) {
  const bool lane = mode.holder == Holder::kLane;
  std::string text = lane ? "lane" : "warp";
  if (mode.unit > 1) text += " / " + std::to_string(mode.unit);
  if (mode.unit * mode.extent < (lane ? kLanes : warps))
    text += " % " + std::to_string(mode.extent);
  return text;
}

std::vector<std::string> primary_tests(const std::vector<Mode>& modes, int warps) {
  std::vector<std::string> tests;
  for (Holder holder : {Holder::kLane, Holder::kWarp}) {
    const std::string name = holder == Holder::kLane ? "lane" : "warp";
    const int64_t all = holder == Holder::kLane ? kLanes : warps;
    std::vector<Mode> own;
    for (const Mode& m : modes) {
      if (m.holder == holder && m.extent > 1) own.push_back(m);
    }
    std::sort(own.begin(), own.end(), [](const Mode& a, const Mode& b) { return a.unit < b.unit; });
    int64_t next = 1;  // the first unit that no digit uses
    for (const Mode& m : own) {
      if (m.unit > next) {
        tests.push_back(name + (next > 1 ? " / " + std::to_string(next) : "") + " % " +
                        std::to_string(m.unit / next) + " == 0");
      }
      next = m.unit * m.extent;
    }
    if (next < all) tests.push_back(name + " < " + std::to_string(next));
  }
  return tests;
}

Linear register_index(const Layout& holder, const std::vector<RegisterLoop>& digits) {
  Linear index;
  for (const Mode& h : holder.modes) {
    if (h.holder != Holder::kReg || h.extent <= 1) continue;
    for (const RegisterLoop& d : digits) {
      const Mode& m = d.mode;
      if (m.axis != h.axis || m.extent <= 1) continue;
      if (m.stride >= h.stride && m.stride < h.stride * h.extent) {
        if (m.stride * m.extent <= h.stride * h.extent) {
          index.add(d.var, h.unit * (m.stride / h.stride));
        } else {  // the low part of a digit that goes on beyond this mode
          const int64_t part = h.stride * h.extent / m.stride;
          index.add("(" + d.var + " % " + std::to_string(part) + ")",
                    h.unit * (m.stride / h.stride));
        }
      } else if (m.stride < h.stride && m.stride * m.extent > h.stride) {
        const int64_t skip = h.stride / m.stride;
        const std::string quotient = d.var + " / " + std::to_string(skip);
        const bool top = m.stride * m.extent <= h.stride * h.extent;
        index.add("(" + quotient + (top ? "" : " % " + std::to_string(h.extent)) + ")", h.unit);
      }
    }
  }
  return index;
}

Slots::Slots(Writer& out, const Kernel& kernel, const Layout& layout)
    : layout_(layout), vector_(vector_mode(layout)), warps_(kernel.warps) {
  std::map<AxisId, std::string> threads;
  std::vector<Mode> registers;
  for (const Mode& m : layout.modes) {
    if (m.extent <= 1) continue;
    if (m.holder == Holder::kReg) {
      registers.push_back(m);
      continue;
    }
    std::string digit = digit_text(m, warps_);
    if (m.stride > 1) digit += " * " + std::to_string(m.stride);
    std::string& text = threads[m.axis];
    text += (text.empty() ? "" : " + ") + digit;
  }
  for (const auto& [axis, text] : threads) {
    const std::string name = out.fresh(identifier(kernel.factors[axis].name) + "_");
    out.line("const int " + name + " = " + text + ";");
    coordinates_[axis].add(name, 1);
  }
  std::sort(registers.begin(), registers.end(),
            [](const Mode& a, const Mode& b) { return a.unit > b.unit; });
  for (const Mode& m : registers) {
    const bool is_vector = vector_.extent > 1 && m == vector_;
    loops_.push_back({m, is_vector ? "v" : out.fresh("r")});
    coordinates_[m.axis].add(loops_.back().var, m.stride);
  }
}

Linear Slots::index_in(const Layout& holder) const { return register_index(holder, loops_); }

std::vector<std::string> Slots::edge_tests(const std::function<int64_t(AxisId)>& extent,
                                           AxisSet axes) const {
  std::vector<std::string> tests;
  for (AxisId a : axes) {
    if (covered(layout_, a) <= extent(a)) continue;
    const auto at = coordinates_.find(a);
    if (at == coordinates_.end()) {
      tests.push_back("false");  // an empty axis
      continue;
    }
    tests.push_back(at->second.text() + " < " + std::to_string(extent(a)));
  }
  return tests;
}

void Slots::for_each(Writer& out, AxisSet rolled, const std::function<void()>& prepare,
                     const std::function<void()>& body, const std::function<void()>& after) const {
  int open = 0;
  const auto loop = [&](const RegisterLoop& l, bool unrolled) {
    out.line(unrolled ? "#pragma unroll" : "#pragma unroll 4");
    out.open("for (int " + l.var + " = 0; " + l.var + " < " + std::to_string(l.mode.extent) +
             "; ++" + l.var + ")");
    ++open;
  };
  for (bool first : {true, false}) {
    for (const RegisterLoop& l : loops_) {
      if (l.var != "v" && rolled.has(l.mode.axis) == first) loop(l, !first);
    }
  }
  if (prepare) prepare();
  const int outer = open;
  for (const RegisterLoop& l : loops_) {
    if (l.var == "v") loop(l, true);
  }
  body();
  if (open > outer) {
    out.close();
    --open;
  }
  if (after) after();
  for (; open > 0; --open) out.close();
}

void Slots::for_each_run(Writer& out, const std::function<void()>& body) const {
  int open = 0;
  for (const RegisterLoop& l : loops_) {
    if (l.var == "v") continue;
    out.line("#pragma unroll");
    out.open("for (int " + l.var + " = 0; " + l.var + " < " + std::to_string(l.mode.extent) +
             "; ++" + l.var + ")");
    ++open;
  }
  body();
  for (; open > 0; --open) out.close();
}

}  // namespace sundog::codegen
