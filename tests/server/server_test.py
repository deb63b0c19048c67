"""braid-server with a small model of random weights, over HTTP. The one argument is the server."""

import concurrent.futures
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import braid
from braid import safetensors

SERVER = sys.argv.pop()
VOCABULARY, HIDDEN, WIDTH, PAGE, CONTEXT, PAGES, RANKS = 128, 32, 16, 16, 4096, 40, 2
MAX_TOKENS, MAX_SEQUENCES = 48, 8
DEADLINE = 30


def write_model(folder):
    """A decoder of one layer on two ranks, in the layout of braid.export."""
    g = braid.Graph("tiny")
    rows = g.symbol("T", max=MAX_TOKENS, buckets=[MAX_SEQUENCES])
    sequences = g.symbol("S", max=MAX_SEQUENCES)
    tp = g.group("tp", RANKS)
    room = CONTEXT // PAGE
    for name, shape in (("tokens", [rows]), ("positions", [rows]), ("slots", [rows]),
                        ("page_table", [sequences, room]), ("lengths", [sequences]),
                        ("starts", [f"{sequences}+1"])):  # fmt: skip
        g.input(name, "i32", shape)
    keys, values = (g.input(f"l0_{kind}", "f32", [PAGES, PAGE, 1, WIDTH], "state", per_rank=True)
                    for kind in ("keys", "values"))  # fmt: skip
    random = np.random.default_rng(7)
    shared, own = {}, [{} for _ in range(RANKS)]

    def weight(name, shape, scale, per_rank=False):
        g.input(name, "f32", shape, "parameter", per_rank=per_rank)
        for file in own if per_rank else [shared]:
            file[name] = (scale * random.standard_normal(shape)).astype(np.float32)
        return name

    angles = np.arange(CONTEXT)[:, None] / 100 ** (np.arange(WIDTH // 2) / (WIDTH // 2))
    rotations = []
    for name, table in (("cos", np.cos(angles)), ("sin", np.sin(angles))):
        g.input(name, "f32", list(table.shape), "parameter")
        shared[name] = table.astype(np.float32)
        own_rows = g.node("embedding", [name, "positions"])
        rotations.append(g.node("view", [own_rows], shape=[rows, 1, WIDTH // 2]))
    x = g.node("embedding", [weight("table", [VOCABULARY, HIDDEN], 1), "tokens"])
    qkv = g.node("mm", [x, weight("qkv", [HIDDEN, 4 * WIDTH], 0.4, per_rank=True)])
    qkv = g.node("view", [qkv], shape=[rows, 4, WIDTH])
    parts = g.node("split", [qkv], split_size=[2, 1, 1], dim=1)
    q, k = (g.node("rotary_embedding", [f"{parts}:{i}", *rotations]) for i in range(2))
    g.node("append_kv", [keys, values, k, f"{parts}:2", "slots"])
    mixed = g.node("paged_attention", [q, keys, values, "page_table", "lengths", "starts"])
    mixed = g.node("view", [mixed], shape=[rows, 2 * WIDTH])
    partial = g.node("mm", [mixed, weight("o", [2 * WIDTH, HIDDEN], 0.4, per_rank=True)])
    partial = g.node("all_reduce", [partial], reduce_op="sum", group=tp)
    x = g.node("add", [g.node("wait_tensor", [partial]), x])
    ends = g.node("slice", ["starts"], dim=0, start=1, end=f"{sequences}+1")
    x = g.node("embedding", [x, g.node("sub", [ends, 1])])
    g.output(g.node("mm", [x, weight("head", [HIDDEN, VOCABULARY], 0.4)], "logits"))

    def write(name, tensors):
        safetensors.write(folder / name, [
            safetensors.Entry(of, "f32", list(tensor.shape), lambda tensor=tensor: tensor)
            for of, tensor in tensors.items()])  # fmt: skip

    write("shared.safetensors", shared)
    files = [f"rank{rank}.safetensors" for rank in range(RANKS)]
    for name, tensors in zip(files, own):
        write(name, tensors)
    (folder / "graph.json").write_text(g.to_json())
    (folder / "manifest.json").write_text(json.dumps({
        "braid_model": 1, "graph": "graph.json", "ranks": RANKS, "vocabulary": VOCABULARY,
        "weights": {"shared": "shared.safetensors", "ranks": files}, "max_tokens": MAX_TOKENS,
        "max_sequences": MAX_SEQUENCES, "context": CONTEXT, "page_size": PAGE, "pages": PAGES,
        "caches": ["l0_keys", "l0_values"], "end_of_text": []}))  # fmt: skip


class Running:
    """A server that runs, and what clients do with it."""

    def __init__(self, folder, *options):
        self.process = subprocess.Popen(
            [SERVER, str(folder), "--device", "cpu", "--port", "0", *options],
            stdout=subprocess.PIPE, text=True)  # fmt: skip
        line = self.process.stdout.readline()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", line)[1])

    def send(self, method, path, body=None):
        """The connection and the response, of which only the head has been read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        body = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection, connection.getresponse()

    def ask(self, method, path, body=None):
        connection, response = self.send(method, path, body)
        text = response.read().decode()
        connection.close()
        return response, text

    def complete(self, **body):
        """The only choice of a completion."""
        response, text = self.ask("POST", "/v1/completions", body)
        if response.status != 200:
            raise AssertionError(f"{response.status}: {text}")
        return json.loads(text)["choices"][0]

    def metrics(self):
        lines = self.ask("GET", "/metrics")[1].splitlines()
        return {name.removeprefix("braid_"): int(value)
                for name, value in (line.split() for line in lines if line[0] != "#")}  # fmt: skip

    def wait_until(self, holds):
        end = time.monotonic() + DEADLINE
        while not holds(metrics := self.metrics()):
            if time.monotonic() > end:
                raise AssertionError(f"never came true; at the end {metrics}")
            time.sleep(0.02)

    def wait_until_idle(self, pages=PAGES):
        """Until all pages are free: none is lost."""
        self.wait_until(lambda m: m["running"] == m["waiting"] == 0 and m["pages_free"] == pages)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(DEADLINE)
        self.process.stdout.close()
        return code


def events(response):
    return [line[len("data: "):] for line in response.read().decode().splitlines() if line]


def prompt(number, length):
    return [(7 * number + 13 * i + i * i) % VOCABULARY for i in range(length)]


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.folder = pathlib.Path(cls.directory.name) / "tiny"
        cls.folder.mkdir()
        write_model(cls.folder)
        cls.server = Running(cls.folder)
        cls.addClassCleanup(cls.server.process.kill)

    def tearDown(self):
        self.server.wait_until_idle()

    def test_tells_of_itself(self):
        response, text = self.server.ask("GET", "/health")
        self.assertEqual((response.status, json.loads(text)), (200, {"status": "ok"}))
        models = json.loads(self.server.ask("GET", "/v1/models")[1])
        self.assertEqual([model["id"] for model in models["data"]], ["tiny"])
        response, text = self.server.ask("GET", "/v1/nothing")
        self.assertEqual(response.status, 404)
        self.assertEqual(json.loads(text)["error"]["message"], "there is no GET /v1/nothing")

    def test_its_port_is_its_own(self):
        port = self.server.port
        done = subprocess.run([SERVER, self.folder, "--device", "cpu", "--port", str(port)],
                              capture_output=True, text=True, timeout=DEADLINE)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr),
                         (1, f"braid-server: error: 127.0.0.1:{port}: is not free\n"))  # fmt: skip

    def test_greedy_tokens_are_those_of_the_model(self):
        expected = braid.Model(self.folder, "cpu").generate([prompt(1, 20)], 24)[0]
        answer = self.server.complete(prompt=[prompt(1, 20)], max_tokens=24, temperature=0)
        self.assertEqual(answer["tokens"], expected)
        self.assertEqual(answer["text"].split(), [str(token) for token in expected])
        self.assertEqual(answer["finish_reason"], "length")
        self.assertGreater(len(set(expected)), 4)  # else it shows nothing

    def test_a_request_gets_the_same_alone_and_among_others(self):
        # Prompts longer than a run; more sequences than one takes; more pages than there are.
        def request(i):
            return {"prompt": prompt(i, 1 + 23 * i % 150), "max_tokens": 40 + 3 * i, "seed": i,
                    "temperature": 0 if i % 2 else 0.8, "top_p": 0.9, "logprobs": 0}  # fmt: skip

        before = self.server.metrics()
        alone = [self.server.complete(**request(i)) for i in range(16)]
        self.assertEqual(self.server.metrics()["preemptions_total"], before["preemptions_total"])
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            among = list(pool.map(lambda i: self.server.complete(**request(i)), range(16)))
        self.assertEqual(alone, among)
        self.assertEqual([len(a["logprobs"]["token_logprobs"]) for a in alone],
                         [40 + 3 * i for i in range(16)])  # fmt: skip
        after = self.server.metrics()
        self.assertGreater(after["preemptions_total"], before["preemptions_total"])
        # Some ran together.
        self.assertLess(after["steps_total"] - before["steps_total"],
                        1.7 * sum(40 + 3 * i for i in range(16)))  # fmt: skip

    def test_seeds_decide_what_is_sampled(self):
        def tokens(**more):
            return self.server.complete(prompt=[3, 4], max_tokens=16, **more)["tokens"]

        greedy = tokens(temperature=0)
        self.assertEqual(tokens(seed=1), tokens(seed=1))
        self.assertNotEqual(tokens(seed=1), tokens(seed=2))
        self.assertNotEqual(tokens(seed=1), greedy)
        self.assertEqual(tokens(seed=1, top_p=1e-6), greedy)

    def test_stops_in_front_of_a_stop_token(self):
        whole = self.server.complete(prompt=[5], max_tokens=16, temperature=0)["tokens"]
        stop = whole[6]
        answer = self.server.complete(prompt=[5], max_tokens=16, temperature=0, stop=[stop])
        self.assertEqual(answer["tokens"], whole[: whole.index(stop)])
        self.assertEqual(answer["finish_reason"], "stop")

    def test_streams_events(self):
        body = {"prompt": prompt(2, 9), "max_tokens": 12, "temperature": 0}
        expected = self.server.complete(**body)
        connection, response = self.server.send("POST", "/v1/completions", {**body, "stream": True})
        self.assertEqual(response.getheader("Content-Type"), "text/event-stream")
        *chunks, done = events(response)
        connection.close()
        self.assertEqual(done, "[DONE]")
        choices = [json.loads(chunk)["choices"][0] for chunk in chunks]
        self.assertGreater(len(choices), 3)
        self.assertEqual(sum((c["tokens"] for c in choices), []), expected["tokens"])
        self.assertEqual("".join(c["text"] for c in choices), expected["text"])
        self.assertEqual([c["finish_reason"] for c in choices[:-1]], [None] * (len(choices) - 1))
        self.assertEqual(choices[-1]["finish_reason"], "length")

    def test_refuses_malformed_bodies(self):
        for body, message in (
            ("{", "the body is no JSON"),
            (b"\xff\xfe", "the body is no JSON"),
            ("[" * 100000, "the body is no JSON"),
            ([], "the body is no JSON object"),
            ({}, "prompt: expected an array of token ids, for this server has no tokenizer"),
            ({"prompt": "text"},
             "prompt: expected an array of token ids, for this server has no tokenizer"),
            ({"prompt": []},
             "prompt: expected an array of token ids, for this server has no tokenizer"),
            ({"prompt": [1, 2.5]},
             "prompt: found number; expected token ids, for this server has no tokenizer"),
            ({"prompt": [VOCABULARY]}, "found the token 128; expected one from 0 to 127"),
            ({"prompt": [1], "stop": "text"},
             "stop: found string; expected token ids, for this server has no tokenizer"),
            ({"prompt": [1], "max_tokens": 0}, "max_tokens: found 0; expected a number from 1 on"),
            ({"prompt": [1], "max_tokens": 2**64 - 1},
             "max_tokens: found 18446744073709551615; expected a number from 1 on"),
            ({"prompt": [1], "top_p": 0}, "top_p: found 0; expected a number above 0, at most 1"),
            ({"prompt": [1], "temperature": "hot"},
             'temperature: found "hot"; expected a number from 0 to 100'),
            ({"prompt": [1], "stream": 1}, "stream: found 1; expected true or false"),
            ({"prompt": [1], "n": 2}, "n: found 2; expected 1"),
            ({"prompt": [1], "best_of": 2}, "best_of: this server does not know it"),
            ({"prompt": [1] * 500, "max_tokens": 141},
             "found 500 tokens of a prompt and max_tokens 141; expected at most 640 together"),
        ):  # fmt: skip
            with self.subTest(message):
                response, text = self.server.ask("POST", "/v1/completions", body)
                self.assertEqual(response.status, 400)
                self.assertEqual(json.loads(text)["error"]["message"], message)


class Others(unittest.TestCase):
    """What needs a server of its own."""

    def start(self, folder, *options):
        write_model(folder)
        server = Running(folder, *options)
        self.addCleanup(server.process.kill)
        return server

    def test_too_many_come_back_later_and_clients_that_go_cost_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            server = self.start(pathlib.Path(directory), "--pages", "300")
            body = {"prompt": [1] * 96, "max_tokens": 4000}
            clients = [server.send("POST", "/v1/completions", {**body, "stream": i % 2 == 0})
                       for i in range(64)]  # fmt: skip
            self.assertEqual({response.status for _, response in clients}, {200})
            response, text = server.ask("POST", "/v1/completions", body)
            self.assertEqual((response.status, response.getheader("Retry-After")), (503, "1"))
            self.assertEqual(json.loads(text)["error"]["type"], "server_error")
            self.assertEqual(server.ask("GET", "/health")[0].status, 200)
            self.assertGreater(server.metrics()["waiting"], 0)
            for connection, response in clients:
                response.close()
                connection.close()
            server.wait_until_idle(pages=300)
            metrics = server.metrics()
            self.assertEqual(metrics["requests_total"], 64)
            self.assertEqual(metrics["requests_cancelled_total"], 64)
            self.assertEqual(metrics["requests_refused_total"], 1)
            body["max_tokens"] = 4001
            response, text = server.ask("POST", "/v1/completions", body)
            self.assertEqual(response.status, 400)
            self.assertIn("at most 4096 together", text)
            self.assertEqual(server.stop(), 0)

    def test_sigterm_drains(self):
        with tempfile.TemporaryDirectory() as directory:
            server = self.start(pathlib.Path(directory), "--max-tokens", "8", "--pages", "100")
            self.assertEqual(server.metrics()["pages"], 100)
            body = {"prompt": [1], "max_tokens": 1500, "stream": True}
            connection, response = server.send("POST", "/v1/completions", body)
            server.process.send_signal(signal.SIGTERM)
            end = time.monotonic() + DEADLINE
            while server.ask("GET", "/health")[0].status != 503:
                self.assertLess(time.monotonic(), end)
            self.assertEqual(server.ask("POST", "/v1/completions", body)[0].status, 503)
            *chunks, done = events(response)
            connection.close()
            self.assertEqual(done, "[DONE]")
            self.assertEqual(sum(len(json.loads(c)["choices"][0]["tokens"]) for c in chunks), 1500)
            self.assertEqual(server.process.wait(DEADLINE), 0)
            server.process.stdout.close()

    def test_a_folder_that_lacks_something_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            for spoil, message in (
                (lambda: None, "/manifest.json: No such file or directory"),
                (lambda: (folder / "manifest.json").write_text("{}"),
                 "/manifest.json: is not what braid.export writes: [json.exception.out_of_range.403] "
                 "key 'braid_model' not found"),
                (lambda: (write_model(folder), (folder / "rank1.safetensors").unlink()),
                 "/rank1.safetensors: no such file"),
                (lambda: (folder / "rank1.safetensors").write_bytes(
                    (folder / "shared.safetensors").read_bytes()), ": has no weights o of rank 1"),
            ):  # fmt: skip
                spoil()
                done = subprocess.run([SERVER, directory, "--device", "cpu", "--port", "0"],
                                      capture_output=True, text=True, timeout=DEADLINE)  # fmt: skip
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr,
                                 f"braid-server: error: {directory}{message}\n")


if __name__ == "__main__":
    unittest.main()
