// The idea of computing floats in a ring to check a compiler is that of Triton's FpSan (words
// modulo 2^64).  Here the ring is a tower of prime fields, so that exp has its law and quotients
// have values; the tower is as narrow as the narrowest storage, so that the text runs as it is.
//
// The program is interpreted in the same field, with literals folded as codegen/cuda_text.cpp folds
// them: what 1 / sqrt(128) rounds to is a constant of the text, not a root.
#include "codegen/residue_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "codegen/kernel_check.h"
#include "codegen/launch_emulator.h"
#include "core/arithmetic.h"
#include "core/check.h"
#include "core/interpret.h"
#include "core/op.h"

namespace sundog::codegen {
namespace {

using sd::emulator::Code;
using sd::emulator::CodeStorage;
using sd::emulator::ResidueField;

constexpr double kWantedLog2 = -24;
constexpr int kMostRounds = 16;

// --- the tower

// How deep exponentials stand inside one another; logarithms need one level, too.
struct Nesting {
  using Value = int;
  Value constant(const Number&) const { return 0; }
  Value add(Value x, Value y) const { return std::max(x, y); }
  Value mul(Value x, Value y) const { return std::max(x, y); }
  Value div(Value x, Value y) const { return std::max(x, y); }
  Value exp(Value x) const { return x + 1; }
  Value log(Value x) const { return std::max(x, 1); }
  Value sqrt(Value x) const { return x; }
  Value max(Value x, Value y) const { return std::max(x, y); }
  Value cast(DType, Value x) const { return x; }
  Value call(const Fn&, Value x) const { return x; }
  Value choose(Relation, Value l, Value r, Value t, Value e) const {
    return std::max({l, r, t, e});
  }
};

int nesting(const Program& program) {
  std::vector<int> depth(program.terms.size(), 0);
  int most = 0;
  for (TermId id = 0; id < program.terms.size(); ++id) {
    const Term& term = program.terms[id];
    std::vector<int> in;
    for (const TermId operand : operands(term)) in.push_back(depth[operand]);
    if (const auto* apply = std::get_if<ApplyTerm>(&term)) {
      Nesting algebra;
      depth[id] = sundog::apply(algebra, apply->op, std::span<const int>(in));
    } else {
      for (const int each : in) depth[id] = std::max(depth[id], each);
    }
    most = std::max(most, depth[id]);
  }
  return most;
}

bool stores_bytes(const MuGraph& graph) {
  bool narrow = false;
  for (const DeviceTensor& tensor : graph.tensors) narrow |= bytes(tensor.decl.dtype) == 1;
  for (const Kernel& kernel : graph.kernels) {
    for (const Computation& each : kernel.computations) narrow |= bytes(each.dtype) == 1;
    // A cast that is kept goes through its type.
    for (TermId id = 0; id < kernel.terms.size(); ++id) {
      const auto* apply = std::get_if<ApplyTerm>(&kernel.terms[id]);
      const auto* cast = apply == nullptr ? nullptr : std::get_if<op::Cast>(&apply->op);
      narrow |= cast != nullptr && bytes(cast->to) == 1;
    }
  }
  return narrow;
}

using Tower = std::vector<uint32_t>;

// Towers of a height whose codes fit, largest primes first.  The product of all prime + 1 must be
// below 2^width - 2.
std::vector<Tower> towers(bool narrow, int height) {
  if (narrow && height == 1) return {{251}, {239}};
  if (narrow && height == 2) return {{11, 5}, {7, 3}};
  if (height == 1) return {{65519}, {65479}};
  if (height == 2) return {{359, 179}, {263, 131}, {167, 83}};
  if (height == 3) return {{47, 23, 11}, {23, 11, 5}};
  return {};
}

// A prime that divides an extent would leave a mean over it without a value.
bool suits(const Tower& tower, const Program& program) {
  for (const Axis& axis : program.axes) {
    for (const uint32_t prime : tower) {
      if (axis.extent > 0 && axis.extent % prime == 0) return false;
    }
  }
  return true;
}

std::optional<Tower> choose_tower(const Program& program, const MuGraph& graph) {
  const std::vector<Tower> all = towers(stores_bytes(graph), 1 + nesting(program));
  for (const Tower& tower : all) {
    if (suits(tower, program)) return tower;
  }
  return all.empty() ? std::nullopt : std::optional<Tower>(all.front());
}

// --- what the program computes

// Codes are what the kernels compute with; here, where most of the time goes, residues are kept
// apart, and a mark says what else there is to know of a number.
class ResidueAlgebra {
 public:
  struct Value {
    uint16_t at[ResidueField::kMostPrimes];
    uint16_t mark;  // 0; a literal, folded as in the text: 1 + its number; or kNoNumber
  };

