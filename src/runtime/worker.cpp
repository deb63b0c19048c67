// The program braid-worker, which a library starts that compiles in several processes
// (WorldOptions::compile_processes): it answers requests on its standard input.
#include <unistd.h>

#include "runtime/serve_requests.h"

int main() { return braid_serve_requests(STDIN_FILENO); }
