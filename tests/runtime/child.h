#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace braid {

/// Runs `body` in a forked child, which exits with what it returns.
template <class Body>
pid_t start_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

/// What a child exits with; -1 when something else ends it.
inline int exit_status(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Runs `body` in a forked child and returns what it returns.
template <class Body>
int in_child(Body body) {
  return exit_status(start_child(body));
}

}  // namespace braid
