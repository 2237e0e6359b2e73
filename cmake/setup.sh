#!/usr/bin/env bash
# Finds what a build needs and, on Debian 12, installs what is missing: cmake/setup.sh demo|check|developer...
# Scripts source it and call `setup`; exit status 3 says that something is missing which could not be installed.
#
# Everything is probed first, by header, tool or library, and a package is asked for only where its probe fails: what a
# system already has, from wherever, is left alone. apt-get never removes a package for us (--no-remove).

# name | probe | Debian 12 package | where else to get it
setup_demo=(
  "a C++20 compiler, g++ 12 or clang 17 and later|compiler|g++|your system's compiler package; CXX names another one"
  "CMake 3.25|cmake|cmake|cmake.org, or: pip install cmake"
  "Ninja|tool ninja|ninja-build|ninja-build.org, or: pip install ninja"
  "Boost.Hana 1.6, headers only|hana|libboost1.81-dev|boost.org, 1.74 or later"
  "fmt|header fmt/format.h|libfmt-dev|github.com/fmtlib/fmt, 9 or later"
  "oneDNN 2|header oneapi/dnnl/dnnl.hpp|libdnnl-dev|github.com/oneapi-src/oneDNN, 2.6, built with OpenMP"
  "OpenCL's headers and loader, which oneDNN's package asks for|opencl|ocl-icd-opencl-dev|github.com/OCL-dev/ocl-icd"
  "nlohmann JSON 3.11|header nlohmann/json.hpp|nlohmann-json3-dev|github.com/nlohmann/json"
  "CLI11|header CLI/CLI.hpp|libcli11-dev|github.com/CLIUtils/CLI11"
  "xxHash, headers only|header xxhash.h|libxxhash-dev|github.com/Cyan4973/xxHash"
  "LLVM's shared library, 15 or later|llvm|libllvm19|llvm.org; TIGON_LLVM names another file"
)
setup_check=(
  "${setup_demo[@]}"
  "Catch2, version 2|header catch2/catch.hpp|catch2|github.com/catchorg/Catch2, branch v2.x"
)
# shellcheck disable=SC2034  # named by setup's argument
setup_developer=(
  "${setup_check[@]}"
  "clang 19|tool clang++-19|clang-19|apt.llvm.org"
  "clang 19's sanitizers|sanitizers|libclang-rt-19-dev|apt.llvm.org"
  "clang-format 19|tool clang-format-19|clang-format-19|apt.llvm.org"
  "clang-tidy 19|tool run-clang-tidy-19|clang-tidy-19|apt.llvm.org"
  "ShellCheck|tool shellcheck|shellcheck|github.com/koalaman/shellcheck"
  "LLVM 15's shared library|library libLLVM-15.so.1|libllvm15|apt.llvm.org"
  "LLVM 19's shared library|library libLLVM.so.19.1|libllvm19|apt.llvm.org"
  "LLVM 22's shared library|library libLLVM.so.22.1|libllvm22|apt.llvm.org"
)

setup_say() { printf '%s\n' "$*" >&2; }

# The compiler: $CXX if it is set, else the first that is new enough. Exported, so that CMake takes the same.
probe_compiler() {
  local candidate
  for candidate in ${CXX:-g++ c++ g++-14 g++-13 g++-12 clang++ clang++-19}; do
    if printf '%s\n' '#include <version>' '#if defined(__clang__) ? __clang_major__ < 17 : __GNUC__ < 12' \
      '#error too old' '#endif' | "$candidate" -std=c++20 -E -x c++ - >/dev/null 2>&1; then
      export CXX=$candidate
      return 0
    fi
  done
  return 1
}

