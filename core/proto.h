// The protobuf form of programs and µGraphs (core/sundog.proto): what is stored.
//
// Reading trusts nothing: truncated, hostile or merely wrong bytes give an Error.  What is returned
// satisfies check() and the limits on sizes that text has.
#pragma once

#include <string>
#include <string_view>

#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace sundog {

namespace proto {
class Program;
class MuGraph;
}  // namespace proto

// Equal values give equal bytes, but for the positions of definitions.
std::string serialize(const Program& program);
std::string serialize(const MuGraph& graph);
Result<Program> parse_program_proto(std::string_view bytes);
Result<MuGraph> parse_mugraph_proto(std::string_view bytes, const Program& program);

// The same for parts of larger messages; callers include core/sundog.pb.h.
void to_message(const Program& program, proto::Program* message);
void to_message(const MuGraph& graph, proto::MuGraph* message);
Result<Program> from_message(const proto::Program& message);
Result<MuGraph> from_message(const proto::MuGraph& message, const Program& program);

// Fills `message` from bytes, without the complaints that protobuf otherwise prints; false if they
// are none.  For all who read messages of foreign origin.
bool parse_message(std::string_view bytes, google::protobuf::MessageLite* message);

}  // namespace sundog
