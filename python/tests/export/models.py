"""Small models of transformers with random weights, and what PyTorch computes of them."""

import torch
import transformers

_SIZES = {
    "vocab_size": 160,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "initializer_range": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# What each has beside the sizes above.
MODELS = {
    "Llama": {},
}


def make(name, seed=1, **more):
    """A model in f32. Norms get weights that are not all equal, and embeddings are large beside what a
    layer adds, as in trained models: else the roundings of bf16 would grow from layer to layer."""
    torch.manual_seed(seed)
    config = getattr(transformers, f"{name}Config")(**{**_SIZES, **MODELS[name], **more})
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        if parameter.ndim == 1:
            parameter += 0.3 * torch.randn_like(parameter)
    model.get_input_embeddings().weight.mul_(8)
    return model


def last_logits(model, sequences):
    """Of the last token of each sequence, by a whole forward pass for each."""
    with torch.no_grad():
        return torch.stack([model(torch.tensor([tokens])).logits[0, -1] for tokens in sequences])
