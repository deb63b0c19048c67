// The program braid-worker, which the library starts to compile in several processes
// (WorldOptions::compile_processes). It answers requests on its standard input.
#include <unistd.h>

#include "runtime/serve_requests.h"

int main() { return braid_serve_requests(STDIN_FILENO); }
