// The command line tool.  Everything but this file is a library, which the tests link.
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interrupt.h"

namespace sundog::cli {
namespace {

int dispatch(const Invocation& invocation) {
  if (invocation.flag("help")) {
    const Status status = write_output(help_text(invocation.command));
    return status.ok() ? 0 : fail(status.error());
  }
  switch (invocation.command->bit) {
    case kOptimize:
      return optimize(invocation);
    case kVerify:
      return verify(invocation);
    case kShow:
      return show(invocation);
    case kEmit:
      return emit(invocation);
    case kRun:
      return run(invocation);
    case kBench:
      return bench(invocation);
    case kCalibrate:
      return calibrate(invocation);
    case kExplain:
      return explain(invocation);
    case kTrace:
      return trace(invocation);
    case kSpace:
      return space(invocation);
    case kHelp:
      return help(invocation);
    case kVersion:
      return version(invocation);
  }
  return 2;
}

// Under a limit on address space (ulimit -v): glibc reserves 64 MB or more for each thread that
// allocates, and where the limit refuses them every allocation asks the system again, in vain.
void keep_arenas_within_limit() {
  constexpr rlim_t kArena = rlim_t{256} << 20;  // a thread's share, with what it puts there
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  mallopt(M_ARENA_MAX, static_cast<int>(std::clamp<rlim_t>(limit.rlim_cur / kArena, 1, 1024)));
}

int run_tool(const std::vector<std::string>& arguments) {
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
  const auto invocation = parse_invocation(arguments, environment);
  if (!invocation.ok()) return fail(invocation.error());
  try {
    return dispatch(*invocation);
  } catch (const std::bad_alloc&) {
    note("sundog: error: out of memory\n  hint: a smaller --states or --top needs less");
    return 3;
  } catch (const std::exception& exception) {
    note(std::string("sundog: internal error: ") + exception.what() +
         "\nPlease report this with the input.");
    return 2;
  }
}

// What walks terms needs the stack that processes have by default, for the deepest terms that are
// read (core/text_limits.h).  Where there is less (ulimit -s) everything runs on threads that have
// it all the same.
class EnoughStack {
 public:
  int run(const std::vector<std::string>& arguments) {
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kBytes) {
      return run_tool(arguments);
    }
    arguments_ = &arguments;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kBytes);
    pthread_setattr_default_np(&attributes);
    pthread_t thread{};
    const bool started = pthread_create(&thread, &attributes, &EnoughStack::begin, this) == 0;
    pthread_attr_destroy(&attributes);
    if (!started) return run_tool(arguments);
    pthread_join(thread, nullptr);
    return code_;
  }

 private:
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t kBytes = size_t{64} << 20;  // frames of an instrumented tool are larger
#else
  static constexpr size_t kBytes = size_t{8} << 20;
#endif

  static void* begin(void* self) {
    auto* here = static_cast<EnoughStack*>(self);
    here->code_ = run_tool(*here->arguments_);
    return nullptr;
  }

  const std::vector<std::string>* arguments_ = nullptr;
  int code_ = 0;
};

}  // namespace
}  // namespace sundog::cli

int main(int count, char** values) {
  using namespace sundog::cli;
  handle_signals();
  keep_arenas_within_limit();
  return EnoughStack().run({values + (count > 0 ? 1 : 0), values + count});
}
