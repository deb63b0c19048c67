"""Tries every causal language model of transformers that has a tensor-parallel plan, with small random
weights on two ranks: every_architecture.py [NAME...]. Prints a line for each: the error of its logits
beside PyTorch's, or why there are none."""

import collections
import signal
import sys
import tempfile

import braid
import models
import torch
from transformers import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

RANKS, SECONDS = 2, 90
PROMPTS = [[5, 6, 7], [8], list(range(10, 43))]
# What configs call sizes, with small ones.
SIZES = {
    **models.SIZES,
    "hidden_size": 128, "hidden_dim": 128, "d_model": 128, "n_embd": 128, "rotary_dim": 16,
    "global_head_dim": 16, "intermediate_size": 96, "ffn_hidden_size": 96, "n_layer": 2, "n_layers": 2,
    "num_layers": 2, "n_head": 8, "n_heads": 8, "moe_intermediate_size": 48, "num_experts": 4,
    "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "sliding_window": 20,
    "n_shared_experts": 1, "shared_expert_intermediate_size": 48, "q_lora_rank": 32, "kv_lora_rank": 32,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1, "moe_layer_start_index": 1, "vocab_size_per_layer_input": 160,
    "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 0, "moe_num_experts": 4, "moe_k": 2,
}  # fmt: skip


def make(name):
    """A small model of a type, and None where it has no plan."""
    kind = CONFIG_MAPPING[name]
    config = kind()
    if kind.sub_configs or not getattr(config, "base_model_tp_plan", None):
        return None  # what has a picture or a sound as well has its text model as another type
    known = config.to_dict()
    sizes = {key: value for key, value in SIZES.items() if key in known}
    if "kv_lora_rank" in known:
        sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    for key in ("layer_types", "mlp_layer_types", "no_rope_layers"):
        if isinstance(known.get(key), list):
            sizes[key] = _of_each(known[key])
    return models.build(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[name], kind(**sizes))


def _of_each(entries):
    """Two entries, different ones where there are."""
    kinds = list(dict.fromkeys(entries))
    return [kinds[0], kinds[-1]]


def outcome(name):
    try:
        model = make(name)
    except Exception as error:  # pylint: disable=broad-except
        return "not built", f"{type(error).__name__}: {error}"
    if model is None:
        return None
    try:
        expected = models.last_logits(model, PROMPTS)
    except Exception as error:  # pylint: disable=broad-except
        return "fails in PyTorch", f"{type(error).__name__}: {error}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            braid.export(model, folder, tp=RANKS, max_tokens=64, max_sequences=64, pages=64)
            try:
                exported = braid.Model(folder, device="cpu")
                found = torch.tensor(exported.step(exported.sequences(PROMPTS)))
            except Exception as error:  # pylint: disable=broad-except
                return "does not run", f"{type(error).__name__}: {error}"
    except braid.Error as error:
        return "refused", str(error)
    except Exception as error:  # pylint: disable=broad-except
        return "not traced", f"{type(error).__name__}: {error}"
    error = ((found - expected).norm() / expected.norm()).item()
    return ("equal" if error <= 1e-5 else "differs"), f"error {error:.1e}"


def _late(*_):
    raise TimeoutError(f"more than {SECONDS} s of this process")


def main():
    signal.signal(signal.SIGPROF, _late)
    counts = collections.Counter()
    for name in sys.argv[1:] or sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # whatever else this machine does
        result = outcome(name)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if result is not None:
            counts[result[0]] += 1
            text = " | ".join(line.strip() for line in result[1].splitlines()[:4])
            print(f"{name}: {result[0]}: {text[:400]}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    sys.exit(1 if counts["differs"] else 0)


if __name__ == "__main__":
    main()
