# What the scripts share; sourced, from the root of the checkout.

# All cores, but no more jobs than there are gigabytes of free memory: one job may need one.
job_count() {
  local cores free
  cores=$(nproc)
  free=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || true)
  [[ -n "$free" && "$free" -lt "$cores" ]] && cores=$((free < 1 ? 1 : free))
  echo "$cores"
}

# configure PRESET [OPTION...]: makes build/PRESET.
configure() {
  local preset=$1
  local options=(-DBRAID_PYTHON="$PWD/build/venv/bin/python3")
  command -v ccache >/dev/null && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  [[ -n "${CI:-}" ]] && options+=(-DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
  cmake --preset "$preset" "${options[@]}" "${@:2}" >"build/$preset.log" 2>&1 || {
    tail -n 20 "build/$preset.log" >&2
    exit 3
  }
}

# build PRESET [TARGET...]: of what was configured. The first time it says what it will take, by the
# 4 seconds of processor time that a step takes on average, and what it took.
build() {
  local preset=$1 jobs steps start=$SECONDS
  shift
  jobs=$(job_count)
  if [[ -e "build/$preset/.ninja_log" ]]; then
    cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
    return
  fi
  steps=$(ninja -C "build/$preset" -t commands "${@:-all}" | wc -l)
  echo "build: $steps steps, $jobs at a time: about $((steps * 4 / 60 / jobs + 1)) min"
  cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
  echo "build: took $((SECONDS - start)) s; build/$preset has $(du -sm "build/$preset" | cut -f 1) MB"
}

# run_ctest PRESET [OPTION...]: ctest itself would wait forever for a test without a TIMEOUT, also for
# one that has ended and left a process behind that holds its output.
run_ctest() {
  ctest --test-dir "build/$1" -j "$(job_count)" --timeout 600 --output-on-failure \
    --no-label-summary "${@:2}"
}
