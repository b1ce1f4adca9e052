#include "core/text_mugraph_syntax.h"

#include "core/text_suggest.h"
#include "core/via.h"

namespace sundog::text {
namespace {

constexpr int kMaxLoops = 16;

class KernelParser {
 public:
  explicit KernelParser(Cursor& cursor) : cursor_(cursor) {}

  KernelSyntax run() {
    kernel_.name = cursor_.name("of the kernel");
    header();
    block(kernel_.body, "the kernel");
    return std::move(kernel_);
  }

 private:
  void header() {
    while (!cursor_.failed() && (cursor_.at("(", 1) || cursor_.at("via"))) {
      const Place place = cursor_.place();
      const std::string word(cursor_.take().text);
      if (word == "via" && !cursor_.at("(")) {
        via();
        continue;
      }
      cursor_.expect("(", "after " + word);
      if (word == "grid") {
        kernel_.grid = cursor_.names("of a factor");
      } else if (word == "warps") {
        kernel_.warps_at = place;
        kernel_.warps = cursor_.integer("of warps");
      } else if (word == "factors") {
        kernel_.factors = cursor_.names("of a factor");
      } else if (word == "library") {
        library();
      } else {
        cursor_.diagnostics().fail(
            place, "a kernel has no '" + excerpt(word) + "'",
            suggestion(word, {"grid", "warps", "factors", "library", "via"}));
      }
      cursor_.expect(")", "after " + word);
    }
  }

  void library() {
    const Ident what = cursor_.name("of a function of the library");
    if (what.text == "gemm") {
      kernel_.kind = KernelKind::kLibraryGemm;
    } else if (!cursor_.failed()) {
      cursor_.diagnostics().fail(what.at, "no kernel is a library's '" + excerpt(what.text) + "'",
                                 "known: gemm");
    }
  }

  void via() {
    const Ident how = cursor_.name("of the way it is launched");
    for (Via known : {Via::kKernel, Via::kLastBlock, Via::kCluster}) {
      if (how.text == name(known)) {
        kernel_.via = known;
        return;
      }
    }
    if (cursor_.failed()) return;
    cursor_.diagnostics().fail(how.at, "a kernel cannot run via '" + excerpt(how.text) + "'",
                               "known: kernel, last_block, cluster");
  }

  void block(std::vector<StepSyntax>& body, const std::string& of) {
    const Place open = cursor_.place();
    cursor_.expect("{", "before the statements of " + of);
    while (!cursor_.failed() && !cursor_.at("}")) {
      if (cursor_.at_end()) cursor_.diagnostics().fail(open, "'{' is never closed");
      step(body);
    }
    cursor_.expect("}", "at the end of " + of);
  }

  void step(std::vector<StepSyntax>& body) {
    const bool named = cursor_.peek(1).kind == Token::Kind::kName;
    if (cursor_.accept(";")) return;
    if (cursor_.at("split") && named) {
      cursor_.take();
      kernel_.splits.push_back(parse_split(cursor_));
    } else if (cursor_.at("loop") && named) {
      cursor_.take();
      body.push_back({loop()});
    } else if (cursor_.at("store") && named) {
      cursor_.take();
      body.push_back({store()});
    } else if (cursor_.peek().kind == Token::Kind::kName) {
      compute(body);
    } else {
      cursor_.fail_here("expected a computation, loop, store or split, found " +
                        describe(cursor_.peek()));
    }
  }

  LoopSyntax loop() {
    LoopSyntax result;
    result.factor = cursor_.name("of the factor to loop over");
    while (!cursor_.failed() && cursor_.at("(", 1)) {
      if (cursor_.accept("stages")) {
        cursor_.expect("(", "after stages");
        result.stages = cursor_.integer("of stages");
        cursor_.expect(")", "after the stages");
        result.bulk = cursor_.accept("bulk");
      } else if (cursor_.accept("trim")) {
        result.trim = parse_list(cursor_, "(", ")");
      } else {
        cursor_.fail_here("a loop has no " + describe(cursor_.peek()),
                          "stages(3) and trim(conditions) may stand here");
      }
    }
    if (++loops_ > kMaxLoops) cursor_.fail_here("loops are nested deeper than 16 levels");
    block(result.body, "the loop");
    --loops_;
    return result;
  }

  StoreSyntax store() {
    StoreSyntax result;
    result.computation = cursor_.name("of a computation");
    cursor_.expect("->", "before the tensor");
    result.tensor = cursor_.name("of a tensor");
    if (cursor_.at("[")) result.index = parse_list(cursor_, "[", "]");
    if (cursor_.accept(":")) {
      result.dtype = parse_dtype_name(cursor_);
      if (cursor_.accept("[")) {
        result.dims = cursor_.names("of an axis");
        cursor_.expect("]", "or ',' after an axis");
      }
    }
    return result;
  }

