#!/usr/bin/env bash
# headers.sh COMPILER DIRECTORY: compiles each header of DIRECTORY/braid alone, braid.h as C too.
# They find no other header than these and the standard ones.
set -euo pipefail
compiler=$1 include=$2
for header in "$include"/braid/*.h; do
  if others=$(grep -n '#include' "$header" | grep -Ev '"braid/[a-z0-9_]+\.h"|<[a-z0-9_.]+>'); then
    echo "$header: $others; expected braid's own headers and standard ones"
    exit 1
  fi
  "$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$include" -x c++ - \
    <<<"#include \"braid/$(basename "$header")\""
done
"${CC:-cc}" -std=c99 -Wall -Wextra -Werror -fsyntax-only -I "$include" -x c - <<<'#include "braid/braid.h"'
