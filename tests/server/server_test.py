"""braid-server with a small model of random weights, over HTTP. The arguments are the server and the
command."""

import collections
import concurrent.futures
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import braid
from braid import safetensors

BRAID, SERVER = sys.argv.pop(), sys.argv.pop()
VOCABULARY, HIDDEN, WIDTH, PAGE, CONTEXT, PAGES, RANKS = 128, 32, 16, 16, 4096, 40, 2
MAX_TOKENS, MAX_SEQUENCES = 48, 8
DEADLINE = 30
WORDS = ["\u2581the", "\u2581cat", "\u2581sat", "\u2581", "a", "c", "t", "s", "h", "e", "\u20ac", "<|", "|>"]
TEXT_VOCABULARY = 3 + 256 + len(WORDS) + 1


def write_tokenizer(path):
    """A tokenizer.model of SentencePiece: bytes, letters and a few words. Pieces are messages of
    protobuf, written by hand; the token of byte b is b + 3."""

    def field(number, content):
        return bytes([8 * number + 2, len(content)]) + content

    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    pieces += [(WORDS[i], -float(i + 1), 1) for i in range(len(WORDS))]
    model = b"".join(field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score)
                              + bytes([0x18, kind])) for text, score, kind in pieces)  # fmt: skip
    # A unigram model with bytes for what it does not know; no normalization of spaces.
    model += field(2, b"\x18\x01" + b"\x98\x02\x01") + field(3, field(1, b"identity") + b"\x20\x00")
    path.write_bytes(model)


