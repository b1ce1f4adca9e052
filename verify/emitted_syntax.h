// The syntax of emitted kernels: just enough of C++ to see what memory a kernel touches, under
// which conditions, between which barriers.  Reads text, not anything that the generator knows, so
// that a slip of the generator is not repeated here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sundog::verify {

struct Expression {
  enum Kind : uint8_t {
    kNumber,   // text
    kName,     // text
    kCall,     // text: the function; parts: arguments
    kIndex,    // parts: what, index
    kUnary,    // text: the operator; one part
    kBinary,   // text: the operator, assignments included; two parts
    kTernary,  // condition, then, else
  };
  Kind kind = kNumber;
  std::string text;
  std::string arguments;  // template arguments of a call, as written
  std::vector<Expression> parts;
};

struct EmittedStatement {
  enum Kind : uint8_t { kBlock, kFor, kIf, kDeclaration, kLambda, kExpression, kContinue };
  Kind kind = kBlock;
  std::string name;  // declared variable, or variable of a for
  std::string type;  // of a declaration: "float", "sd::Vec<sd::f16,8>", "sd::f16*"
  std::vector<std::string> parameters;  // of a lambda
  std::vector<Expression>
      expressions;                     // for: begin, condition, step; if: condition; else: one or 0
  std::vector<EmittedStatement> body;  // if: then and else, each a block
};

struct EmittedFunction {
  std::string name;
  struct Parameter {
    std::string type, name;  // the element type
  };
  std::vector<Parameter> parameters;
  std::vector<EmittedStatement> body;
  std::string cluster = "1";  // blocks of a cluster along x
};

// The kernels of an emitted file that run on a device, in order; what stands in place of a
// library's, for the emulator alone, is none.  Errors: kUnsupported, with the text not understood.
Result<std::vector<EmittedFunction>> parse_emitted(std::string_view text);

}  // namespace sundog::verify