  explicit ResidueAlgebra(const ResidueField& field) : field_(field) {}

  Value constant(const Number& n) { return literal(n.to_double()); }
  Value index(int64_t i) const { return value(field_.integer(i)); }
  Value add(Value x, Value y) {
    if (x.mark == 0 && y.mark == 0) {
      return each(x, y, [this](int i, uint32_t v, uint32_t w) {
        return v + w >= field_.prime(i) ? v + w - field_.prime(i) : v + w;
      });
    }
    if (is_literal(x) && is_literal(y)) return literal(at(x) + at(y));
    return value(field_.add(code(x), code(y)));
  }
  Value sub(Value x, Value y) {
    if (is_literal(x) && is_literal(y)) return literal(at(x) - at(y));
    return value(field_.sub(code(x), code(y)));
  }
  Value neg(Value x) {
    if (is_literal(x)) return literal(-at(x));
    return value(field_.neg(code(x)));
  }
  Value mul(Value x, Value y) {
    if (x.mark == 0 && y.mark == 0) {
      return each(x, y, [this](int i, uint32_t v, uint32_t w) { return field_.product(v, w, i); });
    }
    if (is_literal(x) && is_literal(y)) return literal(at(x) * at(y));
    if (is_literal(x) && at(x) == -1) return neg(y);
    if (is_literal(y) && at(y) == -1) return neg(x);
    return value(field_.mul(code(x), code(y)));
  }
  Value div(Value x, Value y) {
    if (is_literal(y) && at(y) != 0) {
      if (is_literal(x)) return literal(at(x) / at(y));
      const double inverse = 1 / at(y);
      if (std::isfinite(static_cast<float>(inverse))) return mul(x, literal(inverse));
    }
    return value(field_.div(code(x), code(y)));
  }
  Value exp(Value x) {
    if (is_literal(x)) return literal(std::exp(at(x)));
    return value(field_.exp(code(x)));
  }
  Value log(Value x) const { return value(field_.log(code(x))); }
  Value sqrt(Value x) {
    if (is_literal(x) && at(x) >= 0) return literal(std::sqrt(at(x)));
    return value(field_.sqrt(code(x)));
  }
  Value max(Value x, Value y) const { return value(field_.max(code(x), code(y))); }
  Value cast(DType, Value x) const { return x; }
  Value call(const Fn& fn, Value x) const {
    return value(field_.call(ResidueField::function(std::string(fn.name).c_str()), code(x)));
  }
  Value choose(Relation relation, Value l, Value r, Value t, Value e) {
    return *decide(relation, l, r) ? t : e;
  }
  std::optional<bool> decide(Relation relation, Value x, Value y) {
    const Code l = code(x), r = code(y);
    switch (relation) {
      case Relation::kLess:
        return field_.less(l, r, &sure_);
      case Relation::kLessEqual:
        return field_.less(l, r, &sure_) || field_.equal(l, r, &sure_);
      case Relation::kEqual:
        return field_.equal(l, r, &sure_);
      case Relation::kNotEqual:
        return !field_.equal(l, r, &sure_);
    }
    SUNDOG_CHECK(false);
  }
  bool is_minus_infinity(Value x) const { return code(x) == ResidueField::kMinusInfinity; }

  // Whether every comparison was decided by residues that are there.
  bool sure() const { return sure_; }