def write_model(folder, vocabulary=VOCABULARY):
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
    x = g.node("embedding", [weight("table", [vocabulary, HIDDEN], 1), "tokens"])
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
    g.output(g.node("mm", [x, weight("head", [HIDDEN, vocabulary], 0.4)], "logits"))

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
        "braid_model": 1, "graph": "graph.json", "ranks": RANKS, "vocabulary": vocabulary,
        "weights": {"shared": "shared.safetensors", "ranks": files}, "max_tokens": MAX_TOKENS,
        "max_sequences": MAX_SEQUENCES, "context": CONTEXT, "page_size": PAGE, "pages": PAGES,
        "caches": ["l0_keys", "l0_values"], "end_of_text": []}))  # fmt: skip


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Running:
    """A server that runs, and what clients do with it. It ends with the test, however that ends, and
    writes into a file: who waits for the test's output never waits for the server."""

    def __init__(self, folder, *options, launcher=()):
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*launcher, SERVER, str(folder), "--device", "cpu", "--port", "0", *options],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent)  # fmt: skip
        end = time.monotonic() + DEADLINE
        while not (ready := re.search(r"http://127\.0\.0\.1:(\d+), ready", self.printed())):
            if self.process.poll() is not None or time.monotonic() > end:
                printed = self.printed()
                self.close()
                raise AssertionError(f"the server does not answer: {printed}")
            time.sleep(0.01)
        self.port = int(ready[1])

    def printed(self):
        self.output.seek(0)
        return self.output.read()

    def begin(self, method, path, body=None):
        """The connection of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        body = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection

    def send(self, method, path, body=None):
        """The connection and the response, of which only the head has been read."""
        connection = self.begin(method, path, body)
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

    def close(self):
        self.process.kill()
        self.process.wait()
        self.output.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE)


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
        cls.addClassCleanup(cls.server.close)

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

    def test_clients_that_come_at_once_wait_for_it(self):
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            clients = [socket.create_connection(("127.0.0.1", self.server.port), 0.5)
                       for _ in range(64)]  # fmt: skip
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)
        for client in clients:
            client.settimeout(DEADLINE)
            client.sendall(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
        for client in clients:
            with client:
                self.assertIn(b" 200 ", client.recv(1 << 12).splitlines()[0])

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

    def usage(self, **body):
        answer = json.loads(self.server.ask("POST", "/v1/completions", body)[1])
        return answer["choices"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    def test_prompts_that_begin_alike_share_pages(self):
        begin, more = prompt(70, 5 * PAGE), {"max_tokens": 40, "seed": 1, "logprobs": 0}
        before = self.server.metrics()["reused_tokens_total"]
        alone, cached = self.usage(prompt=begin + [7, 8], **more)
        self.assertEqual(cached, 0)
        again, cached = self.usage(prompt=begin + [7, 8], **more)
        self.assertEqual((again, cached), (alone, 5 * PAGE))
        self.assertEqual(self.usage(prompt=begin, **more)[1], 4 * PAGE)  # a token is left to compute
        self.assertEqual(self.usage(prompt=begin[: 2 * PAGE] + [0] * 2 * PAGE, **more)[1], 2 * PAGE)
        # What was answered is there as well, but for the last token.
        answer = alone[0]["tokens"]
        whole = begin + [7, 8] + answer
        reused = self.usage(prompt=[*whole, 9], **more)
        self.assertEqual(reused[1], (len(whole) - 1) // PAGE * PAGE)
        self.assertEqual(self.server.metrics()["reused_tokens_total"] - before,
                         (5 + 4 + 2 + (len(whole) - 1) // PAGE) * PAGE)  # fmt: skip
        # Others need the pages, and then it is computed again, with the same bits.
        for i in range(3):
            self.assertEqual(self.usage(prompt=prompt(80 + i, 300), max_tokens=1)[1], 0)
        self.assertEqual(self.usage(prompt=[*whole, 9], **more), (reused[0], 0))

    def test_running_sequences_share_pages(self):
        body = {"prompt": prompt(71, 10 * PAGE), "max_tokens": 100, "temperature": 0, "stream": True}
        before = self.server.metrics()["preemptions_total"]
        alone = self.server.complete(**{**body, "stream": False})["tokens"]
        clients = [self.server.send("POST", "/v1/completions", body) for _ in range(3)]
        # They need 10 pages together and 7 each; apart they would need 51 of the 40 that there are.
        for connection, response in clients:
            *chunks, _ = events(response)
            connection.close()
            tokens = sum((json.loads(chunk)["choices"][0]["tokens"] for chunk in chunks), [])
            self.assertEqual(tokens, alone)
        self.assertEqual(self.server.metrics()["preemptions_total"], before)

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
        ids = "expected token ids, for the folder has no tokenizer"
        for body, message in (
            ("{", "the body is no JSON"),
            (b"\xff\xfe", "the body is no JSON"),
            ("[" * 100000, "the body nests deeper than 16"),
            ([], "the body is no JSON object"),
            ({}, f"prompt: found nothing; {ids}"),
            ({"prompt": "text"}, f"prompt: found string; {ids}"),
            ({"prompt": []}, f"prompt: found nothing; {ids}"),
            ({"prompt": [1, 2.5]}, f"prompt: found number; {ids}"),
            ({"prompt": [[1], [2]]}, f"prompt: found array; {ids}"),
            ({"prompt": [VOCABULARY]}, "found the token 128; expected one from 0 to 127"),
            ({"prompt": [1], "stop": "text"},
             f"stop: found string; {ids}"),
            ({"prompt": [1], "stop": list(range(17))}, "stop: found 17; expected up to 16"),
            ({"prompt": [1], "max_tokens": 0}, "max_tokens: found 0; expected a number from 1 on"),
            ({"prompt": [1], "max_tokens": 2**64 - 1},
             "max_tokens: found 18446744073709551615; expected a number from 1 on"),
            ({"prompt": [1], "top_p": 0}, "top_p: found 0; expected a number above 0, at most 1"),
            ({"prompt": [1], "temperature": "hot"},
             'temperature: found "hot"; expected a number from 0 to 100'),
            ({"prompt": [1], "stream": 1}, "stream: found 1; expected true or false"),
            ({"prompt": [1], "n": 2}, "n: found 2; expected 1"),
            ({"prompt": [1], "best_of": 2}, "best_of: this server does not know it"),
            ({"prompt": [1], "stop": [VOCABULARY]}, "found the token 128; expected one from 0 to 127"),
            ({"prompt": [1] * 500, "max_tokens": 141},
             "found 500 tokens and 141 more; expected at most 640 together"),
        ):  # fmt: skip
            with self.subTest(message):
                response, text = self.server.ask("POST", "/v1/completions", body)
                self.assertEqual(response.status, 400)
                self.assertEqual(json.loads(text)["error"]["message"], message)


class Text(unittest.TestCase):
    """With a tokenizer."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        folder = pathlib.Path(cls.directory.name)
        write_model(folder, TEXT_VOCABULARY)
        write_tokenizer(folder / "tokenizer.model")
        added = {str(TEXT_VOCABULARY - 1): {"content": "<|end|>", "special": True}}
        (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["chat"] = {"trim": True, "between": [
            ["", "user", "<s>a<|end|>"], ["", "system", "<s>s<|end|>"], ["system", "user", "<|end|>"],
            ["user", "assistant", "t"], ["assistant", "user", "h"], ["user", "", "e<|end|>"]]}  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(manifest))
        cls.server = Running(folder)
        cls.addClassCleanup(cls.server.close)
        cls.word = {word: 259 + i for i, word in enumerate(WORDS)}

    def tearDown(self):
        self.server.wait_until_idle()

    def text_of(self, tokens):
        """Their bytes."""
        names = [b""] * 3 + [bytes([byte]) for byte in range(256)]
        names += [word.replace("\u2581", " ").encode() for word in WORDS] + [b""]
        return b"".join(names[token] for token in tokens)

    def answer(self, prompt, **more):
        return self.server.complete(**{"prompt": prompt, "max_tokens": 60, "seed": 3, **more})

    def test_prompts_are_texts(self):
        w = self.word
        for text, tokens in (
            ("the cat", [1, w["\u2581the"], w["\u2581cat"]]),
            ("the\u00e9", [1, w["\u2581the"], 0xc3 + 3, 0xa9 + 3]),
            ("the<|end|>cat", [1, w["\u2581the"], TEXT_VOCABULARY - 1, w["c"], w["a"], w["t"]]),
            ("</s> cat", [1, 2, w["\u2581cat"]]),
            ("", [1]),
        ):  # fmt: skip
            with self.subTest(text):
                expected = self.answer(tokens, max_tokens=8)
                self.assertEqual(self.answer(text, max_tokens=8), expected)
                self.assertEqual(self.answer([text], max_tokens=8), expected)
                self.assertNotEqual(self.answer(tokens[1:] or [3], max_tokens=8), expected)

    def test_answers_are_texts_of_whole_characters(self):
        body = {"prompt": "the cat", "max_tokens": 60, "seed": 3, "logprobs": 0}
        whole = self.server.complete(**body)
        text = self.text_of(whole["tokens"]).decode(errors="replace")
        self.assertEqual(whole["text"], text)
        self.assertTrue(any(len(c.encode()) == 2 for c in text))  # else the next lines show nothing
        self.assertEqual(whole["logprobs"]["tokens"],
                         [self.text_of([t]).decode(errors="replace") for t in whole["tokens"]])  # fmt: skip
        connection, response = self.server.send("POST", "/v1/completions", {**body, "stream": True})
        *chunks, _ = events(response)
        connection.close()
        choices = [json.loads(chunk)["choices"][0] for chunk in chunks]
        self.assertEqual("".join(c["text"] for c in choices), text)
        self.assertEqual(sum((c["tokens"] for c in choices), []), whole["tokens"])

    def test_stops_in_front_of_a_text(self):
        whole = self.answer("the cat")
        tokens, cancelled = whole["tokens"], self.server.metrics()["requests_cancelled_total"]
        # Across the border of two tokens.
        at = next(i for i in range(8, 50) if self.text_of(tokens[i : i + 2]).isalpha())
        text = self.text_of(tokens[at : at + 2]).decode()
        for stop in (text, [text], ["\u20ac\u20ac", text, tokens[at + 5]]):
            with self.subTest(stop):
                answer = self.answer("the cat", stop=stop)
                self.assertEqual(answer["tokens"], tokens[: at + 2])
                self.assertEqual(answer["text"], whole["text"].split(text)[0])
                self.assertEqual(answer["finish_reason"], "stop")
        self.assertEqual(self.answer("the cat", stop=[text, tokens[5]])["tokens"], tokens[:5])
        self.assertEqual(self.server.metrics()["requests_cancelled_total"], cancelled)

    def chat(self, *messages, **more):
        names = ("role", "content")
        return {"messages": [dict(zip(names, m)) for m in messages], "temperature": 0, **more}

    def test_messages_become_a_prompt(self):
        w, end = self.word, TEXT_VOCABULARY - 1
        for messages, tokens in (
            ([("user", " cat\n")], [1, w["a"], end, w["c"], w["a"], w["t"], w["e"], end]),
            ([("system", "a"), ("user", [{"type": "text", "text": "c"}, {"type": "text", "text": "t"}])],
             [1, w["s"], end, w["a"], end, w["c"], w["t"], w["e"], end]),
            ([("user", "a"), ("assistant", "a"), ("user", "a")],
             [1, w["a"], end, w["a"], w["t"], w["a"], w["h"], w["a"], w["e"], end]),
        ):  # fmt: skip
            with self.subTest(messages):
                expected = self.server.complete(prompt=tokens, temperature=0, max_tokens=8)
                body = self.chat(*messages, max_completion_tokens=8)
                response, text = self.server.ask("POST", "/v1/chat/completions", body)
                answer = json.loads(text)
                self.assertEqual((response.status, answer["object"]), (200, "chat.completion"))
                (choice,) = answer["choices"]
                self.assertEqual(choice, {
                    "index": 0, "tokens": expected["tokens"], "logprobs": None, "finish_reason": "length",
                    "message": {"role": "assistant", "content": expected["text"]}})  # fmt: skip
                self.assertEqual([answer["usage"][f"{kind}_tokens"] for kind in ("prompt", "completion")],
                                 [len(tokens), 8])  # fmt: skip

    def test_a_chat_streams_deltas(self):
        body = self.chat(("user", "the cat"), max_tokens=20, logprobs=True)
        whole = json.loads(self.server.ask("POST", "/v1/chat/completions", body)[1])
        (choice,) = whole["choices"]
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        connection, response = self.server.send("POST", "/v1/chat/completions", body)
        *chunks, usage, done = events(response)
        connection.close()
        self.assertEqual(done, "[DONE]")
        chunks, usage = [json.loads(chunk) for chunk in chunks], json.loads(usage)
        self.assertEqual({chunk["object"] for chunk in (*chunks, usage)}, {"chat.completion.chunk"})
        self.assertEqual((usage["choices"], usage["usage"]["total_tokens"]),
                         ([], whole["usage"]["total_tokens"]))  # fmt: skip
        choices = [chunk["choices"][0] for chunk in chunks]
        self.assertEqual(choices[0]["delta"]["role"], "assistant")
        self.assertNotIn("role", choices[1]["delta"])
        self.assertEqual("".join(c["delta"]["content"] for c in choices), choice["message"]["content"])
        self.assertEqual([c["finish_reason"] for c in choices], [None] * (len(choices) - 1) + ["length"])
        content = choice["logprobs"]["content"]
        self.assertEqual(sum((c["logprobs"]["content"] for c in choices), []), content)
        self.assertEqual([bytes(each["bytes"]) for each in content],
                         [each["token"].encode() if "\ufffd" not in each["token"]
                          else self.text_of([token]) for token, each in zip(choice["tokens"], content)])  # fmt: skip
        self.assertTrue(all(each["logprob"] <= 0 for each in content))

    def test_a_chat_goes_on_as_long_as_there_is_room(self):
        answer = self.server.ask("POST", "/v1/chat/completions", self.chat(("user", 550 * "a")))[1]
        self.assertEqual(json.loads(answer)["usage"]["total_tokens"], PAGES * PAGE)

    def test_refuses_messages_that_the_template_lacks(self):
        way = "messages: the model's chat template has no way from "
        form = "messages: expected an array of objects with role and content, which is text"
        for messages, message in (
            ([], way + "the begin to the answer"),
            ([{"role": "tool", "content": "a"}], way + "the begin to a message of tool"),
            ([{"role": "user"}], form),
            ([{"role": "user", "content": [{"type": "image"}]}], form),
            ("text", form),
        ):  # fmt: skip
            with self.subTest(message):
                response, text = self.server.ask("POST", "/v1/chat/completions", {"messages": messages})
                self.assertEqual((response.status, json.loads(text)["error"]["message"]), (400, message))

    def test_refuses_what_is_no_text(self):
        for key, value, message in (
            ("prompt", None, "prompt: found nothing; expected one text, or token ids"),
            ("prompt", ["a", "b"], "prompt: found string; expected one text, or token ids"),
            ("stop", "", "stop: found string; expected one text, or token ids"),
            ("stop", [1.5], "stop: found number; expected one text, or token ids"),
        ):  # fmt: skip
            response, text = self.server.ask("POST", "/v1/completions", {"prompt": "a", key: value})
            self.assertEqual((response.status, json.loads(text)["error"]["message"]), (400, message))


    def test_refuses_what_nests_deeply(self):
        value = "prompt"
        for _ in range(200):
            value = [value]
        for key in ("prompt", "stop", "seed", "user"):
            body = {"prompt": "a", key: value}
            response, text = self.server.ask("POST", "/v1/completions", body)
            message = "the body nests deeper than 16"
            self.assertEqual((response.status, json.loads(text)["error"]["message"]), (400, message))
        long = self.server.ask("POST", "/v1/completions", {"prompt": "a", "seed": 1000 * "a"})[1]
        self.assertLess(len(long), 200)