  void compute(std::vector<StepSyntax>& body) {
    DefinitionSyntax definition = parse_definition(cursor_);
    if (definition.let) {
      body.push_back({std::move(definition)});
      return;
    }
    ComputeSyntax result;
    result.name = std::move(definition.name);
    result.axes = std::move(definition.axes);
    result.value = std::move(definition.value);
    if (!cursor_.expect(":", "before storage and type")) return;
    const Ident storage = cursor_.name("of a storage");
    if (storage.text == name(Storage::kShared)) {
      result.storage = Storage::kShared;
    } else if (storage.text != name(Storage::kReg) && !cursor_.failed()) {
      cursor_.diagnostics().fail(storage.at, "unknown storage '" + storage.text + "'",
                                 "write reg or shared");
    }
    result.dtype = parse_dtype_name(cursor_);
    while (!cursor_.failed() && detail(result)) {
    }
    body.push_back({std::move(result)});
  }

  bool detail(ComputeSyntax& to) {
    if (cursor_.at("mma") && cursor_.at("(", 1)) {
      cursor_.take();
      cursor_.take();
      const Ident atom = cursor_.name("of an atom");
      to.mma = find_atom(atom.text);
      if (to.mma == MmaAtom::kNoAtom && !cursor_.failed()) {
        cursor_.diagnostics().fail(atom.at, "unknown mma atom '" + atom.text + "'",
                                   "known: m16n8k16, m64n8k16");
      }
      if (cursor_.accept(",")) to.mma_swap = cursor_.expect("swap", "after ','");
      return cursor_.expect(")", "after the atom");
    }
    if (cursor_.at("warps") && cursor_.at("(", 1)) {
      cursor_.take();
      cursor_.take();
      do {
        const Ident factor = cursor_.name("of a factor");
        cursor_.expect("/", "between factor and number of warps");
        to.warps.emplace_back(factor, cursor_.integer("of warps"));
      } while (cursor_.accept(","));
      return cursor_.expect(")", "after the warps");
    }
    const bool named = cursor_.peek(1).kind == Token::Kind::kName;
    if (cursor_.at("rescale") && named) {
      cursor_.take();
      to.rescale = cursor_.name("of a running maximum");
      return true;
    }
    if (cursor_.at("into") && named) {
      cursor_.take();
      to.into = cursor_.name("of an accumulator");
      return true;
    }
    return false;
  }

  Cursor& cursor_;
  KernelSyntax kernel_;
  int loops_ = 0;
};

}  // namespace

std::string_view name(Storage storage) {
  switch (storage) {
    case Storage::kReg:
      return "reg";
    case Storage::kShared:
      return "shared";
  }
  return {};
}

std::string_view name(MmaAtom atom) {
  switch (atom) {
    case MmaAtom::kNoAtom:
      return "none";
    case MmaAtom::kM16N8K16:
      return "m16n8k16";
    case MmaAtom::kM64N8K16:
      return "m64n8k16";
  }
  return {};
}

MmaAtom find_atom(std::string_view text) {
  for (MmaAtom atom : {MmaAtom::kM16N8K16, MmaAtom::kM64N8K16}) {
    if (text == name(atom)) return atom;
  }
  return MmaAtom::kNoAtom;
}

MuGraphSyntax parse_mugraph_syntax(Cursor& cursor) {
  MuGraphSyntax graph;
  if (cursor.at("program")) {
    cursor.fail_here("this is a program, not a µGraph", "a µGraph starts with: ugraph NAME of");
  }
  cursor.expect("ugraph", "at the start");
  graph.name = cursor.name("of the µGraph");
  cursor.expect("of", "before the name of the program");
  graph.program = cursor.name("of the program");
  const Place open = cursor.place();
  cursor.expect("{", "before the kernels");
  while (!cursor.failed() && !cursor.at("}")) {
    if (cursor.at_end()) {
      cursor.diagnostics().fail(open, "'{' is never closed");
    } else if (cursor.accept("axis")) {
      AxisSyntax axis;
      axis.name = cursor.name("of the axis");
      cursor.expect("=", "after the axis");
      axis.factor = cursor.name("of a grid factor");
      cursor.expect("of", "before the name of the kernel");
      axis.kernel = cursor.name("of a kernel");
      graph.axes.push_back(std::move(axis));
    } else if (cursor.accept("tensor")) {
      graph.tensors.push_back(parse_tensor(cursor, true));
    } else if (cursor.at("kernel")) {
      cursor.take();
      const size_t first = cursor.mark();
      KernelSyntax kernel = KernelParser(cursor).run();
      kernel.words = cursor.names_since(first);
      graph.kernels.push_back(std::move(kernel));
    } else {
      cursor.fail_here("expected kernel, tensor or axis, found " + describe(cursor.peek()));
    }
  }
  cursor.expect("}", "at the end of the µGraph");
  if (!cursor.failed() && !cursor.at_end()) {
    cursor.fail_here("expected the end of the file after '}', found " + describe(cursor.peek()),
                     "a file holds one µGraph");
  }
  return graph;
}

}  // namespace sundog::text