  Code code(Value x) const {
    if (x.mark == kNoNumber) return x.at[0] | uint32_t{0xffff0000};
    ResidueField::Parts parts{};
    for (int i = 0; i < field_.count(); ++i) parts.at[i] = x.at[i];
    return field_.code(parts);
  }
  Value value(Code x) const {
    if (!ResidueField::is_number(x)) return {{static_cast<uint16_t>(x), 0, 0}, kNoNumber};
    const ResidueField::Parts parts = field_.parts(x);
    Value result{};
    for (int i = 0; i < field_.count(); ++i) result.at[i] = static_cast<uint16_t>(parts.at[i]);
    return result;
  }

 private:
  static constexpr uint16_t kNoNumber = 0xffff;
  static constexpr size_t kMostLiterals = 64;  // a text has few; a sum of ones would make many

  template <class Work>
  Value each(Value x, Value y, const Work& work) const {
    Value result{};
    for (int i = 0; i < field_.count(); ++i) {
      const uint32_t absent = field_.prime(i);
      const bool known = x.at[i] != absent && y.at[i] != absent;
      result.at[i] = static_cast<uint16_t>(known ? work(i, x.at[i], y.at[i]) : absent);
    }
    return result;
  }
  static bool is_literal(Value x) { return x.mark != 0 && x.mark <= kMostLiterals; }
  double at(Value x) const { return literals_[x.mark - 1u].first; }
  Value literal(double number) {
    size_t i = 0;
    while (i < literals_.size() && literals_[i].first != number) ++i;
    if (i == literals_.size()) {
      const Value made = value(field_.constant(static_cast<float>(number)));
      if (i == kMostLiterals) return made;
      literals_.push_back({number, made});
    }
    Value result = literals_[i].second;
    if (result.mark == 0) result.mark = static_cast<uint16_t>(i + 1);
    return result;
  }

  const ResidueField& field_;
  std::vector<std::pair<double, Value>> literals_;
  bool sure_ = true;
};

using Values = TensorValues<ResidueAlgebra::Value>;

// --- memory

CodeStorage storage_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return CodeStorage::kF16;
    case DType::kBF16:
      return CodeStorage::kBf16;
    case DType::kF32:
    case DType::kF64:
      return CodeStorage::kWord;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kI8:
      return CodeStorage::kByte;
  }
  SUNDOG_CHECK(false);
}

void put(const ResidueField& field, const TensorDecl& tensor, int64_t position, Code code,
         TensorMemory& memory) {
  const auto size = static_cast<size_t>(bytes(tensor.dtype));
  uint64_t bits = field.store(storage_of(tensor.dtype), code);
  if (size == 8) bits |= bits << 32;
  std::memcpy(memory.data() + static_cast<size_t>(position) * size, &bits, size);
}

Code get(const ResidueField& field, const TensorDecl& tensor, int64_t position,
         const TensorMemory& memory) {
  const auto size = static_cast<size_t>(bytes(tensor.dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, memory.data() + static_cast<size_t>(position) * size, size);
  return field.load(storage_of(tensor.dtype), static_cast<uint32_t>(bits));
}

// Random residues by place in memory, so that a broadcast element is one number.
struct Inputs {
  std::vector<Values> values;
  std::vector<TensorMemory> memory;
};

Inputs draw(const Program& program, const ResidueField& field, const ResidueAlgebra& algebra) {
  Inputs inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorDecl& tensor = program.inputs[i];
    const std::vector<int64_t> positions = element_positions(tensor);
    Values& values = inputs.values.emplace_back();
    TensorMemory& memory = inputs.memory.emplace_back(poisoned_memory(tensor));
    values.extents = tensor.extents;
    for (const int64_t position : positions) {
      const Code code = field.random(i << 48 | static_cast<uint64_t>(position));
      values.values.push_back(algebra.value(code));
      put(field, tensor, position, code, memory);
    }
  }
  return inputs;
}

// --- comparison

