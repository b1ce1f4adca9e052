#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <type_traits>

namespace sundog::codegen {
namespace {

// The part of NVRTC's interface that is used; unchanged since CUDA 11.1.
using NvrtcProgram = struct NvrtcProgramTag*;
struct Nvrtc {
  int (*version)(int*, int*);
  const char* (*error_string)(int);
  int (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*,
                const char* const*);
  int (*destroy)(NvrtcProgram*);
  int (*compile)(NvrtcProgram, int, const char* const*);
  int (*log_size)(NvrtcProgram, size_t*);
  int (*log)(NvrtcProgram, char*);
  int (*cubin_size)(NvrtcProgram, size_t*);
  int (*cubin)(NvrtcProgram, char*);
};

// Folders where pip, conda and Debian put Python packages, newest Python last.
const char* const kPythonFolders[] = {
    "lib/python3*/site-packages", "lib64/python3*/site-packages", "lib/python3/dist-packages",
    "local/lib/python3*/dist-packages", ".venv/lib/python3*/site-packages"};

std::vector<std::string> expand(const std::string& pattern) {
  std::vector<std::string> found;
  glob_t matches{};
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    for (size_t i = matches.gl_pathc; i-- > 0;) found.emplace_back(matches.gl_pathv[i]);
  }
  globfree(&matches);
  return found;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string value = environment(name); !value.empty()) folders.push_back(value);
  }
  folders.emplace_back("/usr/local/cuda");
  for (const std::string& folder : expand("/usr/local/cuda-[0-9]*")) folders.push_back(folder);
  return folders;
}

// Files below the folder `nvidia` of any Python installation that can be seen from here.
std::vector<std::string> in_python_packages(const std::string& pattern) {
  std::vector<std::string> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string value = environment(name); !value.empty()) prefixes.push_back(value);
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    prefixes.push_back(home + "/.local");
  }
  for (const char* prefix : {"/usr", "/usr/local", "/opt/*"}) prefixes.emplace_back(prefix);
  std::vector<std::string> found;
  for (const std::string& prefix : prefixes) {
    for (const char* folder : kPythonFolders) {
      for (std::string& file : expand(prefix + "/" + folder + "/nvidia/" + pattern)) {
        found.push_back(std::move(file));
      }
    }
  }
  return found;
}

void without_repeats(std::vector<std::string>& names) {
  std::set<std::string> seen;
  std::erase_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
}

bool load(void* library, Nvrtc& api) {
  const auto find = [library](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  return find("nvrtcVersion", api.version) && find("nvrtcGetErrorString", api.error_string) &&
         find("nvrtcCreateProgram", api.create) && find("nvrtcDestroyProgram", api.destroy) &&
         find("nvrtcCompileProgram", api.compile) && find("nvrtcGetProgramLogSize", api.log_size) &&
         find("nvrtcGetProgramLog", api.log) && find("nvrtcGetCUBINSize", api.cubin_size) &&
         find("nvrtcGetCUBIN", api.cubin);
}

Result<Nvrtc> open_nvrtc() {
  std::string last_error;
  for (const std::string& name : nvrtc_candidates()) {
    // A path that does not exist is not worth dlopen's message.
    if (name.find('/') != std::string::npos && access(name.c_str(), R_OK) != 0) continue;
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (const char* text = dlerror(); text != nullptr) last_error = text;
      continue;
    }
    Nvrtc api{};
    if (load(library, api)) return api;  // stays open until the process ends
    last_error = name + " lacks a function of NVRTC 11.1 or later";
    dlclose(library);
  }
  return Error{ErrorCode::kToolMissing,
               "NVRTC was not found" + (last_error.empty() ? "" : " (" + last_error + ")"),
               "install the CUDA toolkit, set CUDA_HOME, or name the library in SUNDOG_NVRTC",
               {}};
}

// The first line that says "error", else the first line.
std::string first_error(const std::string& log) {
  size_t begin = log.find("error");
  begin = begin == std::string::npos ? 0 : log.rfind('\n', begin) + 1;
  return log.substr(begin, std::min<size_t>(log.find('\n', begin) - begin, 300));
}

}  // namespace

std::vector<std::string> nvrtc_candidates() {
  if (const std::string file = environment("SUNDOG_NVRTC"); !file.empty()) return {file};
  const char* const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                               "libnvrtc.so"};
  std::vector<std::string> names(std::begin(files), std::end(files));
  for (const std::string& folder : toolkit_folders()) {
    for (const char* sub : {"/lib64/", "/lib/", "/targets/x86_64-linux/lib/"}) {
      for (const char* file : files) names.push_back(folder + sub + file);
    }
  }
  for (const char* pattern : {"cu1*/lib/libnvrtc.so.1*", "cuda_nvrtc/lib/libnvrtc.so.1*"}) {
    for (std::string& file : in_python_packages(pattern)) {
      if (file.find(".alt.") == std::string::npos) names.push_back(std::move(file));
    }
  }
  without_repeats(names);
  return names;
}

std::vector<std::string> cuda_include_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    if (access((folder + "/cuda_fp16.h").c_str(), R_OK) == 0) folders.push_back(folder);
  };
  for (const std::string& folder : toolkit_folders()) {
    add(folder + "/include");
    add(folder + "/targets/x86_64-linux/include");
  }
  for (const char* pattern : {"cu1*/include", "cuda_runtime/include"}) {
    for (const std::string& folder : in_python_packages(pattern)) add(folder);
  }
  without_repeats(folders);
  return folders;
}

Result<NvrtcOutput> nvrtc_compile(const std::string& cuda, const std::string& arch) {
  Result<Nvrtc> api = open_nvrtc();
  if (!api.ok()) return api.error();
  const auto failed = [&](const char* what, int code) {
    return Error{
        ErrorCode::kFailed, std::string("NVRTC: ") + what + ": " + api->error_string(code), {}, {}};
  };
  NvrtcOutput output;
  api->version(&output.major, &output.minor);
  NvrtcProgram program = nullptr;
  if (const int code = api->create(&program, cuda.c_str(), "kernel.cu", 0, nullptr, nullptr)) {
    return failed("cannot create a program", code);
  }
  std::vector<std::string> options = {"--gpu-architecture=" + arch, "--std=c++17",
                                      "--ptxas-options=-v"};
  // One folder: headers of two toolkits must not mix.
  const std::vector<std::string> folders = cuda_include_folders();
  if (!folders.empty()) options.push_back("--include-path=" + folders.front());
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const int code = api->compile(program, static_cast<int>(pointers.size()), pointers.data());
  size_t size = 0;
  if (api->log_size(program, &size) == 0 && size > 1) {
    output.log.resize(size);
    if (api->log(program, output.log.data()) != 0) output.log.clear();
    output.log.resize(output.log.find('\0') == std::string::npos ? output.log.size()
                                                                 : output.log.find('\0'));
  }
  if (code != 0) {
    const std::string hint =
        folders.empty() ? "cuda_fp16.h was found nowhere: set CUDA_HOME to a CUDA toolkit" : "";
    api->destroy(&program);
    return Error{ErrorCode::kFailed,
                 std::string("NVRTC: ") + api->error_string(code) + ": " + first_error(output.log),
                 hint,
                 {}};
  }
  int cubin_code = api->cubin_size(program, &size);
  if (cubin_code == 0) {
    output.cubin.resize(size);
    cubin_code = api->cubin(program, output.cubin.data());
  }
  api->destroy(&program);
  if (cubin_code != 0) return failed("cannot get the machine code", cubin_code);
  return output;
}

}  // namespace sundog::codegen
