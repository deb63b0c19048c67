"""braid-server beside PyTorch's eager generation of the same model on the same cores.

Usage: build/torch/bin/python3 bench/server.py [--clients N] [--tokens N] [--prompt N] [--tp N] [FOLDER]

Needs `scripts/setup.sh soak`, and BRAID_LIBRARY as docs/python.md says; the server is the one of
build/release. FOLDER is a model in the Hub's layout; without one it is a Llama of 4 layers of width 256
and random weights, in f32. Each client asks for one answer, all at the same time. PyTorch gets the
prompts as one batch, which has the same length throughout: it needs no padding and no scheduler.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERVER = ROOT / "build/release/bin/braid-server"


def write_model(folder):
    import torch
    import transformers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=4096, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=1024, eos_token_id=None,
        bos_token_id=None)  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(name, tokens, seconds, first, gaps, **more):
    """Of one way to answer all clients: the time of the whole, and between tokens of a client."""
    return {"name": name, "tokens_per_second": round(tokens / seconds, 1),
            "first_token_ms": round(1e3 * statistics.median(first), 2),
            "token_ms_p50": round(1e3 * percentile(gaps, 0.5), 2),
            "token_ms_p99": round(1e3 * percentile(gaps, 0.99), 2), **more}  # fmt: skip


class Server:
    def __init__(self, folder):
        self.process = subprocess.Popen([SERVER, folder, "--device", "cpu", "--port", "0"],
                                        stdout=subprocess.PIPE, text=True)  # fmt: skip
        line = self.process.stdout.readline()
        ready = re.search(r":(\d+), ready after ([\d.]+) s", line)
        if not ready:
            sys.exit(f"bench: the server does not answer: {line}")
        self.port, self.start = int(ready[1]), float(ready[2])

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def metrics(self):
        connection = self.connect()
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return {name: int(value) for name, value in (line.split() for line in lines if line[0] != "#")}

    def answer(self, prompt, tokens, times):
        """The tokens; `times` gets when each arrived."""
        connection = self.connect()
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True}))  # fmt: skip
        result = []
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            new = json.loads(line[len(b"data: "):])["choices"][0]["tokens"]
            times += [time.perf_counter()] * len(new)
            result += new
        connection.close()
        return result

    def stop(self):
        self.process.terminate()
        self.process.wait()


def serve(folder, prompts, tokens):
    """The report, and the answers."""
    server = Server(folder)
    try:
        for prompt in prompts[:2]:  # plans of few sequences, and the kernels of both buckets
            server.answer(prompt[::-1], 2, [])
        before, answers, times = server.metrics(), [None] * len(prompts), [[] for _ in prompts]

        def client(i):
            answers[i] = server.answer(prompts[i], tokens, times[i])

        threads = [threading.Thread(target=client, args=(i,)) for i in range(len(prompts))]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - begin
        after = server.metrics()
    finally:
        server.stop()
    steps = after["braid_steps_total"] - before["braid_steps_total"]
    host = after["braid_host_microseconds_total"] - before["braid_host_microseconds_total"]
    gaps = [b - a for each in times for a, b in zip(each, each[1:])]
    return report("braid-server", sum(map(len, answers)), seconds, [each[0] - begin for each in times],
                  gaps, start_s=server.start, steps=steps, host_us_per_step=round(host / steps)), answers  # fmt: skip


def generate(folder, prompts, tokens):
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(os.cpu_count())
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

    def decode(tokens):
        times, rows, cache = [], torch.tensor(prompts), None
        chosen = []
        with torch.inference_mode():
            for _ in range(tokens):
                out = model(rows, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, rows = out.past_key_values, out.logits[:, -1:].argmax(-1)
                chosen.append(rows)
                times.append(time.perf_counter())
        return torch.cat(chosen, 1).tolist(), times

    decode(2)
    begin = time.perf_counter()
    answers, times = decode(tokens)
    gaps = [b - a for a, b in zip(times, times[1:])]
    return report("PyTorch", tokens * len(prompts), times[-1] - begin, [times[0] - begin], gaps), answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--prompt", type=int, default=64, help="tokens of each prompt")
    parser.add_argument("--tp", type=int, default=1, help="ranks of the server")
    parser.add_argument("folder", nargs="?")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "python"))
    from braid.export import export

    with tempfile.TemporaryDirectory() as directory:
        folder, out = options.folder or directory + "/model", directory + "/exported"
        if not options.folder:
            write_model(folder)
        export(folder, out, tp=options.tp, max_tokens=512, max_sequences=max(8, options.clients),
               pages=options.clients * (2 + (options.prompt + options.tokens) // 16) + 8)  # fmt: skip
        limit = json.loads(pathlib.Path(out, "manifest.json").read_text())["vocabulary"]
        draw = random.Random(1)
        prompts = [[draw.randrange(3, limit) for _ in range(options.prompt)]
                   for _ in range(options.clients)]  # fmt: skip
        ours, answers = serve(out, prompts, options.tokens)
        eager, expected = generate(folder, prompts, options.tokens)
    same = sum(a == b for mine, theirs in zip(answers, expected) for a, b in zip(mine, theirs))
    print(json.dumps({"clients": options.clients, "prompt": options.prompt, "tokens": options.tokens,
                      "ranks": options.tp, "cores": os.cpu_count(), "results": [ours, eager],
                      "equal_tokens": same / (options.clients * options.tokens)}, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