preprocesses() { "${CXX:-c++}" -std=c++20 -E -x c++ - >/dev/null 2>&1; }
probe_header() { printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "$1" | preprocesses; }
probe_tool() { command -v "$1" >/dev/null; }
probe_hana() {
  printf '%s\n' '#include <boost/hana/version.hpp>' '#if BOOST_HANA_MAJOR_VERSION < 1 || BOOST_HANA_MINOR_VERSION < 6' \
    '#error too old' '#endif' | preprocesses
}
probe_opencl() {
  probe_header CL/cl.h && "${CXX:-c++}" -shared -o /dev/null -x c++ /dev/null -lOpenCL >/dev/null 2>&1
}
probe_cmake() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version \([0-9]*\.[0-9]*\).*/\1/p')
  [[ -n $version ]] && printf '3.25\n%s\n' "$version" | sort -C -V
}
# The loader's own list, which also knows folders of other packages' making.
# Held in a variable: `ldconfig -p | grep -q` fails under pipefail when grep is done before ldconfig is.
known_libraries() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null; }
probe_library() { grep -qF "$1 " <<<"$(known_libraries)"; }
probe_llvm() {
  [[ -n ${TIGON_LLVM:-} ]] || grep -qE 'libLLVM(-(1[5-9]|[2-9][0-9])\.so|\.so\.(1[5-9]|[2-9][0-9]))' <<<"$(known_libraries)"
}
probe_sanitizers() {
  printf 'int main() {}\n' | clang++-19 -fsanitize=address,undefined -x c++ - -o /dev/null >/dev/null 2>&1
}

# Leaves the rows whose probe fails in setup_missing.
setup_probe() {
  local row name probe
  setup_missing=()
  for row in "$@"; do
    IFS='|' read -r name probe _ _ <<<"$row"
    # shellcheck disable=SC2086  # a probe is a word and its arguments
    probe_$probe || setup_missing+=("$row")
  done
}

setup_list_missing() {
  local row name package elsewhere
  for row in "${setup_missing[@]}"; do
    IFS='|' read -r name _ package elsewhere <<<"$row"
    setup_say "  missing: $name"
    setup_say "           Debian 12: $package; elsewhere: $elsewhere"
  done
}

setup_is_debian_12() { [[ $(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}") == "debian 12" ]]; }

setup_apt_get() {
  "${setup_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

# setup WHAT: everything that WHAT (demo, check, developer) needs is there afterwards, or the status is 3.
setup() {
  local -n setup_rows=setup_$1
  local row package packages=() setup_as_root=()
  setup_probe "${setup_rows[@]}"
  [[ ${#setup_missing[@]} -eq 0 ]] && return 0
  if ! setup_is_debian_12; then
    setup_say "This is not Debian 12, so nothing is installed here. Please install:"
    setup_list_missing
    return 3
  fi
  for row in "${setup_missing[@]}"; do
    IFS='|' read -r _ _ package _ <<<"$row"
    packages+=("$package")
  done
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      setup_say "Neither root nor sudo. As root: apt-get install --no-remove --no-install-recommends ${packages[*]}"
      return 3
    fi
    setup_as_root=(sudo)
  fi
  setup_say "Installing ${packages[*]}"
  # Package lists may be absent or old: a first try without new ones costs nothing where they are good.
  local install=(install -y -qq --no-remove --no-install-recommends "${packages[@]}") log
  log=$(mktemp)
  if ! setup_apt_get "${install[@]}" >"$log" 2>&1; then
    setup_apt_get update -qq >"$log" 2>&1
    if ! setup_apt_get "${install[@]}" >>"$log" 2>&1; then
      cat "$log" >&2
      rm -f "$log"
      setup_say "apt-get could not install them without removing or breaking something. Missing:"
      setup_list_missing
      return 3
    fi
  fi
  rm -f "$log"
  setup_probe "${setup_rows[@]}"
  [[ ${#setup_missing[@]} -eq 0 ]] && return 0
  setup_say "Installed, and yet not found:"
  setup_list_missing
  return 3
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  if [[ $# -eq 0 ]]; then
    setup_say "usage: $0 demo|check|developer..."
    exit 2
  fi
  for what in "$@"; do
    case $what in
      demo | check | developer) setup "$what" || exit $? ;;
      *) setup_say "unknown: $what (demo, check or developer)" && exit 2 ;;
    esac
  done
fi