class Others(unittest.TestCase):
    """What needs a server of its own."""

    def start(self, folder, *options):
        write_model(folder)
        server = Running(folder, *options)
        self.addCleanup(server.close)
        return server

    def test_too_many_come_back_later_and_clients_that_go_cost_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            server = self.start(pathlib.Path(directory), "--pages", "300")
            body = {"prompt": [1] * 96, "max_tokens": 4000}
            clients = [server.begin("POST", "/v1/completions", {**body, "stream": i % 2 == 0})
                       for i in range(64)]  # fmt: skip
            server.wait_until(lambda m: m["requests_total"] == 64)
            response, text = server.ask("POST", "/v1/completions", body)
            self.assertEqual((response.status, response.getheader("Retry-After")), (503, "1"))
            self.assertEqual(json.loads(text)["error"]["type"], "server_error")
            self.assertEqual(server.ask("GET", "/health")[0].status, 200)
            self.assertGreater(server.metrics()["waiting"], 0)
            for connection in clients:
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

    def test_clients_that_never_finish_a_request_do_not_keep_it(self):
        with tempfile.TemporaryDirectory() as directory:
            server = self.start(pathlib.Path(directory))
            with socket.create_connection(("127.0.0.1", server.port)) as slow:
                slow.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
                server.process.send_signal(signal.SIGTERM)
                end = time.monotonic() + DEADLINE
                while server.process.poll() is None and time.monotonic() < end:
                    with contextlib.suppress(OSError):
                        slow.sendall(b" ")
                    time.sleep(0.1)
            self.assertEqual(server.process.poll(), 0)

    def test_memory_gives_the_cache_its_pages(self):
        with tempfile.TemporaryDirectory() as directory:
            folder, pages = pathlib.Path(directory), []
            for size in ("4M", "5M"):
                server = self.start(folder, "--memory", size)
                pages.append(server.metrics()["pages"])
                self.assertEqual(server.stop(), 0)
            # Keys and values of a token are 64 bytes each on a rank.
            self.assertEqual(pages[1] - pages[0], 2**20 / (PAGE * WIDTH * 4 * 2))
            self.assertGreater(pages[0], 0)
            done = subprocess.run([SERVER, folder, "--device", "cpu", "--memory", "10k"],
                                  capture_output=True, text=True, timeout=DEADLINE)  # fmt: skip
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "^braid-server: error: memory: found 10240 bytes; expected "
                             r"\d+ or more, which is a cache of one page\n$")  # fmt: skip

    def test_says_why_it_has_no_text(self):
        for name, why in (
            ("tokenizer.model", "tokenizer.model is none of SentencePiece"),
            ("tokenizer.json", "tokenizer.json is none of a tokenizer"),
        ):  # fmt: skip
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                (pathlib.Path(directory) / name).write_text("{}")
                server = self.start(pathlib.Path(directory))
                self.assertIn(f"it takes token ids, no text: {why}\n", server.printed())
                text = server.ask("POST", "/v1/completions", {"prompt": "text"})[1]
                self.assertEqual(json.loads(text)["error"]["message"],
                                 f"prompt: found string; expected token ids, for {why}")  # fmt: skip
                text = server.ask("POST", "/v1/chat/completions", {"messages": []})[1]
                self.assertEqual(json.loads(text)["error"]["message"],
                                 f"messages: {why}; /v1/completions takes token ids")  # fmt: skip
                self.assertEqual(server.stop(), 0)

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