std::string describe(const ResidueField& field, Code x) {
  if (x == ResidueField::kUnwritten) return "no number";
  if (x == ResidueField::kMinusInfinity) return "-inf";
  if (x == ResidueField::kPlusInfinity) return "inf";
  std::string text;
  const ResidueField::Parts parts = field.parts(x);
  for (int i = 0; i < field.count(); ++i) {
    const bool absent = parts.at[i] == field.prime(i);
    text += (i > 0 ? ", " : "") + (absent ? "any" : std::to_string(parts.at[i]));
  }
  return "(" + text + ")";
}

// Whether two codes may be one number; `bits` gets what is sure of it.
bool agree(const ResidueField& field, Code x, Code y, double& bits) {
  double most = 0;
  for (int i = 0; i < field.count(); ++i) most += std::log2(field.prime(i));
  if (!ResidueField::is_number(x) || !ResidueField::is_number(y)) {
    // What is undefined in the field may be anything but unwritten.
    const bool open = x == field.absent() || y == field.absent();
    if (!open && x == y) bits += most;
    return x == y ? x != ResidueField::kUnwritten
                  : open && x != ResidueField::kUnwritten && y != ResidueField::kUnwritten;
  }
  const ResidueField::Parts p = field.parts(x), q = field.parts(y);
  for (int i = 0; i < field.count(); ++i) {
    if (p.at[i] == field.prime(i) || q.at[i] == field.prime(i)) continue;
    if (p.at[i] != q.at[i]) return false;
    bits += std::log2(field.prime(i));
  }
  return true;
}

std::string element_name(const TensorDecl& tensor, size_t element) {
  return tensor.name + interpreting::element_name(tensor.extents, static_cast<int64_t>(element));
}

// The outputs of one round and what is known of each element after all rounds.
class Comparison {
 public:
  explicit Comparison(const Program& program) : program_(program) {
    for (const Output& output : program.outputs) {
      positions_.push_back(element_positions(output.tensor));
      bits_.emplace_back(positions_.back().size(), 0.0);
    }
  }

  // The first difference, or nothing; then the elements count as compared.
  std::string compare(const ResidueField& field, const ResidueAlgebra& algebra,
                      const std::vector<Values>& expected,
                      const std::vector<TensorMemory>& memory) {
    std::vector<std::vector<double>> bits = bits_;
    for (size_t t = 0; t < expected.size(); ++t) {
      const TensorDecl& tensor = program_.outputs[t].tensor;
      for (size_t e = 0; e < positions_[t].size(); ++e) {
        const Code got = get(field, tensor, positions_[t][e], memory[t]);
        const Code wanted = algebra.code(expected[t].values[e]);
        if (agree(field, got, wanted, bits[t][e])) continue;
        return element_name(tensor, e) + " is " + describe(field, got) + ", expected " +
               describe(field, wanted);
      }
    }
    bits_ = std::move(bits);
    return {};
  }

  // Bits by which the element compared least is known, and its name.
  double least(std::string* name) const {
    double least = HUGE_VAL;
    for (size_t t = 0; t < bits_.size(); ++t) {
      for (size_t e = 0; e < bits_[t].size(); ++e) {
        if (bits_[t][e] >= least) continue;
        least = bits_[t][e];
        *name = element_name(program_.outputs[t].tensor, e);
      }
    }
    return least;
  }

 private:
  const Program& program_;
  std::vector<std::vector<int64_t>> positions_;
  std::vector<std::vector<double>> bits_;
};

// --- rounds

class Rounds {
 public:
  Rounds(const Program& program, const MuGraph& graph, const LaunchPlan& plan,
         const EmulatorModule& module, EmulatorOptions options)
      : program_(program),
        graph_(graph),
        plan_(plan),
        module_(module),
        options_(std::move(options)),
        comparison_(program) {}

  Status run(ResidueCheck& check) {
    for (int round = 0; round < kMostRounds; ++round) {
      const uint64_t seed = scramble(options_.seed * 64 + static_cast<uint64_t>(round));
      const ResidueField field(check.primes.data(), static_cast<int>(check.primes.size()), seed);
      SUNDOG_RETURN_IF_ERROR(one(field, check));
      if (!check.failure.empty()) return {};
      std::string name;
      check.error_log2 = -comparison_.least(&name);
      if (check.error_log2 <= kWantedLog2) return {};
      if (round + 1 < kMostRounds) continue;
      if (check.error_log2 > -8) check.undecided = name + " has no residue to compare";
    }
    return {};
  }

