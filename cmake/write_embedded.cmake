# Writes OUTPUT, a C++ file that defines SYMBOL as the bytes of INPUT (see sundog_embed.cmake).
# Bytes instead of a raw string literal: no limit on length and no delimiter that the text could hold.
file(READ ${INPUT} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
string(REGEX REPLACE "('...[0-9a-f]','...[0-9a-f]','...[0-9a-f]','...[0-9a-f]','...[0-9a-f]','...[0-9a-f]','...[0-9a-f]','...[0-9a-f]',)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <string_view>

namespace {
constexpr char kBytes[] = {
${bytes}'\\0'};
}  // namespace

namespace ${NAMESPACE} {
extern const std::string_view ${SYMBOL};
constinit const std::string_view ${SYMBOL}(kBytes, ${size});
}  // namespace ${NAMESPACE}
")