class Processes(unittest.TestCase):
    """With a process of each rank."""

    def start(self, *options):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        write_model(self.folder)
        launcher = (BRAID, "launch", "--nproc", str(RANKS), "--")
        server = Running(self.folder, *options, launcher=launcher)
        self.addCleanup(server.close)
        return server

    def rank(self, server, number):
        """Its process."""
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                if f"\nPPid:\t{server.process.pid}\n" in status.read_text():
                    variables = status.with_name("environ").read_bytes().split(b"\0")
                    if f"RANK={number}".encode() in variables:
                        return int(status.parent.name)
        raise AssertionError(f"there is no rank {number}")

    def answers(self, server):
        # As above.
        def answer(i):
            return server.complete(prompt=prompt(i, 1 + 23 * i % 150), max_tokens=40 + 3 * i, seed=i,
                                   temperature=0 if i % 2 else 0.8, logprobs=0)  # fmt: skip

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            return list(pool.map(answer, range(16)))

    def test_answers_are_those_of_threads_and_sigterm_to_the_launcher_drains(self):
        server = self.start("--pages", "100")
        there = self.answers(server)
        here = Running(self.folder, "--pages", "100")
        self.addCleanup(here.close)
        self.assertEqual(there, self.answers(here))
        self.assertEqual(here.stop(), 0)
        self.drains(server, server.process.pid)

    def test_sigterm_to_rank_0_drains(self):
        server = self.start("--pages", "100")
        os.kill(self.rank(server, 1), signal.SIGTERM)  # which follows, and does not end by itself
        self.drains(server, self.rank(server, 0))

    def drains(self, server, process):
        body = {"prompt": [1], "max_tokens": 1500, "stream": True}
        connection, response = server.send("POST", "/v1/completions", body)
        os.kill(process, signal.SIGTERM)
        end = time.monotonic() + DEADLINE
        while server.ask("GET", "/health")[0].status != 503:
            self.assertLess(time.monotonic(), end)
        text = server.ask("POST", "/v1/completions", body)[1]
        self.assertEqual(json.loads(text)["error"]["message"], "the server ends")
        *chunks, done = events(response)
        connection.close()
        self.assertEqual(done, "[DONE]")
        self.assertEqual(sum(len(json.loads(c)["choices"][0]["tokens"]) for c in chunks), 1500)
        self.assertEqual(server.process.wait(DEADLINE), 0, server.printed())
        self.assertNotIn("error", server.printed())

    def ends_after_the_loss(self, server, begin):
        self.assertEqual(server.process.wait(DEADLINE), 128 + signal.SIGKILL)
        self.assertIn("braid-server: error: rank 1 is gone\n", server.printed())
        self.assertLess(time.monotonic() - begin, 10)

    def test_a_rank_that_is_killed_is_named_to_all_clients(self):
        server = self.start("--pages", "2000")
        body = {"prompt": [1], "max_tokens": 4000}
        connection, stream = server.send("POST", "/v1/completions", {**body, "stream": True})
        pending = [server.begin("POST", "/v1/completions", {**body, "stream": i % 2 == 0})
                   for i in range(3 * MAX_SEQUENCES)]  # fmt: skip
        server.wait_until(lambda m: m["requests_total"] == len(pending) + 1 and m["waiting"] > 0)
        begin = time.monotonic()
        os.kill(self.rank(server, 1), signal.SIGKILL)
        responses = [(client, client.getresponse()) for client in pending]
        *_, last = events(stream)
        connection.close()
        self.assertEqual(json.loads(last)["error"]["message"], "rank 1 is gone")
        statuses = collections.Counter()
        for i, (client, response) in enumerate(responses):
            statuses[response.status, i % 2 == 0] += 1
            *_, text = response.read().decode().splitlines() if response.status == 503 else events(response)
            client.close()
            self.assertEqual(json.loads(text)["error"]["message"], "rank 1 is gone")
        # A stream that has begun has a status.
        self.assertEqual(set(statuses) - {(200, True)}, {(503, True), (503, False)})
        self.ends_after_the_loss(server, begin)

    def test_a_rank_that_is_killed_while_nothing_runs(self):
        server = self.start()
        begin = time.monotonic()
        os.kill(self.rank(server, 1), signal.SIGKILL)
        while (health := server.ask("GET", "/health"))[0].status == 200:
            self.assertLess(time.monotonic(), begin + DEADLINE)
        self.assertEqual((health[0].status, json.loads(health[1])), (503, {"status": "rank 1 is gone"}))
        response, text = server.ask("POST", "/v1/completions", {"prompt": [1]})
        self.assertEqual((response.status, json.loads(text)["error"]["message"]), (503, "rank 1 is gone"))
        self.ends_after_the_loss(server, begin)

    def test_nothing_is_left_without_rank_0(self):
        server = self.start()
        os.kill(self.rank(server, 0), signal.SIGKILL)
        self.assertEqual(server.process.wait(DEADLINE), 128 + signal.SIGKILL)
        self.assertIn("braid-server: error: rendezvous: rank 0 is gone\n", server.printed())

    def test_a_model_of_another_number_of_ranks_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            write_model(pathlib.Path(directory))
            command = [BRAID, "launch", "--nproc", "3", "--", SERVER, directory, "--device", "cpu"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"braid-server: error: {directory}: is a model of 2 ranks; found 3 of all "
                          "processes\n", done.stderr)  # fmt: skip


