// Serves a model that `python -m braid.export` wrote: docs/server.md.
//
//     braid-server OUT --device cpu --port 8000
#include <braid/process.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "engine.h"
#include "http.h"

int main(int argc, char** argv) try {
  std::string folder;
  braid::ModelOptions options;
  std::string host = "127.0.0.1";
  int port = 8000;
  CLI::App app("Answers requests of completions with a model that braid.export wrote");
  app.add_option("FOLDER", folder, "What python -m braid.export wrote")->required();
  app.add_option_function<std::string>(
         "--device",
         [&](const std::string& name) { options.world.device = braid::parse_device_kind(name); },
         "cpu or cuda (default: cuda where there is a GPU)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--host", host, "Address to listen at (default: 127.0.0.1)");
  app.add_option("--port", port, "Port to listen at; 0: any (default: 8000)")
      ->check(CLI::Range(0, 65535));
  app.add_option("--pages", options.pages, "Pages of the cache (default: what the folder says)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--memory", options.memory, "Bytes per rank (8G), which give the cache its pages")
      ->transform(CLI::AsSizeValue(false))
      ->excludes("--pages");
  app.add_option("--max-tokens", options.max_tokens,
                 "The most tokens of one run (default: what the folder says)")
      ->check(CLI::Range(1, 1 << 30));
  CLI11_PARSE(app, argc, argv);

  // Signals are waited for below; threads made from here on never see them.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  // Under a launcher each process has one rank, and that of rank 0 serves.
  const auto process = braid::process_from_environment();
  if (process) options.world.rendezvous = braid::meet_by_socket(process->meeting);
  options.world.compile_in_background = true;
  const auto begin = std::chrono::steady_clock::now();
  auto model = braid::ExportedModel::open(folder, options);
  if (process && process->rank != 0) {
    model.follow();
    return 0;
  }
  const server::Language language{text::Tokenizer(folder), model.chat()};
  server::Engine engine(model);
  const std::string name = std::filesystem::absolute(folder + "/.").parent_path().filename();
  server::HttpServer http(engine, language, name, host, port);
  const std::chrono::duration<double> start = std::chrono::steady_clock::now() - begin;
  std::printf("%s at http://%s:%d, ready after %.1f s\n", name.c_str(), host.c_str(), http.port(),
              start.count());
  const std::string& missing = language.tokenizer.missing();
  if (!missing.empty()) std::printf("it takes token ids, no text: %s\n", missing.c_str());
  std::fflush(stdout);

  const timespec look{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (::sigtimedwait(&signals, nullptr, &look) < 0 && model.lost().empty()) {
  }
  // A second signal ends the process at once.
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  http.drain(model.lost().empty() ? "the server ends" : model.lost());
  const std::string lost = model.lost();
  if (!lost.empty()) {
    std::fprintf(stderr, "braid-server: error: %s\n", lost.c_str());
    std::this_thread::sleep_for(std::chrono::seconds(2));  // who asks meanwhile learns it
  }
  // Clients that are left have sent no whole request, and must not keep the process.
  std::signal(
      SIGALRM, lost.empty() ? [](int) { std::_Exit(0); } : [](int) { std::_Exit(1); });
  ::alarm(2);
  return lost.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "braid-server: error: %s\n", error.what());
  return 1;
}
