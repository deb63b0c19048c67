"""How a chat template makes a prompt of messages, in a form that a server needs no Jinja for.

A template of the usual kind writes something in front of each message's content that depends on its
role and on that of the message before, and something at the end, where the answer begins. These
texts are found by rendering short conversations, and hold if all of them give the same.
"""

import itertools
import json
import pathlib
from typing import Any, Sequence

from transformers.utils.chat_template_utils import render_jinja_template

_ROLES = ("system", "user", "assistant")
_MOST = 5  # messages of a conversation
_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")
# Contents that no template has. The second kind shows what a template does to spaces and lines.
_PLAIN, _SPACED = "~{}braid~", " \n {}<b> \n\n ~braid~ \n "


def of_folder(folder: pathlib.Path) -> dict[str, Any]:
    """What the manifest says of a folder's chat template: nothing without one. Raises ValueError where
    the template is of another form."""
    config = _read(folder / "tokenizer_config.json")
    path = folder / "chat_template.jinja"
    template = path.read_text() if path.is_file() else config.get("chat_template")
    if isinstance(template, list):
        template = {each["name"]: each["template"] for each in template}.get("default")
    if template is None:
        return {}
    special = {**_read(folder / "special_tokens_map.json"), **config}
    names = {name: _content(special[name]) for name in _SPECIAL if special.get(name)}
    error = ValueError()
    # Some take the system's message in front alone, and some give it a place of its own, but are of
    # this form without one.
    for systems in (_MOST, 1, 0):
        try:
            return {"chat": _find(template, names, systems)}
        except ValueError as raised:
            error = raised
    raise error


def _read(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def _content(token: "str | dict[str, Any]") -> str:
    return token if isinstance(token, str) else token["content"]


def _find(template: str, names: dict[str, str], systems: int) -> dict[str, Any]:
    """With messages of the system among the first `systems` ones."""
    between: dict[tuple[str, str], str] = {}
    spaced = []
    # The server's conversations end with the user's message.
    for count in range(_MOST):
        for before in itertools.product(_ROLES, repeat=count):
            chain = (*before, "user")
            if "system" in chain[systems:]:
                continue
            contents = [_PLAIN.format(i) for i in range(len(chain))]
            text = _render(template, names, chain, contents)
            if text is None:
                continue
            for pair, found in zip(_pairs(chain), _split(text, contents)):
                if between.setdefault(pair, found) != found:
                    raise ValueError(
                        f"what it writes between {pair[0] or 'the begin'} and {pair[1] or 'the end'} "
                        "depends on more than these roles"
                    )
            contents = [_SPACED.format(i) for i in range(len(chain))]
            spaced.append((chain, contents, _render(template, names, chain, contents)))
    if not between:
        raise ValueError("it takes no conversation")
    for trim in (False, True):
        if all(_join(between, trim, *each[:2]) == each[2] for each in spaced):
            rows = [[*pair, text] for pair, text in between.items()]
            return {"trim": trim, "between": rows}
    raise ValueError("it changes contents")


def _pairs(chain: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(("", *chain), (*chain, "")))


def _join(
    between: dict[tuple[str, str], str], trim: bool, chain: Sequence[str], contents: Sequence[str]
) -> str:
    parts = [content.strip() if trim else content for content in contents] + [""]
    return "".join(between[pair] + part for pair, part in zip(_pairs(chain), parts))


def _split(text: str, contents: Sequence[str]) -> list[str]:
    """What stands in front of each content, and behind the last."""
    parts = []
    for content in contents:
        part, found, text = text.partition(content)
        if not found:
            raise ValueError("it does not write each content once, in order")
        parts.append(part)
    if any(content in part for content in contents for part in (*parts, text)):
        raise ValueError("it does not write each content once, in order")
    return [*parts, text]


def _render(
    template: str, names: dict[str, str], chain: Sequence[str], contents: Sequence[str]
) -> str | None:
    """None where the template refuses such a conversation."""
    messages = [{"role": role, "content": content} for role, content in zip(chain, contents)]
    try:
        rendered = render_jinja_template(
            [messages], chat_template=template, add_generation_prompt=True, **names
        )
    except Exception:  # whatever a template raises
        return None
    return rendered[0][0]