class Load(unittest.TestCase):
    """Clients that come and go, for BRAID_LOAD_SECONDS."""

    # More clients than requests at once; each answer is one of a few that are known.
    CLIENTS, PAGES = 72, 120
    LENGTHS = (1, 2, 5, 16, 17, 31, 64, 100, 145, 210, 333, 480, 512, 700, 901, 1024)

    def request(self, i):
        return {"prompt": prompt(i, self.LENGTHS[i]), "max_tokens": 1 + 7 * i % 40, "seed": i,
                "temperature": i % 3 / 2, "logprobs": 0}  # fmt: skip

    def client(self, number, end):
        """Counts what became of its requests."""
        draw, counts = random.Random(number), collections.Counter()
        while time.monotonic() < end:
            i, stream = draw.randrange(len(self.LENGTHS)), draw.random() < 0.5
            cancelled = draw.random() < 0.2
            body = {**self.request(i), "stream": stream or cancelled}
            if cancelled:  # so that it is not over when its client goes
                body["max_tokens"] = 400
            connection, response = self.server.send("POST", "/v1/completions", body)
            with contextlib.closing(connection), contextlib.closing(response):
                if response.status == 503:
                    counts["refused"] += 1
                    time.sleep(0.05)
                    continue
                self.assertEqual(response.status, 200)
                counts["cancelled" if cancelled else "answered"] += 1
                if cancelled:
                    time.sleep(draw.random() * 0.2)
                    continue
                texts = events(response)[:-1] if stream else [response.read()]
            choices = [json.loads(text)["choices"][0] for text in texts]
            tokens = sum((c["tokens"] for c in choices), [])
            logprobs = sum((c["logprobs"]["token_logprobs"] for c in choices), [])
            self.assertEqual((tokens, logprobs), self.answers[i])
        return counts

    def memory(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024

    def test_holds(self):
        seconds = float(os.environ.get("BRAID_LOAD_SECONDS", "2"))
        with tempfile.TemporaryDirectory() as directory:
            write_model(pathlib.Path(directory))
            self.server = Running(directory, "--pages", str(self.PAGES))
            self.addCleanup(self.server.close)
            choices = [self.server.complete(**self.request(i)) for i in range(len(self.LENGTHS))]
            self.answers = [(c["tokens"], c["logprobs"]["token_logprobs"]) for c in choices]
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(self.CLIENTS) as pool:
                clients = [pool.submit(self.client, number, begin + seconds)
                           for number in range(self.CLIENTS)]  # fmt: skip
                time.sleep(seconds / 3)
                warm = self.memory()
                counts = sum((client.result() for client in clients), collections.Counter())
            self.server.wait_until_idle(pages=self.PAGES)
            metrics, memory = self.server.metrics(), self.memory()
            print(f"{dict(counts)}, {metrics['tokens_total']} tokens, "
                  f"{metrics['reused_tokens_total']} reused, {metrics['preemptions_total']} preemptions, "
                  f"{warm:.0f} MB warm, {memory:.0f} MB at the end")  # fmt: skip
            self.assertEqual(metrics["requests_refused_total"], counts["refused"])
            self.assertEqual(metrics["requests_failed_total"], 0)
            self.assertEqual(metrics["requests_total"],
                             len(self.LENGTHS) + counts["answered"] + counts["cancelled"])  # fmt: skip
            self.assertLessEqual(metrics["requests_cancelled_total"], counts["cancelled"])
            for what in (counts["refused"], counts["answered"], metrics["requests_cancelled_total"],
                         metrics["reused_tokens_total"]):  # fmt: skip
                self.assertGreater(what, 0)
            if seconds >= 60:
                self.assertLess(memory, 1.05 * warm + 4)
            self.assertEqual(self.server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