 private:
  Status one(const ResidueField& field, ResidueCheck& check) {
    ResidueAlgebra algebra(field);
    Inputs inputs = draw(program_, field, algebra);
    std::vector<TensorMemory> outputs;
    for (const Output& output : program_.outputs) outputs.push_back(poisoned_memory(output.tensor));
    std::vector<void*> in, out;
    for (TensorMemory& memory : inputs.memory) in.push_back(memory.data());
    for (TensorMemory& memory : outputs) out.push_back(memory.data());
    options_.residues = field;
    std::optional<Result<std::vector<Values>>> program;
    std::thread reference;
    if (!check.against_mugraph) {
      reference = std::thread(
          [&] { program = interpret(algebra, program_, std::span<const Values>(inputs.values)); });
    }
    const Result<EmulatorReport> report = emulate(module_, plan_, in.data(), out.data(), options_);
    if (reference.joinable()) reference.join();
    if (!report.ok()) return report.error();
    check.seconds_run += report->seconds_run;
    if (!report->problems.empty()) {
      check.failure = report->problems.front();
      return {};
    }
    if (report->open_comparisons > 0) return {};  // this round tells nothing
    std::string failure;
    if (program) {
      if (!program->ok()) return program->error();
      if (!algebra.sure()) return {};
      failure = comparison_.compare(field, algebra, **program, outputs);
      if (failure.empty()) ++check.rounds;
      if (failure.empty()) return {};
    }
    const auto expected =
        interpret(algebra, graph_, program_, std::span<const Values>(inputs.values));
    if (!expected.ok()) return expected.error();
    if (!algebra.sure()) return {};
    const std::string other = comparison_.compare(field, algebra, *expected, outputs);
    if (!other.empty()) {
      check.failure = failure.empty() ? other : failure;
      return {};
    }
    check.against_mugraph = true;
    ++check.rounds;
    return {};
  }

  const Program& program_;
  const MuGraph& graph_;
  const LaunchPlan& plan_;
  const EmulatorModule& module_;
  EmulatorOptions options_;
  Comparison comparison_;
};

}  // namespace

std::string to_string(const ResidueCheck& check) {
  if (!check.failure.empty()) return "residues differ: " + check.failure;
  if (!check.undecided.empty()) return "residues undecided: " + check.undecided;
  std::string text = "residues modulo ";
  for (size_t i = 0; i < check.primes.size(); ++i) {
    if (i > 0) text += i + 1 < check.primes.size() ? ", " : " and ";
    text += std::to_string(check.primes[i]);
  }
  // Outputs without an element cannot be wrong.
  if (std::isinf(check.error_log2)) return text + ": there is no element to compare";
  char rest[96];
  std::snprintf(rest, sizeof rest, " equal%s in %d rounds (2^%.0f)",
                check.against_mugraph ? " to the µGraph's" : "", check.rounds,
                std::ceil(check.error_log2));
  return text + rest;
}

Result<ResidueCheck> check_residues(const Program& program, const MuGraph& graph,
                                    const LaunchPlan& plan, const std::string& cuda,
                                    const EmulatorOptions& options) {
  ResidueCheck check;
  const std::optional<Tower> tower = choose_tower(program, graph);
  if (!tower) {
    check.undecided = "no tower of primes is as high as these exponentials are nested";
    return check;
  }
  check.primes = *tower;
  EmulatorOptions in_residues = options;
  in_residues.race_check = false;
  in_residues.schedules = 1;
  in_residues.residues = ResidueField(tower->data(), static_cast<int>(tower->size()), options.seed);
  const Result<EmulatorModule> module = EmulatorModule::compile(cuda, in_residues);
  if (!module.ok()) return module.error();
  Rounds rounds(program, graph, plan, *module, in_residues);
  SUNDOG_RETURN_IF_ERROR(rounds.run(check));
  return check;
}

}  // namespace sundog::codegen
